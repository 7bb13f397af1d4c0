// Private keys in PEM (RFC 7468): decided by the header and its first line; what follows belongs to the key up to its
// end line.

import { bytesIn, classOf, runEnd } from './characters.ts';
import { byteAt, type Detector, type Hit, pairOf, type Tail, textOf } from './detector.ts';

const DASH = 0x2d;
const BEGIN = Buffer.from('-----BEGIN ');
const END = Buffer.from('-----END ');
/** `-----BEGIN ENCRYPTED PRIVATE KEY-----`, `-----BEGIN PGP PRIVATE KEY BLOCK-----` and what is between in length. */
const HEADER = /^-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----$/;
const HEADER_BYTES_MAX = 64;
const NAME = classOf('A-Z0-9 ');
const BASE64 = classOf('A-Za-z0-9+/=');
/** Line ends, also as they are escaped in JSON or in a shell, and the quotes of source code's lines. */
const LINE_END = classOf(' \t\r\n\\nr"\u0027+,');
/** Enough of a line to be no sentence about keys. */
const FIRST_LINE_BYTES = 40;
const LINE_ENDS_MAX = 16;
/** RFC 1421 headers of encrypted keys, at most. */
const HEADERS_BYTES_MAX = 200;
const LONGEST_UNDECIDED = HEADER_BYTES_MAX + LINE_ENDS_MAX * 2 + HEADERS_BYTES_MAX + FIRST_LINE_BYTES;
/** What a key has between its lines: base64, headers, line ends however escaped. */
const BODY = classOf('A-Za-z0-9+/=:,. \t\r\n\\"\u0027\u002d');

function findPrivateKey(bytes: Uint8Array, at: number, start: number, end: number, hit: Hit): boolean {
  const from = at - 5;
  if (from < start || matchedBytes(bytes, from, end, BEGIN) < BEGIN.length) return false;
  const nameEnd = runEnd(NAME, bytes, from + BEGIN.length, end, HEADER_BYTES_MAX);
  if (!HEADER.test(textOf(bytes, from, Math.min(end, nameEnd + 5)))) return false;
  const decidedAt = endOfFirstLine(bytes, nameEnd + 5, end);
  if (decidedAt === -1) return false;
  hit.start = from;
  const tail = tailOf(bytes, decidedAt, end);
  hit.end = tail.to;
  hit.isOpen = tail.isOpen;
  return true;
}

/** -1: no key's line follows. */
function endOfFirstLine(bytes: Uint8Array, from: number, end: number): number {
  let place = runEnd(LINE_END, bytes, from, end, LINE_ENDS_MAX);
  if (place === from) return -1;
  const limit = Math.min(end, place + HEADERS_BYTES_MAX);
  let lineStart = place;
  while (place < limit) {
    const lineEnd = runEnd(BASE64, bytes, place, end, FIRST_LINE_BYTES);
    if (lineEnd - lineStart >= FIRST_LINE_BYTES) return lineEnd;
    // A header (`Proc-Type: 4,ENCRYPTED`), or its line end.
    if (BODY[byteAt(bytes, lineEnd, end)] !== 1 || lineEnd >= end) return -1;
    place = lineEnd + 1;
    lineStart = place;
  }
  return -1;
}

/** Up to the end line and with it, or to what stands in no key, or to the beginning of another. */
function tailOf(bytes: Uint8Array, from: number, end: number): Tail {
  let to = from;
  while (to < end && BODY[bytes[to] as number] === 1) {
    if (bytes[to] === DASH) {
      const matched = matchedBytes(bytes, to, end, END);
      if (matched === END.length) return endLine(bytes, to, end);
      const begun = matchedBytes(bytes, to, end, BEGIN);
      if (begun === BEGIN.length) return { to, isOpen: false };
      if (to + Math.max(matched, begun) === end) return { to, isOpen: true };
    }
    to += 1;
  }
  return { to, isOpen: to === end };
}

/** `at`: where its first dash is. */
function endLine(bytes: Uint8Array, at: number, end: number): Tail {
  const nameEnd = runEnd(NAME, bytes, at + END.length, end, HEADER_BYTES_MAX);
  const to = runEnd(DASHES, bytes, nameEnd, end, 5);
  return to === end && to - nameEnd < 5 ? { to: at, isOpen: true } : { to, isOpen: false };
}

const DASHES = classOf('\u002d');

function matchedBytes(bytes: Uint8Array, from: number, end: number, text: Buffer): number {
  let matched = 0;
  while (matched < text.length && from + matched < end && bytes[from + matched] === text[matched]) matched += 1;
  return matched;
}

/** From the last beginning of a header that is not decided yet, be it only its first dash. */
function holdPrivateKey(bytes: Uint8Array, start: number, end: number): number {
  const limit = Math.max(start, end - LONGEST_UNDECIDED);
  for (let from = limit; from < end; from += 1) {
    if (bytes[from] !== DASH) continue;
    const matched = matchedBytes(bytes, from, end, BEGIN);
    if (matched === BEGIN.length || from + matched === end) return from;
  }
  return end;
}

export const privateKey: Detector = {
  entity: 'private_key',
  anchors: bytesIn(classOf('B')).map((letter) => pairOf(DASH, letter)),
  find: findPrivateKey,
  hold: holdPrivateKey,
  tailOf,
};
