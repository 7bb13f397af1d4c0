// The two encodings of wallets' keys and addresses, read in place: Base58, and the checksum of bech32 (BIP-173 and
// BIP-350).

import { type ByteClass, classOf } from './characters.ts';

const BASE58_ALPHABET = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
export const BASE58: ByteClass = classOf(BASE58_ALPHABET);
const BASE58_DIGITS = digitsOf(BASE58_ALPHABET);
const BECH32_DIGITS = digitsOf('qpzry9x8gf2tvdw0s3jn54khce6mua7l');
const NONE = 255;

/** For each byte its value as a digit; NONE: it is no digit. */
function digitsOf(alphabet: string): Uint8Array {
  const digits = new Uint8Array(256).fill(255);
  for (let digit = 0; digit < alphabet.length; digit += 1) digits[alphabet.charCodeAt(digit)] = digit;
  return digits;
}

/** This many digits are less than a limb (58^4 < 2^24). */
const DIGITS_AT_ONCE = 4;
const LIMB = 2 ** 24;
const LIMB_BYTES = 3;
const LENGTH_MAX = 120;
/** A number in base 2^24, the lowest limb first: products of two of them are exact. */
const limbs = new Float64Array(32);
const decoded = Buffer.alloc(LENGTH_MAX);

/** The bytes that the Base58 digits from `from` to `to` stand for, at most 120; valid until the next call. */
export function decodeBase58(bytes: Uint8Array, from: number, to: number): Buffer {
  let used = 0;
  for (let place = from; place < to; place += DIGITS_AT_ONCE) {
    let scale = 1;
    let carry = 0;
    for (let at = place; at < place + DIGITS_AT_ONCE && at < to; at += 1) {
      carry = carry * 58 + (BASE58_DIGITS[bytes[at] as number] as number);
      scale *= 58;
    }
    for (let limb = 0; limb < used; limb += 1) {
      const value = (limbs[limb] as number) * scale + carry;
      carry = Math.floor(value / LIMB);
      limbs[limb] = value - carry * LIMB;
    }
    if (carry > 0) {
      limbs[used] = carry;
      used += 1;
    }
  }
  // Each leading digit 0 is a byte 0.
  let length = 0;
  while (from + length < to && BASE58_DIGITS[bytes[from + length] as number] === 0) decoded[length++] = 0;
  let isLeading = true;
  for (let limb = used - 1; limb >= 0; limb -= 1) {
    for (let shift = (LIMB_BYTES - 1) * 8; shift >= 0; shift -= 8) {
      const byte = ((limbs[limb] as number) >> shift) & 0xff;
      if (isLeading && byte === 0) continue;
      isLeading = false;
      decoded[length++] = byte;
    }
  }
  return decoded.subarray(0, length);
}

const GENERATOR = [0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3] as const;
const BECH32_CHECK = 1;
const BECH32M_CHECK = 0x2bc830a3;
const CHECKSUM_DIGITS = 6;
const BIT_OF_CASE = 0x20;

/**
 * Whether the text from `from` to `to` is all in one case and has the checksum of either form. `split`: the place of
 * the `1` between its prefix and its digits.
 */
export function passesBech32(bytes: Uint8Array, from: number, split: number, to: number): boolean {
  if (to - split - 1 < CHECKSUM_DIGITS || !isInOneCase(bytes, from, to)) return false;
  let check = 1;
  for (let at = from; at < split; at += 1) check = step(check, lowered(bytes[at] as number) >> 5);
  check = step(check, 0);
  for (let at = from; at < split; at += 1) check = step(check, lowered(bytes[at] as number) & 31);
  for (let at = split + 1; at < to; at += 1) {
    const digit = BECH32_DIGITS[lowered(bytes[at] as number)] as number;
    if (digit === NONE) return false;
    check = step(check, digit);
  }
  return check === BECH32_CHECK || check === BECH32M_CHECK;
}

function step(check: number, value: number): number {
  const top = check >>> 25;
  let next = ((check & 0x1ffffff) << 5) ^ value;
  for (let bit = 0; bit < GENERATOR.length; bit += 1) if (((top >> bit) & 1) === 1) next ^= GENERATOR[bit] as number;
  return next;
}

function lowered(byte: number): number {
  return byte >= 0x41 && byte <= 0x5a ? byte | BIT_OF_CASE : byte;
}

function isInOneCase(bytes: Uint8Array, from: number, to: number): boolean {
  let upper = 0;
  let lower = 0;
  for (let at = from; at < to; at += 1) {
    const byte = bytes[at] as number;
    if (byte >= 0x41 && byte <= 0x5a) upper = 1;
    else if (byte >= 0x61 && byte <= 0x7a) lower = 1;
  }
  return upper + lower < 2;
}
