// Finds keys and addresses of cryptocurrency wallets by the checksums of Base58Check and bech32.

import { hash } from 'node:crypto';
import { matchesAt } from '../../../platform/bytes/matches-at.ts';
import { BASE58, decodeBase58, passesBech32 } from './base58-and-bech32.ts';
import { bytesIn, classOf, complementOf, holdByClass, runEnd, WORD } from './characters.ts';
import { byteAt, type Detector, type Hit, pairOf } from './detector.ts';

const CHECKSUM_BYTES = 4;

/** A form in Base58: its first characters, its lengths, and the number of decoded bytes with the checksum. */
interface Base58Form {
  readonly prefixes: readonly Buffer[];
  readonly lengths: readonly number[];
  readonly decodedBytes: number;
}

const buffersOf = (...texts: readonly string[]): Buffer[] => texts.map((text) => Buffer.from(text));

const KEY_FORMS: readonly Base58Form[] = [
  // WIF of the main network, without and with the mark of a compressed public key.
  { prefixes: buffersOf('5'), lengths: [51], decodedBytes: 37 },
  { prefixes: buffersOf('K', 'L'), lengths: [52], decodedBytes: 38 },
  // BIP-32 and SLIP-132 extended private keys.
  {
    prefixes: buffersOf(...Array.from('xyztuv', (first) => ['8', '9', 'A'].map((last) => `${first}prv${last}`)).flat()),
    lengths: [111],
    decodedBytes: 82,
  },
];
const ADDRESS_FORMS: readonly Base58Form[] = [
  { prefixes: buffersOf('1', '3'), lengths: [25, 26, 27, 28, 29, 30, 31, 32, 33, 34], decodedBytes: 25 },
];
/** With the separator after them. */
const KEY_PREFIXES = buffersOf('nsec1', 'age-secret-key-1');
const ADDRESS_PREFIXES = buffersOf('bc1', 'tb1');
const BASE58_LENGTH_MIN = 25;
const BECH32_LENGTH_MIN = 14;
const LONGEST = 120;
const DASH = 0x2d;

function findBase58(forms: readonly Base58Form[], bytes: Uint8Array, from: number, end: number, hit: Hit): boolean {
  const to = runEnd(BASE58, bytes, from, end, LONGEST);
  if (to - from < BASE58_LENGTH_MIN || WORD[byteAt(bytes, to, end)] === 1) return false;
  const form = forms.find(
    ({ lengths, prefixes }) => lengths.includes(to - from) && prefixes.some((prefix) => matchesAt(bytes, from, prefix)),
  );
  if (form === undefined || !hasBase58Checksum(bytes, from, to, form.decodedBytes)) return false;
  hit.start = from;
  hit.end = to;
  hit.isOpen = false;
  return true;
}

/** Base58Check: the last four bytes begin the double SHA-256 of the others. */
function hasBase58Checksum(bytes: Uint8Array, from: number, to: number, decodedBytes: number): boolean {
  const decoded = decodeBase58(bytes, from, to);
  if (decoded.length !== decodedBytes) return false;
  const payloadEnd = decodedBytes - CHECKSUM_BYTES;
  const sum = hash('sha256', hash('sha256', decoded.subarray(0, payloadEnd), 'buffer'), 'buffer');
  return sum.compare(decoded, payloadEnd, decodedBytes, 0, CHECKSUM_BYTES) === 0;
}

const BECH32 = classOf('0-9a-zA-Z\u002d');

function findBech32(prefixes: readonly Buffer[], bytes: Uint8Array, from: number, end: number, hit: Hit): boolean {
  const prefix = prefixes.find((one) => beginsWith(one, bytes, from, end));
  if (prefix === undefined) return false;
  const to = runEnd(BECH32, bytes, from, end, LONGEST);
  if (to - from < BECH32_LENGTH_MIN || byteAt(bytes, to, end) === 0x5f) return false;
  if (!passesBech32(bytes, from, from + prefix.length - 1, to)) return false;
  hit.start = from;
  hit.end = to;
  hit.isOpen = false;
  return true;
}

/** Whether the bytes begin with the prefix, in upper or lower case. */
function beginsWith(prefix: Buffer, bytes: Uint8Array, from: number, end: number): boolean {
  if (from + prefix.length > end) return false;
  for (let index = 0; index < prefix.length; index += 1)
    if (((bytes[from + index] as number) | 0x20) !== ((prefix[index] as number) | 0x20)) return false;
  return true;
}

/** The anchor of most forms is their first character, after a character that belongs to no word. */
function anchorsOf(first: string): number[] {
  const befores = bytesIn(complementOf(WORD));
  return bytesIn(classOf(first)).flatMap((byte) => befores.map((before) => pairOf(before, byte)));
}

/** The anchor of a prefix that looks like a word is its end: `xprv9`, `nsec1`, `age-secret-key-`. */
function pairsOf(...pairs: readonly string[]): number[] {
  return pairs.map((pair) => pairOf(pair.charCodeAt(0), pair.charCodeAt(1)));
}

/** Where the word with an anchor at `at` begins, which may be before a prefix; -1: `at` is inside a longer word. */
function startOfWord(bytes: Uint8Array, at: number, start: number, prefixBytes: number): number {
  const from = WORD[bytes[at - 1] as number] === 1 ? at - prefixBytes : at;
  return from < start || (from > 0 && WORD[bytes[from - 1] as number] === 1) ? -1 : from;
}

const hold = holdByClass(classOf('0-9A-Za-z\u002d'), classOf('0-9A-Za-z'), LONGEST + 1);

export const walletKey: Detector = {
  entity: 'wallet_key',
  anchors: [...anchorsOf('5KL'), ...pairsOf('v8', 'v9', 'vA', 'c1', 'C1', 'Y-', 'y-')],
  find: (bytes, at, start, end, hit) => {
    const from = startOfWord(bytes, at, start, bytes[at] === DASH ? 'age-secret-key'.length : 'nsec'.length);
    if (from === -1) return false;
    return findBase58(KEY_FORMS, bytes, from, end, hit) || findBech32(KEY_PREFIXES, bytes, from, end, hit);
  },
  hold,
};

export const walletAddress: Detector = {
  entity: 'wallet_address',
  anchors: [...anchorsOf('13'), ...pairsOf('c1', 'C1', 'b1', 'B1')],
  find: (bytes, at, start, end, hit) => {
    const from = startOfWord(bytes, at, start, 'bc'.length);
    if (from === -1) return false;
    return findBase58(ADDRESS_FORMS, bytes, from, end, hit) || findBech32(ADDRESS_PREFIXES, bytes, from, end, hit);
  },
  hold,
};
