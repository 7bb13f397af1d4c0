// Captures what was relayed of a reply: for the client's writes, for reading the usage at its end, and for counting
// tokens when the provider reported none. The first `HEAD_BYTES_MAX` bytes are kept whole; of a longer reply also the
// last `TAIL_BYTES_MAX`, where the usage mostly is, and the short values of what lies between (CondensedJson): of a
// document, or of a stream's last event that is longer than `TAIL_BYTES_MAX`.
//
// The bytes lie in blocks that serve one reply after another, and the client is written to from there. With fresh
// memory for each stream or each read the collector marked all of the process again and again (15 and 6 % of an event's
// CPU in bursts).

import { Buffer } from 'node:buffer';
import { BufferPool, type PooledBuffer } from '../../platform/buffer-pool.ts';
import { CondensedJson } from '../../platform/bytes/condensed-json.ts';
import { LongEvent } from '../sse/long-event.ts';
import { isDocument } from '../sse/usage-window.ts';

const HEAD_BYTES_MAX = 262_144;
const TAIL_BYTES_MAX = 32_768;
/** An open stream has at least one. */
const BLOCK_BYTES = 8_192;
const TAIL_BLOCKS_MAX = TAIL_BYTES_MAX / BLOCK_BYTES + 1;
const FREE_BLOCKS_MAX = 512;

interface Block {
  readonly bytes: Buffer;
  /** How many of its bytes hold something. A short piece that does not fit behind them lies in the next block. */
  used: number;
}

const EMPTY = Buffer.alloc(0);

const freeBlocks: Block[] = [];

/**
 * Where what lies in several blocks is put together to be read. Each buffer belongs to one reply until its `release`.
 */
const joinedPool = new BufferPool({ freeBytesMax: 4_194_304 });

/** Nothing is ever added to it. */
const NO_BLOCKS: Block[] = [];
const NO_BUFFERS: PooledBuffer[] = [];

export class CaptureBuffer {
  /** All bytes seen, kept or not. */
  totalBytes = 0;
  /** The memory of its own in which a reply is kept that came in one long piece. */
  private only: Buffer | null = null;
  /** All of a reply that came in one short piece. */
  private whole: Buffer | null = null;
  private head: Block[] = NO_BLOCKS;
  private headBytes = 0;
  /** The newest bytes beyond the head, in all that these blocks hold; full but for the last. */
  private tail: Block[] = NO_BLOCKS;
  /** Of a stream that is longer than the head. */
  private events: LongEvent | null = null;
  /** Of a document that is longer than the head. */
  private condensed: CondensedJson | null = null;
  /** The pooled buffers that hold what was joined of it. */
  private buffers: PooledBuffer[] = NO_BUFFERS;
  /** The beginning and the end, joined; null: not since the last piece. */
  private joinedBeginning: Buffer | null = null;
  private joinedEnd: Buffer | null = null;

  /**
   * Keeps what `piece` holds, whose memory may be used again afterwards; returns the same bytes in memory that stays as
   * it is until `release`.
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
    // Of a long piece only its end will be asked for.
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

  /** Both begin with what the head has: a document begins there, and so may the last event of a stream. */
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

  /** The last long event of a stream with its short values alone (LongEvent); null: there is none. */
  longEvent(): Buffer | null {
    return this.events?.read() ?? null;
  }

  /**
   * A document that is longer than the head with its short values alone, as far as it came (CondensedJson); null: it is
   * none, or even that is too long.
   */
  condensedDocument(): Buffer | null {
    const { condensed } = this;
    return condensed === null || condensed.isGivenUp ? null : Buffer.from(condensed.text, 'latin1');
  }

  /** The oldest one is used again once what it holds is too far from the end. */
  private addTailBlock(): Block {
    if (this.tail === NO_BLOCKS) this.tail = [];
    const block = this.tail.length < TAIL_BLOCKS_MAX ? takeBlock() : (this.tail.shift() as Block);
    block.used = 0;
    this.tail.push(block);
    return block;
  }

  /** The beginning of the reply, contiguous: all of it while it is short. It stays as it is until `release`. */
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

  /** The end of the reply, contiguous: all of it while it is short. It stays as it is until `release`, too. */
  end(): Buffer {
    if (this.tail.length === 0) return this.beginning();
    this.joinedEnd ??= this.joinEnd();
    return this.joinedEnd;
  }

  private joinEnd(): Buffer {
    const joined = this.takeMemory(TAIL_BYTES_MAX);
    // From the newest block back, as far into the head as it takes.
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

  /** To be called once nobody reads it any more or writes to the client from it. */
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
