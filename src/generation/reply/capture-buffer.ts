// Captures a reply's bytes: the client is written to from here, the usage is read from here at the end, and tokens are
// counted from here when the provider reported none. The first `HEAD_BYTES_MAX` bytes are kept whole. Of a longer reply
// this also keeps the last `TAIL_BYTES_MAX` bytes, where the usage mostly is, and the short values (CondensedJson) of a
// document, or of a stream's last event if that is longer than `TAIL_BYTES_MAX`.
//
// The bytes lie in blocks that are reused by one reply after another. With fresh memory for each stream or each read,
// the garbage collector marked the whole process again and again (15 and 6 % of an event's CPU in bursts).

import { Buffer } from 'node:buffer';
import { BufferPool, type PooledBuffer } from '../../platform/buffer-pool.ts';
import { CondensedJson } from '../../platform/bytes/condensed-json.ts';
import { LongEvent } from '../sse/long-event.ts';
import { isDocument } from '../sse/usage-window.ts';

const HEAD_BYTES_MAX = 262_144;
const TAIL_BYTES_MAX = 32_768;
/** An open stream holds at least one block. */
const BLOCK_BYTES = 8_192;
const TAIL_BLOCKS_MAX = TAIL_BYTES_MAX / BLOCK_BYTES + 1;
const FREE_BLOCKS_MAX = 512;

interface Block {
  readonly bytes: Buffer;
  /** How many of the block's bytes are in use. A short piece that does not fit into the rest goes to the next block. */
  used: number;
}

const EMPTY = Buffer.alloc(0);

const freeBlocks: Block[] = [];

/** Buffers in which bytes of several blocks are joined for reading. Each belongs to one reply until its `release`. */
const joinedPool = new BufferPool({ freeBytesMax: 4_194_304 });

/** Shared by all replies and never modified. */
const NO_BLOCKS: Block[] = [];
const NO_BUFFERS: PooledBuffer[] = [];

export class CaptureBuffer {
  /** All bytes seen, kept or not. */
  totalBytes = 0;
  /** A reply that came in one long piece, in memory of its own. */
  private only: Buffer | null = null;
  /** A reply that came in one short piece, as a view of its block. */
  private whole: Buffer | null = null;
  private head: Block[] = NO_BLOCKS;
  private headBytes = 0;
  /** The newest bytes beyond the head. Every block but the last is full. */
  private tail: Block[] = NO_BLOCKS;
  /** Condenses the long events of a stream that is longer than the head. */
  private events: LongEvent | null = null;
  /** Condenses a document that is longer than the head. */
  private condensed: CondensedJson | null = null;
  /** The pooled buffers in which bytes of this reply are joined. */
  private buffers: PooledBuffer[] = NO_BUFFERS;
  /** The joined beginning and end; null: not joined since the last piece. */
  private joinedBeginning: Buffer | null = null;
  private joinedEnd: Buffer | null = null;

  /**
   * Keeps a copy of `piece`, whose memory may be reused afterwards. Returns the same bytes in memory that does not
   * change until `release`.
   */
  append(piece: Buffer): Buffer {
    const { length } = piece;
    const isFirst = this.totalBytes === 0;
    this.totalBytes += length;
    this.joinedBeginning = null;
    this.joinedEnd = null;
    if (length <= BLOCK_BYTES && this.only === null && this.headBytes + length <= HEAD_BYTES_MAX) {
      const kept = this.keepInOnePiece(piece, length);
      this.whole = isFirst ? kept : null;
      return kept;
    }
    this.whole = null;
    const lasting = Buffer.from(piece);
    if (isFirst && length <= HEAD_BYTES_MAX) {
      this.only = lasting;
      return lasting;
    }
    const { only } = this;
    this.only = null;
    if (only !== null) this.keep(only);
    this.keep(lasting);
    return lasting;
  }

  private keepInOnePiece(piece: Buffer, length: number): Buffer {
    let block = this.head.at(-1);
    if (block === undefined || block.used + length > BLOCK_BYTES) block = this.addHeadBlock();
    const from = block.used;
    piece.copy(block.bytes, from, 0, length);
    block.used = from + length;
    this.headBytes += length;
    return block.bytes.subarray(from, block.used);
  }

  private addHeadBlock(): Block {
    const block = takeBlock();
    if (this.head === NO_BLOCKS) this.head = [block];
    else this.head.push(block);
    return block;
  }

  private keep(piece: Buffer): void {
    let from = 0;
    while (from < piece.length && this.headBytes < HEAD_BYTES_MAX) {
      let block = this.head.at(-1);
      if (block === undefined || block.used === BLOCK_BYTES) block = this.addHeadBlock();
      const copied = piece.copy(block.bytes, block.used, from, from + HEAD_BYTES_MAX - this.headBytes);
      from += copied;
      block.used += copied;
      this.headBytes += copied;
    }
    if (from < piece.length) this.condense(piece.subarray(from));
    // Only the end of a long piece can be asked for later.
    from = Math.max(from, piece.length - TAIL_BYTES_MAX - BLOCK_BYTES);
    while (from < piece.length) {
      let block = this.tail.at(-1);
      if (block === undefined || block.used === BLOCK_BYTES) block = this.addTailBlock();
      const copied = piece.copy(block.bytes, block.used, from);
      from += copied;
      block.used += copied;
    }
  }

