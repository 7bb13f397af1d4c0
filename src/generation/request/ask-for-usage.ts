// Finds what to write into the body of a Chat Completions stream so that its provider tells the usage, whatever the
// client says of it: what `stream_usage: request` adds to a request.

import { Buffer } from 'node:buffer';
import { skipSpace, skipSpaceBack, stringEnd } from '../../platform/bytes/json-bytes.ts';
import { valueEnd } from '../../platform/bytes/json-members.ts';
import type { BodyEdit } from './edits.ts';

interface Span {
  readonly start: number;
  readonly end: number;
}

const MEMBER = '"include_usage":true';
const OPTIONS = `{${MEMBER}}`;
/**
 * No provider knows more than two options: a longer object is replaced, so that what is asked for cannot be hidden in
 * it.
 */
const OPTIONS_BYTES_MAX = 4_096;

const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/**
 * The one edit after which `body`, a JSON object with members, asks for usage; null: it does. `streamOptions`: where
 * the value of that name lies in it. What the client is charged must not depend on how it spells a field: anything but
 * `true` becomes `true`, and anything but an object becomes one.
 */
export function askForUsage(body: Buffer, streamOptions: Span | null): BodyEdit | null {
  if (streamOptions === null) return insertion(body.lastIndexOf(CLOSE_BRACE), `,"stream_options":${OPTIONS}`);
  const { start, end } = streamOptions;
  if (body[start] !== OPEN_BRACE || end - start > OPTIONS_BYTES_MAX)
    return { start, end, replacement: Buffer.from(OPTIONS) };
  const said = includeUsageValues(body, start, end);
  if (said.length === 0) return insertion(end - 1, skipSpace(body, start + 1) === end - 1 ? MEMBER : `,${MEMBER}`);
  const others = said.filter((value) => body.toString('latin1', value.start, value.end) !== 'true');
  const first = others[0];
  const last = others.at(-1);
  return first === undefined || last === undefined
    ? null
    : { start: first.start, end: last.end, replacement: allTrue(body, others) };
}

function insertion(at: number, text: string): BodyEdit {
  return { start: at, end: at, replacement: Buffer.from(text) };
}

/** `true` for each of the values, and what stands between them: nearly always it is one. */
function allTrue(body: Buffer, values: readonly Span[]): Buffer {
  const between = values.slice(1).map(({ start }, index) => body.subarray(values[index]?.end, start));
  return Buffer.concat([Buffer.from('true'), ...between.flatMap((bytes) => [bytes, Buffer.from('true')])]);
}

/** The values of every member `include_usage` of the object from `start` to `end`, which is known to be well-formed. */
function includeUsageValues(body: Buffer, start: number, end: number): Span[] {
  const values: Span[] = [];
  let key = skipSpace(body, start + 1);
  while (key < end - 1) {
    const keyEnd = stringEnd(body, key) + 1;
    const value = skipSpace(body, skipSpace(body, keyEnd) + 1);
    // A number or a word ends for `valueEnd` at what follows the blanks behind it.
    const behind = skipSpaceBack(body, valueEnd(body, value) - 1) + 1;
    if (JSON.parse(body.toString('utf8', key, keyEnd)) === 'include_usage') values.push({ start: value, end: behind });
    const after = skipSpace(body, behind);
    key = skipSpace(body, after + 1);
  }
  return values;
}
