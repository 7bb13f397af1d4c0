// Keys and addresses of cryptocurrency wallets, by the checksums of Base58Check and bech32.

import { createHash } from 'node:crypto';
import { bytesIn, classOf, complementOf, holdByClass, runEnd, WORD } from './characters.ts';
import { byteAt, type Detector, type Hit, pairOf, textOf } from './detector.ts';

const BASE58_ALPHABET = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
const BASE58 = classOf(BASE58_ALPHABET);
const BECH32_ALPHABET = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l';
const CHECKSUM_BYTES = 4;

/** Form by first characters: lengths of the whole, and of what Base58 holds with its checksum. */
interface Base58Form {
  readonly first: RegExp;
  readonly lengths: readonly number[];
  readonly decodedBytes: readonly number[];
}

const KEY_FORMS: readonly Base58Form[] = [
  // WIF, without and with the mark of a compressed public key; of the main network.
  { first: /^5/, lengths: [51], decodedBytes: [37] },
  { first: /^[KL]/, lengths: [52], decodedBytes: [38] },
  // BIP-32 and SLIP-132 extended private keys.
  { first: /^[xyztuv]prv[89A]/, lengths: [111], decodedBytes: [82] },
];
const ADDRESS_FORMS: readonly Base58Form[] = [
  { first: /^[13]/, lengths: [25, 26, 27, 28, 29, 30, 31, 32, 33, 34], decodedBytes: [25] },
];
const KEY_PREFIXES: readonly string[] = ['nsec', 'age-secret-key-'];
const ADDRESS_PREFIXES: readonly string[] = ['bc', 'tb'];
const BASE58_LENGTH_MIN = 25;
const LONGEST = 120;
const DASH = 0x2d;

function findBase58(forms: readonly Base58Form[], bytes: Uint8Array, from: number, end: number, hit: Hit): boolean {
  const to = runEnd(BASE58, bytes, from, end, LONGEST);
  if (to - from < BASE58_LENGTH_MIN || WORD[byteAt(bytes, to, end)] === 1) return false;
  const length = to - from;
  if (!forms.some(({ lengths }) => lengths.includes(length))) return false;
  const text = textOf(bytes, from, to);
  const form = forms.find(({ first, lengths }) => lengths.includes(length) && first.test(text));
  if (form === undefined || !hasBase58Checksum(text, form.decodedBytes)) return false;
  hit.start = from;
  hit.end = to;
  hit.isOpen = false;
  return true;
}

/** Base58Check: the last four bytes begin the double SHA-256 of the others. */
function hasBase58Checksum(text: string, lengths: readonly number[]): boolean {
  let value = 0n;
  for (const character of text) value = value * 58n + BigInt(BASE58_ALPHABET.indexOf(character));
  const zeros = text.length - text.replace(/^1+/, '').length;
  const hex = value === 0n ? '' : value.toString(16);
  const decoded = Buffer.concat([Buffer.alloc(zeros), Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex')]);
  if (!lengths.includes(decoded.length)) return false;
  const payload = decoded.subarray(0, -CHECKSUM_BYTES);
  const sum = sha256(sha256(payload)).subarray(0, CHECKSUM_BYTES);
  return sum.equals(decoded.subarray(-CHECKSUM_BYTES));
}

function sha256(bytes: Uint8Array): Buffer {
  return createHash('sha256').update(bytes).digest();
}

const BECH32 = classOf('0-9a-zA-Z\u002d');

function findBech32(prefixes: readonly string[], bytes: Uint8Array, from: number, end: number, hit: Hit): boolean {
  const to = runEnd(BECH32, bytes, from, end, LONGEST);
  if (to - from < 14 || byteAt(bytes, to, end) === 0x5f) return false;
  const text = textOf(bytes, from, to);
  const lower = text.toLowerCase();
  if (text !== lower && text !== text.toUpperCase()) return false;
  if (!prefixes.some((prefix) => lower.startsWith(`${prefix}1`)) || !hasBech32Checksum(lower)) return false;
  hit.start = from;
  hit.end = to;
  hit.isOpen = false;
  return true;
}

const GENERATOR = [0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3];
const BECH32_CHECK = 1;
const BECH32M_CHECK = 0x2bc830a3;

/** BIP-173, and BIP-350 of later addresses. */
function hasBech32Checksum(text: string): boolean {
  const split = text.lastIndexOf('1');
  const prefix = [...Buffer.from(text.slice(0, split))];
  const data = text
    .slice(split + 1)
    .split('')
    .map((character) => BECH32_ALPHABET.indexOf(character));
  if (data.length < 6 || data.includes(-1)) return false;
  const values = [...prefix.map((code) => code >> 5), 0, ...prefix.map((code) => code & 31), ...data];
  let check = 1;
  for (const value of values) {
    const top = check >>> 25;
    check = ((check & 0x1ffffff) << 5) ^ value;
    GENERATOR.forEach((generator, bit) => {
      if (((top >> bit) & 1) === 1) check ^= generator;
    });
  }
  return check === BECH32_CHECK || check === BECH32M_CHECK;
}

/** Most begin with their first character, after one that belongs to no word. */
function anchorsOf(first: string): number[] {
  const befores = bytesIn(complementOf(WORD));
  return bytesIn(classOf(first)).flatMap((byte) => befores.map((before) => pairOf(before, byte)));
}

/** Prefixes that look like words are found at their end: `xprv9`, `nsec1`, `age-secret-key-`. */
function pairsOf(...pairs: readonly string[]): number[] {
  return pairs.map((pair) => pairOf(pair.charCodeAt(0), pair.charCodeAt(1)));
}

/** Where the word begins that has an anchor at `at`, which may be after its prefix; -1: nowhere. */
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
