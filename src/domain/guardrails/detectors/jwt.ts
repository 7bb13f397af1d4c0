// Finds JSON Web Tokens: a header that decodes to JSON with an algorithm, and a payload after it.

import { type ByteClass, classOf, isWithin, runEnd, runStart, WORD } from './characters.ts';
import { byteAt, type Detector, type Hit, pairOf, type Tail, textOf } from './detector.ts';

const BASE64URL = classOf('A-Za-z0-9_\u002d');
const TOKEN = classOf('A-Za-z0-9_.\u002d');
const DOT = 0x2e;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const NAME_OF_ALGORITHM = /^"(?:alg|enc)"\s*:/;
const HEADER_BYTES_MAX = 400;
/** With this much payload it is a token, however it goes on. */
const PAYLOAD_BYTES_MIN = 12;
const LONGEST_UNDECIDED = HEADER_BYTES_MAX + 1 + PAYLOAD_BYTES_MIN;

/** The anchor is the `yJ` of `eyJ`, the Base64 of `{"`. */
function findJwt(bytes: Uint8Array, at: number, start: number, end: number, hit: Hit): boolean {
  const from = at - 2;
  if (from < start || bytes[from] !== 0x65) return false;
  if (isWithin(TOKEN, bytes, from)) return false;
  const headerEnd = runEnd(BASE64URL, bytes, from, end, HEADER_BYTES_MAX);
  if (byteAt(bytes, headerEnd, end) !== DOT) return false;
  const payloadEnd = runEnd(BASE64URL, bytes, headerEnd + 1, end, PAYLOAD_BYTES_MIN);
  if (payloadEnd - headerEnd - 1 < PAYLOAD_BYTES_MIN || !isHeader(textOf(bytes, from, headerEnd))) return false;
  hit.start = from;
  const tail = tailOf(bytes, payloadEnd, end);
  hit.end = tail.to;
  hit.isOpen = tail.isOpen;
  return true;
}

/**
 * Whether the header is a JSON object with a member `alg` or `enc`. JSON.parse would take microseconds to reject a
 * text.
 */
function isHeader(encoded: string): boolean {
  const header = Buffer.from(encoded, 'base64url').toString('latin1');
  let depth = 0;
  let names = 0;
  for (let at = 0; at < header.length; at += 1) {
    const character = header.charCodeAt(at);
    if (character === QUOTE) {
      const close = closingQuote(header, at);
      if (close === -1) return false;
      if (depth === 1 && close - at === 4 && NAME_OF_ALGORITHM.test(header.slice(at))) names += 1;
      at = close;
    } else if (character === OPEN_BRACE || character === OPEN_BRACKET) depth += 1;
    else if (character === CLOSE_BRACE || character === CLOSE_BRACKET) depth -= 1;
    if (depth === 0) return names > 0 && header.slice(at + 1).trim() === '';
  }
  return false;
}

function closingQuote(text: string, open: number): number {
  for (let at = open + 1; at < text.length; at += 1) {
    const character = text.charCodeAt(at);
    if (character === QUOTE) return at;
    if (character === BACKSLASH) at += 1;
  }
  return -1;
}

/**
 * A dot belongs to the token if more of it follows; a dot at the end of the available bytes waits for the next ones.
 */
function tailOf(bytes: Uint8Array, from: number, end: number): Tail {
  let to = from;
  for (;;) {
    to = runEnd(BASE64URL, bytes, to, end, end - to);
    if (byteAt(bytes, to, end) !== DOT || BASE64URL[byteAt(bytes, to + 1, end)] !== 1) break;
    to += 1;
  }
  return { to, isOpen: to === end || (to + 1 === end && bytes[to] === DOT) };
}

const FIRST: ByteClass = classOf('e');

function holdJwt(bytes: Uint8Array, start: number, end: number): number {
  let at = runStart(TOKEN, bytes, end, start, LONGEST_UNDECIDED);
  while (at < end && (FIRST[bytes[at] as number] !== 1 || (at > start && isWithin(WORD, bytes, at)))) at += 1;
  return at;
}

export const jwt: Detector = {
  entity: 'jwt',
  anchors: [pairOf(0x79, 0x4a)],
  find: findJwt,
  hold: holdJwt,
  tailOf,
};
