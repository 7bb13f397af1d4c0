// Finds private keys in PEM (RFC 7468). The header and the first line decide; all that follows belongs to the key up to
// its end line.

import { bytesIn, classOf, runEnd } from './characters.ts';
import { byteAt, type Detector, type Hit, pairOf, type Tail, textOf } from './detector.ts';

const DASH = 0x2d;
const BEGIN = Buffer.from('-----BEGIN ');
const END = Buffer.from('-----END ');
/** From `-----BEGIN PRIVATE KEY-----` to `-----BEGIN PGP PRIVATE KEY BLOCK-----`. */
const HEADER = /^-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----$/;
const HEADER_BYTES_MAX = 64;
const NAME = classOf('A-Z0-9 ');
const BASE64 = classOf('A-Za-z0-9+/=');
/** Line ends, also as they are escaped in JSON or in a shell, and the quotes of source code's lines. */
const LINE_END = classOf(' \t\r\n\\nr"\u0027+,');
/** A line of this length is no sentence about keys. */
const FIRST_LINE_BYTES = 40;
const LINE_ENDS_MAX = 16;
/** The most bytes of the RFC 1421 headers of an encrypted key. */
const HEADERS_BYTES_MAX = 200;
const LONGEST_UNDECIDED = HEADER_BYTES_MAX + LINE_ENDS_MAX * 2 + HEADERS_BYTES_MAX + FIRST_LINE_BYTES;
/** The characters of a key between its begin and end lines: base64, headers, and line ends in any escaped form. */
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

/** The place at which the first line is long enough to decide; -1: no line of a key follows. */
function endOfFirstLine(bytes: Uint8Array, from: number, end: number): number {
  let place = runEnd(LINE_END, bytes, from, end, LINE_ENDS_MAX);
  if (place === from) return -1;
  const limit = Math.min(end, place + HEADERS_BYTES_MAX);
  let lineStart = place;
  while (place < limit) {
    const lineEnd = runEnd(BASE64, bytes, place, end, FIRST_LINE_BYTES);
    if (lineEnd - lineStart >= FIRST_LINE_BYTES) return lineEnd;
    // This is a header (`Proc-Type: 4,ENCRYPTED`) or its line end.
    if (BODY[byteAt(bytes, lineEnd, end)] !== 1 || lineEnd >= end) return -1;
    place = lineEnd + 1;
    lineStart = place;
  }
  return -1;
}

/** Up to and including the end line, or up to a byte that no key has, or up to the beginning of another key. */
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

/** `at`: the place of the end line's first dash. */
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

/** Holds from a begin line that is not decided yet, even if only its first dash has come. */
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
