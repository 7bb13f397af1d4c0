// What was relayed of a reply, kept for reading the usage once at its end and for counting tokens when the provider reported none.
// The first `HEAD_BYTES_MAX` bytes are kept whole; of a longer reply also the last `TAIL_BYTES_MAX`, where the usage is.
//
// They lie in blocks that are used again for the next reply: memory that grew with each stream kept the collector marking all of the
// process, which cost 15 % of an event's CPU in bursts.

import { Buffer } from 'node:buffer';

const HEAD_BYTES_MAX = 262_144;
const TAIL_BYTES_MAX = 32_768;
/** An open stream has at least one. */
const BLOCK_BYTES = 8_192;
const TAIL_BLOCKS_MAX = TAIL_BYTES_MAX / BLOCK_BYTES + 1;
const FREE_BLOCKS_MAX = 512;

const EMPTY = Buffer.alloc(0);

const freeBlocks: Buffer[] = [];

/** Where what lies in several blocks is put together to be read. One of each for all replies: reading is one step. */
let headTogether = EMPTY;
let tailTogether = EMPTY;
/** Whose beginning lies there, by its blocks, and up to which byte. */
let headOwner: readonly Buffer[] | null = null;
let headOwnerBytes = 0;

/** Of a reply that came in one piece. Nothing is ever added to it. */
const NO_BLOCKS: Buffer[] = [];

export class RelayedBytes {
  /** All bytes seen, kept or not. */
  totalBytes = 0;
  /** A reply that came in one piece is kept as it came, without a copy. */
  private only: Buffer | null = null;
  private head: Buffer[] = NO_BLOCKS;
  private headBytes = 0;
  /** The newest bytes beyond the head, in all that these blocks hold; full but for the last. */
  private tail: Buffer[] = NO_BLOCKS;
  private tailBytes = 0;

  append(chunk: Buffer): void {
    const isFirst = this.totalBytes === 0;
    this.totalBytes += chunk.length;
    if (isFirst && chunk.length <= HEAD_BYTES_MAX) {
      this.only = chunk;
      return;
    }
    if (this.head === NO_BLOCKS) this.head = [];
    const { only } = this;
    this.only = null;
    if (only !== null) this.keep(only);
    this.keep(chunk);
  }

  private keep(chunk: Buffer): void {
    let from = 0;
    while (from < chunk.length && this.headBytes < HEAD_BYTES_MAX) {
      const at = this.headBytes % BLOCK_BYTES;
      if (at === 0) this.head.push(takeBlock());
      const copied = chunk.copy(this.head.at(-1) as Buffer, at, from);
      from += copied;
      this.headBytes += copied;
    }
    // Of a long piece only its end will be asked for.
    from = Math.max(from, chunk.length - TAIL_BYTES_MAX - BLOCK_BYTES);
    while (from < chunk.length) {
      const at = this.tailBytes % BLOCK_BYTES;
      if (at === 0) this.addTailBlock();
      const copied = chunk.copy(this.tail.at(-1) as Buffer, at, from);
      from += copied;
      this.tailBytes += copied;
    }
  }

  /** The oldest one is used again once what it holds is too far from the end. */
  private addTailBlock(): void {
    if (this.tail === NO_BLOCKS) this.tail = [];
    if (this.tail.length < TAIL_BLOCKS_MAX) {
      this.tail.push(takeBlock());
      return;
    }
    this.tail.push(this.tail.shift() as Buffer);
    this.tailBytes -= BLOCK_BYTES;
  }

  /** The beginning of the reply, contiguous: all of it while it is short. To be read at once: it is gone when another reply is read. */
  beginning(): Buffer {
    if (this.only !== null) return this.only;
    const [first = EMPTY] = this.head;
    if (this.headBytes <= first.length) return first.subarray(0, this.headBytes);
    if (headOwner !== this.head || headOwnerBytes !== this.headBytes) {
      if (headTogether.length === 0) headTogether = Buffer.allocUnsafeSlow(HEAD_BYTES_MAX);
      for (const [index, block] of this.head.entries()) block.copy(headTogether, index * BLOCK_BYTES, 0, this.headBytes - index * BLOCK_BYTES);
      headOwner = this.head;
      headOwnerBytes = this.headBytes;
    }
    return headTogether.subarray(0, this.headBytes);
  }

  /** The end of the reply, contiguous: all of it while it is short. To be read at once, too. */
  end(): Buffer {
    if (this.tailBytes === 0) return this.beginning();
    if (tailTogether.length === 0) tailTogether = Buffer.allocUnsafeSlow(TAIL_BYTES_MAX);
    // From the newest block back, as far into the head as it takes.
    let left = TAIL_BYTES_MAX;
    for (const [blocks, bytes] of [
      [this.tail, this.tailBytes],
      [this.head, this.headBytes],
    ] as const) {
      for (let index = blocks.length - 1; index >= 0 && left > 0; index--) {
        const blockBytes = Math.min(BLOCK_BYTES, bytes - index * BLOCK_BYTES);
        const taken = Math.min(left, blockBytes);
        (blocks[index] as Buffer).copy(tailTogether, left - taken, blockBytes - taken, blockBytes);
        left -= taken;
      }
    }
    return tailTogether.subarray(left);
  }

  /** Nobody reads it any more. */
  release(): void {
    this.only = null;
    if (this.head === NO_BLOCKS) return;
    if (headOwner === this.head) headOwner = null;
    for (const blocks of [this.head, this.tail]) {
      for (const block of blocks) if (freeBlocks.length < FREE_BLOCKS_MAX) freeBlocks.push(block);
    }
    this.head = NO_BLOCKS;
    this.tail = NO_BLOCKS;
    this.headBytes = 0;
    this.tailBytes = 0;
  }
}

function takeBlock(): Buffer {
  return freeBlocks.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES);
}
