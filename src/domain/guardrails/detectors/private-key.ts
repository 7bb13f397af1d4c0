// Private keys in PEM (RFC 7468): decided by the header and its first line; what follows belongs to the key up to its
// end line.

import { bytesIn, classOf, runEnd } from './characters.ts';
import { byteAt, type Detector, type Hit, pairOf, textOf } from './detector.ts';

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
  if (from < start || !isAt(bytes, from, end, BEGIN)) return false;
  const nameEnd = runEnd(NAME, bytes, from + BEGIN.length, end, HEADER_BYTES_MAX);
  if (!HEADER.test(textOf(bytes, from, Math.min(end, nameEnd + 5)))) return false;
  const decidedAt = endOfFirstLine(bytes, nameEnd + 5, end);
  if (decidedAt === -1) return false;
  hit.start = from;
  hit.end = endOfKey(bytes, decidedAt, end);
  hit.isOpen = hit.end === end;
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

/** After the end line, or where something stands that is in no key. `end`: it goes on. */
function endOfKey(bytes: Uint8Array, from: number, end: number): number {
  let place = from;
  while (place < end && BODY[bytes[place] as number] === 1) {
    if (bytes[place] === DASH && isAt(bytes, place, end, END)) {
      const nameEnd = runEnd(NAME, bytes, place + END.length, end, HEADER_BYTES_MAX);
      return runEnd(DASHES, bytes, nameEnd, end, 5);
    }
    place += 1;
  }
  return place;
}

const DASHES = classOf('\u002d');

function isAt(bytes: Uint8Array, from: number, end: number, text: Buffer): boolean {
  if (from + text.length > end) return false;
  for (let index = 0; index < text.length; index += 1) if (bytes[from + index] !== text[index]) return false;
  return true;
}

/** From the last beginning of a header that is not decided yet, be it only its first dash. */
function holdPrivateKey(bytes: Uint8Array, start: number, end: number): number {
  const limit = Math.max(start, end - LONGEST_UNDECIDED);
  for (let from = limit; from < end; from += 1) {
    if (bytes[from] !== DASH) continue;
    let matched = 0;
    while (matched < BEGIN.length && from + matched < end && bytes[from + matched] === BEGIN[matched]) matched += 1;
    if (matched === BEGIN.length || from + matched === end) return from;
  }
  return end;
}

export const privateKey: Detector = {
  entity: 'private_key',
  anchors: bytesIn(classOf('B')).map((letter) => pairOf(DASH, letter)),
  find: findPrivateKey,
  hold: holdPrivateKey,
  tailEnd: endOfKey,
};
