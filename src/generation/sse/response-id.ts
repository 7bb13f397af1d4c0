// Reads the id of a response from the beginning of its reply, for the operations on saved responses (spec 4.2).

import { parseObject } from '../../domain/usage/countable-text.ts';
import { stringEnd, valueAfterKey } from '../../platform/json-bytes.ts';
import { DepthFromStart, NO_DEPTH } from './json-depth.ts';
import { isDocument } from './usage-window.ts';

const ID_KEY = Buffer.from('"id"');
const DATA_FIELD = Buffer.from('data:');
const LINE_FEED = 0x0a;
const ID_BYTES_MAX = 512;
/** Providers write the id first, or after a few fields. */
const SEARCH_BYTES_MAX = 65_536;

/** The `id` of a JSON body, or of the `response` in a stream's first event; null without one, as in an error body. */
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
    const id = depth === wantedDepth ? stringAfter(bytes, key + ID_KEY.length) : null;
    if (id !== null) return id;
  }
  return null;
}

/** The string value after a key; null if it is not a string of JSON, or the bytes are not a key. */
function stringAfter(bytes: Buffer, afterKey: number): string | null {
  const open = valueAfterKey(bytes, afterKey);
  if (bytes[open] !== 0x22) return null;
  const close = stringEnd(bytes, open);
  if (close === -1 || close - open > ID_BYTES_MAX) return null;
  const id = parseObject(`{"id":${bytes.toString('utf8', open, close + 1)}}`)?.['id'];
  return typeof id === 'string' ? id : null;
}
