// Finds members of objects in JSON bytes whose end may be missing, without parsing what lies between them.

import { skipSpace, stringEnd } from '../../platform/json-bytes.ts';

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** The answer where the bytes end too early, are no JSON, or have no such member. */
export const NOT_THERE = -1;

/**
 * Where the value of the member begins. `open`: of the object's brace; `name`: without quotes. A key that is written
 * with escapes is another one.
 */
export function memberAt(bytes: Buffer, open: number, name: Buffer): number {
  if (bytes[open] !== OPEN_BRACE) return NOT_THERE;
  let at = skipSpace(bytes, open + 1);
  while (bytes[at] === QUOTE) {
    const keyEnd = stringEnd(bytes, at);
    if (keyEnd === -1) return NOT_THERE;
    const colon = skipSpace(bytes, keyEnd + 1);
    const value = skipSpace(bytes, colon + 1);
    if (bytes[colon] !== COLON || value >= bytes.length) return NOT_THERE;
    if (keyEnd - at - 1 === name.length && bytes.compare(name, 0, name.length, at + 1, keyEnd) === 0) return value;
    at = nextAfter(bytes, value);
  }
  return NOT_THERE;
}

/** Where the first item of the array at `open` begins. */
export function firstItemAt(bytes: Buffer, open: number): number {
  return bytes[open] === OPEN_BRACKET ? skipSpace(bytes, open + 1) : NOT_THERE;
}

/** Where the member or the item begins that follows the value at `value`. */
export function nextAfter(bytes: Buffer, value: number): number {
  const end = valueEnd(bytes, value);
  if (end === NOT_THERE) return NOT_THERE;
  const comma = skipSpace(bytes, end);
  return bytes[comma] === COMMA ? skipSpace(bytes, comma + 1) : NOT_THERE;
}

/** Where the value at `start` ends. */
export function valueEnd(bytes: Buffer, start: number): number {
  let depth = 0;
  for (let at = start; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      at = stringEnd(bytes, at);
      if (at === -1) return NOT_THERE;
      if (depth === 0) return at + 1;
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth += 1;
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      // The bracket closes what is around a number or a word, which ends here.
      if (depth === 0) return at;
      depth -= 1;
      if (depth === 0) return at + 1;
    } else if (byte === COMMA && depth === 0) return at;
  }
  return NOT_THERE;
}
