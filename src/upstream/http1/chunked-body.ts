// Decodes the chunked body of a reply (RFC 9112, 7.1), however the reads split it. Extensions and trailers are checked,
// limited and dropped.

import type { Buffer } from 'node:buffer';
import type { ReplyFault } from './reply-head.ts';

/** The limit of a size line with its extensions; no honest server comes near it. */
const SIZE_LINE_BYTES_MAX = 4_096;
const SIZE_DIGITS_MAX = 16;
const CHUNK_BYTES_MAX = 2 ** 48;
const TRAILER_BYTES_MAX = 16_384;

const CR = 0x0d;
const LF = 0x0a;
const TAB = 0x09;
const SPACE = 0x20;
const COLON = 0x3a;
const SEMICOLON = 0x3b;
const DELETE = 0x7f;

/** The part of the body to which the next byte belongs. */
type Place =
  | 'size'
  | 'before_extension'
  | 'extension'
  | 'size_lf'
  | 'content'
  | 'content_cr'
  | 'content_lf'
  | 'trailer'
  | 'trailer_lf'
  | 'over';

const HEX_DIGITS = new Int8Array(256).fill(-1);
for (let digit = 0; digit < 16; digit++) {
  HEX_DIGITS[digit.toString(16).charCodeAt(0)] = digit;
  HEX_DIGITS[digit.toString(16).toUpperCase().charCodeAt(0)] = digit;
}

/** The characters of a trailer's name (RFC 9110, 5.6.2). */
const IS_TOKEN = new Uint8Array(256);
for (const character of "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
  IS_TOKEN[character.charCodeAt(0)] = 1;

export class ChunkedBody {
  /** The last chunk and the trailers were read. */
  over = false;
  fault: ReplyFault | null = null;
  private place: Place = 'size';
  /** The present chunk's size while its size line is read, then how many of its bytes are missing. */
  private left = 0;
  private sizeDigits = 0;
  /** The number of bytes so far of the size line, or of all trailers. */
  private lineBytes = 0;
  /** The number of bytes so far of the present trailer line, and whether its name has ended. */
  private trailerLineBytes = 0;
  private trailerNamed = false;

  /**
   * Decodes `bytes` from `start` to `end`. `at`: where the body ended, or `end`. `content`: a view of the decoded
   * bytes, which are moved together within `bytes`; with a fault, the bytes before it. Decoding is done in place,
   * because an allocation for each read kept the garbage collector busy.
   */
  read(bytes: Buffer, start: number, end: number): { readonly at: number; readonly content: Buffer | null } {
    let contentStart = 0;
    let contentEnd = 0;
    let at = start;
    while (at < end && !this.over && this.fault === null) {
      if (this.place === 'content') {
        const taken = Math.min(this.left, end - at);
        if (contentEnd === 0) contentStart = contentEnd = at;
        if (contentEnd !== at) bytes.copy(bytes, contentEnd, at, at + taken);
        contentEnd += taken;
        at += taken;
        this.left -= taken;
        if (this.left === 0) this.place = 'content_cr';
      } else {
        this.readByte(bytes[at] as number);
        at += 1;
      }
    }
    return { at, content: contentEnd === 0 ? null : bytes.subarray(contentStart, contentEnd) };
  }

  private readByte(byte: number): void {
    switch (this.place) {
      case 'size':
        this.readSize(byte);
        return;
      case 'before_extension':
      case 'extension':
        this.readExtension(byte);
        return;
      case 'size_lf':
        if (byte !== LF) this.fault = 'a chunk size without its end';
        else this.beginChunk();
        return;
      case 'content_cr':
        if (byte !== CR) this.fault = 'a chunk longer than its size';
        else this.place = 'content_lf';
        return;
      case 'content_lf':
        if (byte !== LF) this.fault = 'a chunk longer than its size';
        else this.beginSize();
        return;
      case 'trailer':
        this.readTrailer(byte);
        return;
      case 'trailer_lf':
        if (byte !== LF) this.fault = 'a bare CR in the trailers';
        else if (this.trailerLineBytes === 0) this.over = true;
        else this.beginTrailerLine();
        return;
      case 'content':
      case 'over':
    }
  }

  private beginSize(): void {
    this.place = 'size';
    this.left = 0;
    this.sizeDigits = 0;
    this.lineBytes = 0;
  }

  private readSize(byte: number): void {
    const digit = HEX_DIGITS[byte] as number;
    if (digit >= 0) {
      this.left = this.left * 16 + digit;
      this.sizeDigits += 1;
      if (this.sizeDigits > SIZE_DIGITS_MAX || this.left > CHUNK_BYTES_MAX)
        this.fault = 'a chunk size beyond all measure';
    } else if (this.sizeDigits === 0) {
      this.fault = 'a chunk without a size';
    } else if (byte === CR) {
      this.place = 'size_lf';
    } else if (byte === SEMICOLON) {
      this.place = 'extension';
    } else if (byte === SPACE || byte === TAB) {
      this.place = 'before_extension';
    } else {
      this.fault = 'a chunk size that is no number';
    }
  }

  private readExtension(byte: number): void {
    this.lineBytes += 1;
    if (this.lineBytes > SIZE_LINE_BYTES_MAX) {
      this.fault = 'a chunk extension beyond all measure';
    } else if (this.place === 'before_extension') {
      // Blanks may precede an extension (RFC 9112, 7.1.1), but not the end of the line.
      if (byte === SEMICOLON) this.place = 'extension';
      else if (byte !== SPACE && byte !== TAB) this.fault = 'a chunk size that is no number';
    } else if (byte === CR) {
      this.place = 'size_lf';
    } else if (isControl(byte)) {
      this.fault = 'a control character in a chunk extension';
    }
  }

  private beginChunk(): void {
    if (this.left > 0) {
      this.place = 'content';
      return;
    }
    this.lineBytes = 0;
    this.beginTrailerLine();
  }

  private beginTrailerLine(): void {
    this.place = 'trailer';
    this.trailerLineBytes = 0;
    this.trailerNamed = false;
  }

  private readTrailer(byte: number): void {
    this.lineBytes += 1;
    if (this.lineBytes > TRAILER_BYTES_MAX) {
      this.fault = 'trailers beyond all measure';
    } else if (byte === CR && (this.trailerNamed || this.trailerLineBytes === 0)) {
      this.place = 'trailer_lf';
    } else if (this.trailerNamed ? isControl(byte) : !this.readTrailerName(byte)) {
      this.fault = 'a trailer that is none';
    } else {
      this.trailerLineBytes += 1;
    }
  }

  /** False when the byte is not allowed in a name, or ends an empty one. */
  private readTrailerName(byte: number): boolean {
    if (byte !== COLON) return IS_TOKEN[byte] === 1;
    this.trailerNamed = true;
    return this.trailerLineBytes > 0;
  }
}

function isControl(byte: number): boolean {
  return (byte < SPACE && byte !== TAB) || byte === DELETE;
}
