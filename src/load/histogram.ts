// Counts durations in an HdrHistogram: microseconds up to an hour, to three significant digits, in constant memory.
// The encoding is version 2 of the format that all HdrHistogram libraries read.

import { Buffer } from 'node:buffer';
import { deflateSync } from 'node:zlib';

const SIGNIFICANT_DIGITS = 3;
const HIGHEST_US = 3_600_000_000;
/** 2,048 values of equal width in each power of two: the smallest number that distinguishes three digits. */
const HALF_BITS = 10;
const HALF = 2 ** HALF_BITS;
const BUCKETS = 22;
const HEADER_BYTES = 40;
const COOKIE = 0x1c849313;
const COMPRESSED_COOKIE = 0x1c849314;

export class Histogram {
  private readonly counts = new Float64Array((BUCKETS + 1) * HALF);
  count = 0;
  private sum = 0;
  private max = 0;

  /** The largest value recorded, in microseconds. */
  get maxUs(): number {
    return this.max;
  }

  /** In microseconds; 0 without a value. */
  get meanUs(): number {
    return this.count === 0 ? 0 : this.sum / this.count;
  }

  record(microseconds: number): void {
    const value = Math.min(Math.max(Math.round(microseconds), 0), HIGHEST_US);
    const at = indexOf(value);
    this.counts[at] = (this.counts[at] ?? 0) + 1;
    this.count += 1;
    this.sum += value;
    if (value > this.max) this.max = value;
  }

  /**
   * The smallest recorded value, in microseconds, such that `percent` of all values are not above it; 0 without a
   * value.
   */
  percentileUs(percent: number): number {
    const wanted = Math.max(1, Math.ceil((percent / 100) * this.count));
    let seen = 0;
    for (let at = 0; at < this.counts.length; at++) {
      seen += this.counts[at] ?? 0;
      if (seen >= wanted) return Math.min(highestAt(at), this.max);
    }
    return 0;
  }

  /** Returns encoding version 2, deflated: the bytes that a line of a histogram log contains in base64. */
  encode(): Buffer {
    const payload = this.encodeCounts();
    const head = Buffer.alloc(HEADER_BYTES);
    head.writeInt32BE(COOKIE, 0);
    head.writeInt32BE(payload.length, 4);
    head.writeInt32BE(SIGNIFICANT_DIGITS, 12);
    head.writeBigInt64BE(1n, 16);
    head.writeBigInt64BE(BigInt(HIGHEST_US), 24);
    head.writeDoubleBE(1, 32);
    const deflated = deflateSync(Buffer.concat([head, payload]));
    const start = Buffer.alloc(8);
    start.writeInt32BE(COMPRESSED_COOKIE, 0);
    start.writeInt32BE(deflated.length, 4);
    return Buffer.concat([start, deflated]);
  }

  /** Writes each count, and each run of two or more zeros as one negative number. */
  private encodeCounts(): Buffer {
    const end = this.count === 0 ? 0 : indexOf(this.max) + 1;
    const bytes: number[] = [];
    let zeros = 0;
    for (let at = 0; at < end; at++) {
      const count = this.counts[at] ?? 0;
      if (count === 0) {
        zeros += 1;
        continue;
      }
      if (zeros > 0) pushZigZag(bytes, zeros === 1 ? 0n : BigInt(-zeros));
      zeros = 0;
      pushZigZag(bytes, BigInt(count));
    }
    return Buffer.from(bytes);
  }
}

function indexOf(value: number): number {
  const bucket = value < 2 * HALF ? 0 : Math.floor(Math.log2(value)) - HALF_BITS;
  return bucket * HALF + Math.floor(value / 2 ** bucket);
}

/** The highest value that is counted at this index. */
function highestAt(index: number): number {
  const bucket = Math.max(0, Math.floor(index / HALF) - 1);
  return (index - bucket * HALF + 1) * 2 ** bucket - 1;
}

/** Writes the sign in the lowest bit, then seven bits per byte, lowest first. */
function pushZigZag(bytes: number[], value: bigint): void {
  let left = value < 0n ? -2n * value - 1n : 2n * value;
  while (left >= 0x80n) {
    bytes.push(Number(left & 0x7fn) | 0x80);
    left >>= 7n;
  }
  bytes.push(Number(left));
}