  private condense(beyond: Buffer): void {
    if (this.tail === NO_BLOCKS) this.beginCondensing();
    this.events?.feed(beyond);
    this.condensed?.pass(beyond);
  }

  /** Begins with the bytes of the head: a document begins there, and so may a stream's last event. */
  private beginCondensing(): void {
    const [first] = this.head;
    if (first === undefined) return;
    if (isDocument(first.bytes.subarray(0, first.used))) this.condensed = new CondensedJson();
    else this.events = new LongEvent(TAIL_BYTES_MAX);
    for (const { bytes, used } of this.head) {
      this.events?.feed(bytes.subarray(0, used));
      this.condensed?.pass(bytes.subarray(0, used));
    }
  }

  /** The last long event of a stream, reduced to its short values (LongEvent); null: there is none. */
  longEvent(): Buffer | null {
    return this.events?.read() ?? null;
  }

  /**
   * A document that is longer than the head, reduced to its short values, as far as it has come (CondensedJson); null:
   * the reply is no such document, or even its short values are too long.
   */
  condensedDocument(): Buffer | null {
    const { condensed } = this;
    return condensed === null || condensed.isGivenUp ? null : Buffer.from(condensed.text, 'latin1');
  }

  /** Reuses the oldest tail block once its bytes are too far from the end. */
  private addTailBlock(): Block {
    if (this.tail === NO_BLOCKS) this.tail = [];
    const block = this.tail.length < TAIL_BLOCKS_MAX ? takeBlock() : (this.tail.shift() as Block);
    block.used = 0;
    this.tail.push(block);
    return block;
  }

  /** The contiguous beginning of the reply, all of it while the reply is short. Does not change until `release`. */
  beginning(): Buffer {
    if (this.only !== null) return this.only;
    if (this.whole !== null) return this.whole;
    const [first] = this.head;
    if (first === undefined) return EMPTY;
    if (this.headBytes === first.used) return first.bytes.subarray(0, first.used);
    this.joinedBeginning ??= this.joinBeginning();
    return this.joinedBeginning;
  }

  private joinBeginning(): Buffer {
    const joined = this.takeMemory(this.headBytes);
    let at = 0;
    for (const { bytes, used } of this.head) at += bytes.copy(joined, at, 0, used);
    return joined;
  }

  /** The contiguous end of the reply, all of it while the reply is short. Does not change until `release`. */
  end(): Buffer {
    if (this.tail.length === 0) return this.beginning();
    this.joinedEnd ??= this.joinEnd();
    return this.joinedEnd;
  }

  private joinEnd(): Buffer {
    const joined = this.takeMemory(TAIL_BYTES_MAX);
    // Copies from the newest block backwards, into the head if necessary.
    let left = TAIL_BYTES_MAX;
    for (const blocks of [this.tail, this.head]) {
      for (let index = blocks.length - 1; index >= 0 && left > 0; index--) {
        const { bytes, used } = blocks[index] as Block;
        const taken = Math.min(left, used);
        bytes.copy(joined, left - taken, used - taken, used);
        left -= taken;
      }
    }
    return joined.subarray(left);
  }

  private takeMemory(bytes: number): Buffer {
    const pooled = joinedPool.acquire(bytes);
    if (this.buffers === NO_BUFFERS) this.buffers = [pooled];
    else this.buffers.push(pooled);
    return pooled.buffer.subarray(0, bytes);
  }

  /** Returns all memory. To be called once nobody reads the reply or writes to the client from it. */
  release(): void {
    this.only = null;
    this.whole = null;
    this.events = null;
    this.condensed = null;
    this.joinedBeginning = null;
    this.joinedEnd = null;
    for (const pooled of this.buffers) joinedPool.release(pooled);
    this.buffers = NO_BUFFERS;
    if (this.head === NO_BLOCKS) return;
    keepForOthers(this.head);
    keepForOthers(this.tail);
    this.head = NO_BLOCKS;
    this.tail = NO_BLOCKS;
    this.headBytes = 0;
  }
}

function keepForOthers(blocks: readonly Block[]): void {
  for (const block of blocks) if (freeBlocks.length < FREE_BLOCKS_MAX) freeBlocks.push(block);
}

function takeBlock(): Block {
  const block = freeBlocks.pop() ?? { bytes: Buffer.allocUnsafeSlow(BLOCK_BYTES), used: 0 };
  block.used = 0;
  return block;
}
