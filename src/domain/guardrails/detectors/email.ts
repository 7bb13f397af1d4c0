// Finds email addresses at the `@`, with the rules of labels and of top-level domains as they are used.

import { bytesIn, classOf, holdByClass, isBlankEscape, LETTER, runEnd } from './characters.ts';
import { byteAt, type Detector, type Hit, pairOf } from './detector.ts';

/** RFC 5321 4.5.3.1. */
const LOCAL_BYTES_MAX = 64;
const DOMAIN_BYTES_MAX = 253;
const LABEL_BYTES_MAX = 63;

/**
 * The characters of RFC 5322's atoms, without those that separate an address from a key, a path or a quote
 * (`key=a@b.c`).
 */
const IN_LOCAL = classOf('A-Za-z0-9.!#$%&*+^_~\u002d');
/**
 * The characters that addresses begin with in practice; any other of IN_LOCAL before one is punctuation of the
 * surrounding text.
 */
const LOCAL_FIRST = classOf('A-Za-z0-9_+');
const DOMAIN = classOf('A-Za-z0-9.\u002d');
const AT_SIGN = 0x40;
const DOT = 0x2e;
const DASH = 0x2d;

function findEmail(bytes: Uint8Array, at: number, start: number, end: number, hit: Hit): boolean {
  if (bytes[at] !== AT_SIGN) return false;
  const localStart = startOfLocal(bytes, at, start);
  if (localStart === at || isLogin(bytes, localStart, at)) return false;
  const domainEnd = endOfDomain(bytes, at + 1, end);
  if (domainEnd === -1) return false;
  hit.start = localStart;
  hit.end = domainEnd;
  hit.isOpen = false;
  return true;
}

/**
 * Where the local part begins; `at`: there is none. Text before a delimiter or a double dash does not belong to the
 * address.
 */
function startOfLocal(bytes: Uint8Array, at: number, start: number): number {
  if (byteAt(bytes, at - 1, at) === DOT) return at;
  let from = at;
  while (from > start && IN_LOCAL[bytes[from - 1] as number] === 1) {
    const byte = bytes[from - 1];
    if (byte === DOT && bytes[from] === DOT) return at;
    if (byte === DASH && bytes[from] === DASH) {
      from += 1;
      break;
    }
    if (at - from === LOCAL_BYTES_MAX) {
      // The local part would be too long, unless only punctuation comes before.
      if (LOCAL_FIRST[byte as number] === 1) return at;
      break;
    }
    from -= 1;
  }
  if (from > start && isBlankEscape(bytes, from - 1)) from += 1;
  while (from < at && LOCAL_FIRST[bytes[from] as number] !== 1) from += 1;
  return from;
}

/** `git@host:path` names a login, not a mailbox. */
function isLogin(bytes: Uint8Array, from: number, to: number): boolean {
  return to - from === 3 && bytes[from] === 0x67 && bytes[from + 1] === 0x69 && bytes[from + 2] === 0x74;
}

/** Where the domain ends; -1: there is none. A dot or dash after it belongs to the sentence. */
function endOfDomain(bytes: Uint8Array, from: number, end: number): number {
  let domainEnd = runEnd(DOMAIN, bytes, from, end, DOMAIN_BYTES_MAX + 1);
  if (domainEnd - from > DOMAIN_BYTES_MAX) return -1;
  // `a@b.c@d` and names that go on after the domain are no addresses.
  const after = byteAt(bytes, domainEnd, end);
  if (after === AT_SIGN || after === 0x5f) return -1;
  while (domainEnd > from && (bytes[domainEnd - 1] === DOT || bytes[domainEnd - 1] === DASH)) domainEnd -= 1;
  let labels = 0;
  let labelStart = from;
  for (let place = from; place <= domainEnd; place += 1) {
    if (place < domainEnd && bytes[place] !== DOT) continue;
    if (!isLabel(bytes, labelStart, place)) return -1;
    labels += 1;
    if (place < domainEnd) labelStart = place + 1;
  }
  return labels >= 2 && isTopLevel(bytes, labelStart, domainEnd) ? domainEnd : -1;
}

function isLabel(bytes: Uint8Array, from: number, to: number): boolean {
  return to > from && to - from <= LABEL_BYTES_MAX && bytes[from] !== DASH && bytes[to - 1] !== DASH;
}

/**
 * A top-level domain has letters only, or is the ASCII form of an international one; `pkg@1.2.x` and `icon@2x.png` are
 * versions and files.
 */
function isTopLevel(bytes: Uint8Array, from: number, to: number): boolean {
  if (to - from < 2) return false;
  const isInternational = bytes[from] === 0x78 && bytes[from + 1] === 0x6e && bytes[from + 2] === DASH;
  if (!isInternational && runEnd(LETTER, bytes, from, to, LABEL_BYTES_MAX) !== to) return false;
  return !FILE_ENDINGS.has(numberOf(bytes, from, to));
}

/** The lower-case letters as digits of one number: exact for file endings, and no text has to be made. */
function numberOf(bytes: Uint8Array, from: number, to: number): number {
  let number = 0;
  for (let at = from; at < to; at += 1) number = number * 256 + ((bytes[at] as number) | 0x20);
  return number;
}

/** File endings that are no top-level domains: `logo@2x.png`, `styles@media.css`. */
const FILE_ENDINGS: ReadonlySet<number> = new Set(
  (
    'png jpg jpeg gif svg webp css scss js mjs cjs ts tsx jsx json html xml yml yaml txt ' +
    'py rb go java class map lock gz tgz'
  )
    .split(' ')
    .map((ending) => numberOf(Buffer.from(ending), 0, ending.length)),
);

export const email: Detector = {
  entity: 'email',
  anchors: bytesIn(IN_LOCAL).map((byte) => pairOf(byte, AT_SIGN)),
  find: findEmail,
  hold: holdByClass(classOf('A-Za-z0-9.!#$%&*+^_~@\u002d'), IN_LOCAL, LOCAL_BYTES_MAX + 1 + DOMAIN_BYTES_MAX + 1),
};
