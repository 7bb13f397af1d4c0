// Finds members of objects in JSON bytes of which a part may be missing, without parsing what lies between them.

import { skipSpace, stringEnd, stringStart, valueAfterKey } from './json-bytes.ts';

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** The answer where the bytes end too early, are no JSON, or have no such member. */
export const NOT_THERE = -1;

/**
 * Where the value of the member begins. `open`: where the object's brace is; `name`: without quotes. A key that is
 * written with escapes does not match.
 */
export function memberAt(bytes: Buffer, open: number, name: Buffer): number {
  if (bytes[open] !== OPEN_BRACE) return NOT_THERE;
  let at = skipSpace(bytes, open + 1);
  while (bytes[at] === QUOTE) {
    const keyEnd = stringEnd(bytes, at);
    if (keyEnd === -1) return NOT_THERE;
    const value = valueAfterKey(bytes, keyEnd + 1);
    if (value === -1 || value >= bytes.length) return NOT_THERE;
    if (isKey(bytes, at, keyEnd, name)) return value;
    at = nextAfter(bytes, value);
  }
  return NOT_THERE;
}

/**
 * Where the values of all members of this name begin. null: the end of the object is missing, or a key is written with
 * escapes, so that it may be this one. The bytes that are there are known to be JSON.
 */
export function valuesOf(bytes: Buffer, open: number, name: Buffer): readonly number[] | null {
  const found: number[] = [];
  let at = skipSpace(bytes, open + 1);
  while (bytes[at] === QUOTE) {
    const keyEnd = stringEnd(bytes, at);
    const value = keyEnd === -1 ? -1 : valueAfterKey(bytes, keyEnd + 1);
    const end = value === -1 ? NOT_THERE : valueEnd(bytes, value);
    if (end === NOT_THERE || isEscapedWithin(bytes, at, keyEnd)) return null;
    if (isKey(bytes, at, keyEnd, name)) found.push(value);
    const next = skipSpace(bytes, end);
    at = bytes[next] === COMMA ? skipSpace(bytes, next + 1) : next;
  }
  return bytes[at] === CLOSE_BRACE ? found : null;
}

function isKey(bytes: Buffer, start: number, end: number, name: Buffer): boolean {
  return end - start - 1 === name.length && bytes.compare(name, 0, name.length, start + 1, end) === 0;
}

function isEscapedWithin(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (bytes[at] === BACKSLASH) return true;
  return false;
}

/**
 * Where the object around the value at `at` begins; the bytes before it may be missing. The bytes that are there are
 * known to be JSON.
 */
export function objectAround(bytes: Buffer, at: number): number {
  let depth = 0;
  for (let before = at - 1; before >= 0; before--) {
    const byte = bytes[before];
    if (byte === QUOTE) before = stringStart(bytes, before);
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth += 1;
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      if (depth === 0) return before;
      depth -= 1;
    }
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

/** Where the value at `start` ends, if it does before `limit`. */
export function valueEnd(bytes: Buffer, start: number, limit = bytes.length): number {
  let depth = 0;
  for (let at = start; at < limit; at++) {
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
