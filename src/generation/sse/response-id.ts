// Reads the id of a response from the beginning of its reply, for the operations on saved responses (spec 4.2).

import { isKeptResponseId, KEPT_ID_BYTES_MAX } from '../../domain/stored-objects/kept-ids.ts';
import { valueAfterKey, writtenString } from '../../platform/bytes/json-bytes.ts';
import { DepthFromStart, NO_DEPTH } from '../../platform/bytes/json-depth.ts';
import { DATA_FIELD, LINE_FEED } from './syntax.ts';
import { isDocument } from './usage-window.ts';

const ID_KEY = Buffer.from('"id"');
/** How far the id is searched for: providers write it first or after a few fields. */
const SEARCH_BYTES_MAX = 65_536;

/**
 * The `id` of a JSON body, or of the `response` in a stream's first event. null: there is none, as in an error body, or
 * it is one that is not stored (kept-ids.ts).
 */
export function readResponseId(beginning: Buffer): string | null {
  const bytes = beginning.subarray(0, SEARCH_BYTES_MAX);
  if (isDocument(bytes)) return idAtDepth(bytes, 0, 1);
  const field = bytes.indexOf(DATA_FIELD);
  if (field === -1) return null;
  const start = field + DATA_FIELD.length;
  const lineEnd = bytes.indexOf(LINE_FEED, start);
  return idAtDepth(lineEnd === -1 ? bytes : bytes.subarray(0, lineEnd), start, 2);
}

function idAtDepth(bytes: Buffer, start: number, wantedDepth: number): string | null {
  const depths = new DepthFromStart(bytes, start);
  for (let key = bytes.indexOf(ID_KEY, start); key !== -1; key = bytes.indexOf(ID_KEY, key + 1)) {
    const depth = depths.at(key);
    if (depth === NO_DEPTH) return null;
    const value = depth === wantedDepth ? valueAfterKey(bytes, key + ID_KEY.length) : -1;
    const id = value === -1 ? null : writtenString(bytes, value, KEPT_ID_BYTES_MAX);
    if (id !== null) return isKeptResponseId(id) ? id : null;
  }
  return null;
}
