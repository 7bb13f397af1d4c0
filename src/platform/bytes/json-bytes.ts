// Moves over JSON that lies in memory as bytes, without parsing it: over white space, over strings, from a key to its
// value and back.

const QUOTE = 0x22;
const COLON = 0x3a;
const BACKSLASH = 0x5c;

/** The first byte at or after `offset` that is no white space. */
export function skipSpace(bytes: Buffer, offset: number): number {
  let at = offset;
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at += 1;
  return at;
}

/** The last byte at or before `offset` that is no white space. */
export function skipSpaceBack(bytes: Buffer, offset: number): number {
  let at = offset;
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at -= 1;
  return at;
}

/** Where the value begins of the key that ends before `afterKey`; -1: no colon follows, so it is no key. */
export function valueAfterKey(bytes: Buffer, afterKey: number): number {
  const colon = skipSpace(bytes, afterKey);
  return bytes[colon] === COLON ? skipSpace(bytes, colon + 1) : -1;
}

/** Where the key `name` (with its quotes) of the value at `value` begins; -1: the value has another key or none. */
export function keyBefore(bytes: Buffer, value: number, name: Buffer): number {
  const colon = skipSpaceBack(bytes, value - 1);
  if (bytes[colon] !== COLON) return -1;
  const end = skipSpaceBack(bytes, colon - 1) + 1;
  const start = end - name.length;
  // Behind a backslash the quote is part of a longer name.
  if (start < 0 || bytes[start - 1] === BACKSLASH) return -1;
  return bytes.compare(name, 0, name.length, start, end) === 0 ? start : -1;
}

/** Most names and values are shorter, and a native search costs more than so many bytes. */
const NEAR_BYTES = 32;

/** Offset of the quote that closes the string opened at `open`, or -1. */
export function stringEnd(bytes: Buffer, open: number): number {
  let at = quoteBehind(bytes, open);
  while (at !== -1 && isEscaped(bytes, at)) at = quoteBehind(bytes, at);
  return at;
}

/**
 * The text between the quotes of the string at `open`, escapes as they are; null: there is no string, or it is longer.
 */
export function writtenString(bytes: Buffer, open: number, bytesMax: number): string | null {
  const close = bytes[open] === QUOTE ? stringEnd(bytes, open) : -1;
  return close === -1 || close - open - 1 > bytesMax ? null : bytes.toString('latin1', open + 1, close);
}

/**
 * Offset of the quote that opens the string closed at `close`, or -1. Outside of strings there are no backslashes, so
 * no quote is mistaken.
 */
export function stringStart(bytes: Buffer, close: number): number {
  let at = close;
  do {
    at = quoteBefore(bytes, at);
  } while (at !== -1 && isEscaped(bytes, at));
  return at;
}

/** Offset of the next quote behind `before`, or -1. */
export function quoteBehind(bytes: Buffer, before: number): number {
  const far = Math.min(bytes.length, before + 1 + NEAR_BYTES);
  for (let at = before + 1; at < far; at++) if (bytes[at] === QUOTE) return at;
  return far === bytes.length ? -1 : bytes.indexOf(QUOTE, far);
}

function quoteBefore(bytes: Buffer, behind: number): number {
  const far = Math.max(-1, behind - 1 - NEAR_BYTES);
  for (let at = behind - 1; at > far; at--) if (bytes[at] === QUOTE) return at;
  return far === -1 ? -1 : bytes.lastIndexOf(QUOTE, far);
}

function isEscaped(bytes: Buffer, quote: number): boolean {
  let at = quote - 1;
  while (at >= 0 && bytes[at] === BACKSLASH) at -= 1;
  return (quote - 1 - at) % 2 === 1;
}
