// Finds the edit of a Chat Completions request that makes the provider report usage in its stream, whatever the client
// says about it. This is what `stream_usage: request` adds to a request.

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
 * A longer object is replaced as a whole, so that it cannot hide the option. No provider knows more than two options.
 */
const OPTIONS_BYTES_MAX = 4_096;

const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/**
 * The one edit after which `body`, a JSON object with members, asks for usage; null: it already does. `streamOptions`
 * is the place of that field's value. What the client is charged must not depend on how it writes the option: any value
 * but `true` becomes `true`, and any options but an object become an object.
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

/**
 * The replacement from the first to the last of `values`: `true` for each, and the bytes between them unchanged. There
 * is nearly always one.
 */
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
    // `valueEnd` counts the blanks after a number or word as part of it.
    const behind = skipSpaceBack(body, valueEnd(body, value) - 1) + 1;
    if (JSON.parse(body.toString('utf8', key, keyEnd)) === 'include_usage') values.push({ start: value, end: behind });
    const after = skipSpace(body, behind);
    key = skipSpace(body, after + 1);
  }
  return values;
}
