// What was relayed of a reply, kept for reading the usage once at its end and for counting tokens when the provider reported none.
// The first `headBytesMax` bytes are kept whole; of a longer reply also the last `tailBytesMax`, where the usage is.

const HEAD_BYTES_MAX = 262_144;
const TAIL_BYTES_MAX = 32_768;
const FIRST_GROWTH_BYTES = 4_096;

export class RelayedBytes {
  /** All bytes seen, kept or not. */
  totalBytes = 0;
  /** A single chunk is kept as it came, without a copy; growing begins with the second. */
  private head: Buffer | null = null;
  private headLength = 0;
  private headIsOwn = false;
  private tail: Buffer | null = null;
  private tailLength = 0;

  append(chunk: Buffer): void {
    this.totalBytes += chunk.length;
    if (this.head === null) {
      this.head = chunk.length <= HEAD_BYTES_MAX ? chunk : chunk.subarray(0, HEAD_BYTES_MAX);
      this.headLength = this.head.length;
      if (this.headLength < chunk.length) this.appendTail(chunk);
      return;
    }
    if (this.tail !== null) {
      this.appendTail(chunk);
      return;
    }
    const room = HEAD_BYTES_MAX - this.headLength;
    const kept = Math.min(room, chunk.length);
    this.reserveHead(this.headLength + kept);
    chunk.copy(this.head, this.headLength, 0, kept);
    this.headLength += kept;
    if (kept < chunk.length) {
      // The tail begins with the end of the head, so that a usage object across the border is found whole.
      this.appendTail(this.head.subarray(Math.max(0, this.headLength - TAIL_BYTES_MAX), this.headLength));
      this.appendTail(chunk.subarray(kept));
    }
  }

  private reserveHead(neededBytes: number): void {
    const head = this.head as Buffer;
    if (this.headIsOwn && head.length >= neededBytes) return;
    let size = Math.max(FIRST_GROWTH_BYTES, head.length);
    while (size < neededBytes) size *= 2;
    const grown = Buffer.allocUnsafeSlow(Math.min(size, HEAD_BYTES_MAX));
    head.copy(grown, 0, 0, this.headLength);
    this.head = grown;
    this.headIsOwn = true;
  }

  private appendTail(chunk: Buffer): void {
    this.tail ??= Buffer.allocUnsafeSlow(TAIL_BYTES_MAX * 2);
    if (chunk.length >= TAIL_BYTES_MAX) {
      chunk.copy(this.tail, 0, chunk.length - TAIL_BYTES_MAX);
      this.tailLength = TAIL_BYTES_MAX;
      return;
    }
    if (this.tailLength + chunk.length > this.tail.length) {
      this.tail.copyWithin(0, this.tailLength - TAIL_BYTES_MAX, this.tailLength);
      this.tailLength = TAIL_BYTES_MAX;
    }
    chunk.copy(this.tail, this.tailLength);
    this.tailLength += chunk.length;
  }

  /** Where the end of the reply lies, for a look at its last bytes without making a view: valid up to `endLength`. */
  get endBuffer(): Buffer {
    return this.tail ?? this.head ?? EMPTY;
  }

  get endLength(): number {
    return this.tail === null ? this.headLength : this.tailLength;
  }

  /** The end of the reply, contiguous: all of it while it is short. */
  end(): Buffer {
    return this.endBuffer.subarray(0, this.endLength);
  }

  /** The beginning of the reply, contiguous: all of it while it is short. */
  beginning(): Buffer {
    return this.head === null ? EMPTY : this.head.subarray(0, this.headLength);
  }
}

const EMPTY = Buffer.alloc(0);
