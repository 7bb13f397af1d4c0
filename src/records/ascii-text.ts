// Puts a JSON text of ASCII characters together as bytes, piece by piece, in memory that is used again for the next
// one.

import { Buffer } from 'node:buffer';

const FIRST_BYTES = 4_096;
const DIGITS_MAX = 16;
const ZERO = 0x30;
const QUOTE = 0x22;
const MINUS = 0x2d;
const BILLION = 1_000_000_000;

/** JSON's strings need no escape where they look like this. */
const PLAIN = /^[ !#-[\]-~]*$/;
const BEYOND_ASCII = /[\u007f-\uffff]/g;

/** The JSON of a value, in ASCII: what is beyond is escaped, which means the same. */
export function jsonAscii(value: unknown): string {
  return JSON.stringify(value).replace(
    BEYOND_ASCII,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

export class AsciiText {
  /** Where the text lies, up to `end`. Another one once it has grown. */
  bytes: Buffer;
  private length = 0;

  constructor(bytes: number = FIRST_BYTES) {
    this.bytes = Buffer.allocUnsafeSlow(bytes);
  }

  /** The offset after the text. */
  get end(): number {
    return this.length;
  }

  /** Begins a text `at` this offset; what lies before it stays. */
  begin(at = 0): void {
    this.length = at;
    this.reserve(0);
  }

  put(piece: Buffer): void {
    this.reserve(piece.length);
    this.bytes.set(piece, this.length);
    this.length += piece.length;
  }

  /** The first so many of these bytes. */
  putBytes(bytes: Buffer, count: number): void {
    this.reserve(count);
    bytes.copy(this.bytes, this.length, 0, count);
    this.length += count;
  }

  /** One character, by its code. Only where `reserve` has made room, as with all that says "in room". */
  putByte(byte: number): void {
    this.bytes[this.length] = byte;
    this.length += 1;
  }

  putNull(): void {
    this.reserve(4);
    this.putByte(0x6e);
    this.putByte(0x75);
    this.putByte(0x6c);
    this.putByte(0x6c);
  }

  /** As it is: the text must be ASCII. */
  putAscii(text: string): void {
    this.reserve(text.length);
    this.length += this.bytes.write(text, this.length, 'latin1');
  }

  /**
   * As `putAscii`, in room, from its character `from` on: of a few characters, for which a native call costs more than
   * they do.
   */
  putShort(text: string, from = 0): void {
    const { bytes } = this;
    let { length } = this;
    for (let index = from; index < text.length; index++) bytes[length++] = text.charCodeAt(index);
    this.length = length;
  }

  /** As a JSON string, or null. */
  putQuoted(text: string | null): void {
    if (text === null) {
      this.putNull();
      return;
    }
    if (!PLAIN.test(text)) {
      this.putAscii(jsonAscii(text));
      return;
    }
    this.reserve(text.length + 2);
    this.bytes[this.length] = QUOTE;
    this.bytes.write(text, this.length + 1, 'latin1');
    this.length += text.length + 2;
    this.bytes[this.length - 1] = QUOTE;
  }

  /** As a JSON number, or null. */
  putNumber(value: number | null): void {
    if (value === null) this.putNull();
    else if (value < 10 && value >= 0 && (value | 0) === value) this.putDigit(value);
    else if (Number.isSafeInteger(value)) this.putInteger(value);
    else this.putAscii(String(value));
  }

  /** Money: a number as far as these are exact, else a decimal string; or null. */
  putAmount(value: bigint | null): void {
    if (value === null) {
      this.putNull();
      return;
    }
    const number = Number(value);
    if (Number.isSafeInteger(number)) this.putInteger(number);
    else this.putAscii(`"${value}"`);
  }

  private putInteger(value: number): void {
    if (value >= 0) {
      this.putWhole(value);
      return;
    }
    this.reserve(1);
    this.putByte(MINUS);
    this.putWhole(-value);
  }

  private putDigit(value: number): void {
    this.reserve(1);
    this.putByte(ZERO + value);
  }

  private putWhole(value: number): void {
    this.reserve(DIGITS_MAX);
    if (value < BILLION) {
      this.putDigits(value, digitsOf(value));
      return;
    }
    const high = Math.floor(value / BILLION);
    this.putDigits(high, digitsOf(high));
    this.putDigits(value - high * BILLION, 9);
  }

  private putDigits(value: number, digits: number): void {
    let left = value | 0;
    for (let at = this.length + digits - 1; at >= this.length; at--) {
      const tenth = (left / 10) | 0;
      this.bytes[at] = ZERO + left - tenth * 10;
      left = tenth;
    }
    this.length += digits;
  }

  /** Makes room for so many bytes more. */
  reserve(bytes: number): void {
    if (this.length + bytes <= this.bytes.length) return;
    const larger = Buffer.allocUnsafeSlow((this.length + bytes) * 2);
    this.bytes.copy(larger, 0, 0, this.length);
    this.bytes = larger;
  }
}

function digitsOf(value: number): number {
  let digits = 1;
  for (let bound = 10; value >= bound; bound *= 10) digits += 1;
  return digits;
}
