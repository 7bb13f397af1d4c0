// Owns the buffers that request bodies lie in. A slab goes back to the pool when its last holder has released it: the
// request itself holds it, and so does every connection whose socket may still be reading from it, so that no other
// body ever lands under a send. Fresh large buffers are the dearest part of relaying big bodies (256 KB: 368 µs without
// a pool, 138 µs with it).

import { Buffer } from 'node:buffer';
import { assert } from './assert.ts';

/** Room before the body for the head of the upstream request, so that both are one send. */
export const SLAB_HEADROOM_BYTES = 1024;
/** Room behind it, so that a longer model id needs no second copy. */
export const SLAB_TAILROOM_BYTES = 256;

const SMALLEST_CLASS_BYTES = 2048;
const LARGEST_CLASS_BYTES = 1 << 20;
const CLASSES = Math.log2(LARGEST_CLASS_BYTES / SMALLEST_CLASS_BYTES) + 1;
const UNPOOLED = -1;

export interface Slab {
  readonly pool: SlabPool;
  /** Headroom, body, tailroom. */
  readonly buffer: Buffer;
  /** Where the body begins. */
  readonly bodyStart: number;
  /** The longest body that leaves the tailroom free; at least what was asked for. */
  readonly bodyBytesMax: number;
}

class PooledSlab implements Slab {
  readonly pool: SlabPool;
  readonly buffer: Buffer;
  readonly bodyStart = SLAB_HEADROOM_BYTES;
  readonly bodyBytesMax: number;
  readonly sizeClass: number;
  /** 0: the slab is free. */
  holders = 1;
  /** Whose body lies in it; null: it is counted for nobody. */
  share: Share | null = null;

  constructor(pool: SlabPool, bodyBytesMax: number, sizeClass: number) {
    this.pool = pool;
    this.buffer = Buffer.allocUnsafeSlow(SLAB_HEADROOM_BYTES + bodyBytesMax + SLAB_TAILROOM_BYTES);
    this.bodyBytesMax = bodyBytesMax;
    this.sizeClass = sizeClass;
  }
}

/** What an owner has of all that is lent. */
interface Share {
  lentBytes: number;
}

interface FreeList {
  readonly slabs: PooledSlab[];
  /** The fewest slabs that lay free since the last trim: nobody missed those. */
  unusedSinceTrim: number;
}

export interface SlabPoolOptions {
  /** Of slabs that nobody holds. */
  readonly freeBytesMax?: number;
  /**
   * Of slabs that somebody holds; of its last eighth only small bodies get any, and no owner gets more than is left for
   * all others.
   */
  readonly lentBytesMax?: number;
}

/** Bodies up to this size are served while big ones fill the pool. */
const SMALL_BYTES = 65_536;

/** Free lists by powers of two. Both what is idle and what is lent are bounded. */
export class SlabPool {
  readonly #freeBytesMax: number;
  readonly #free: FreeList[] = Array.from({ length: CLASSES }, () => ({ slabs: [], unusedSinceTrim: 0 }));
  #freeBytes = 0;
  #lent = 0;
  #lentBytes = 0;
  readonly #lentBytesMax: number;
  readonly #shares = new Map<string, Share>();

  constructor({ freeBytesMax = 64 << 20, lentBytesMax = Number.POSITIVE_INFINITY }: SlabPoolOptions = {}) {
    this.#freeBytesMax = freeBytesMax;
    this.#lentBytesMax = lentBytesMax;
  }

  /**
   * null: as much as may be is lent, or the owner would hold more than would then be left. So one owner alone gets half
   * of all, two get two thirds, and some is always left for one more. `replaced`: of the same owner, and given back at
   * once.
   */
  tryAcquire(bodyBytes: number, owner: string, replaced: Slab | null = null): Slab | null {
    const bytesMax = bodyBytes > SMALL_BYTES ? this.#lentBytesMax * 0.875 : this.#lentBytesMax;
    if (this.#lentBytes + bodyBytes > bytesMax) return null;
    const share = this.#shareOf(owner);
    const moreBytes = bodyBytes - (replaced?.buffer.byteLength ?? 0);
    if (share.lentBytes + moreBytes > this.#lentBytesMax - this.#lentBytes - moreBytes) return null;
    const slab = this.acquire(bodyBytes);
    this.#count(this.#ownSlab(slab), share);
    return slab;
  }

  /** It is known now whose body lies in it. */
  giveTo(slab: Slab, owner: string): void {
    this.#count(this.#ownSlab(slab), this.#shareOf(owner));
  }

  #shareOf(owner: string): Share {
    let share = this.#shares.get(owner);
    if (share === undefined) {
      share = { lentBytes: 0 };
      this.#shares.set(owner, share);
    }
    return share;
  }

  #count(slab: PooledSlab, share: Share | null): void {
    const bytes = slab.buffer.byteLength;
    if (slab.share !== null) slab.share.lentBytes -= bytes;
    if (share !== null) share.lentBytes += bytes;
    slab.share = share;
  }

  /**
   * The caller is the first holder. The contents are whatever the last body left: only what the caller wrote may be
   * sent.
   */
  acquire(bodyBytes: number): Slab {
    assert(Number.isSafeInteger(bodyBytes) && bodyBytes >= 0, 'a slab is asked for with an impossible size');
    this.#lent++;
    const slab = this.#take(bodyBytes);
    this.#lentBytes += slab.buffer.byteLength;
    return slab;
  }

  #take(bodyBytes: number): PooledSlab {
    if (bodyBytes > LARGEST_CLASS_BYTES) return new PooledSlab(this, bodyBytes, UNPOOLED);
    const sizeClass = bodyBytes <= SMALLEST_CLASS_BYTES ? 0 : 32 - Math.clz32((bodyBytes - 1) >> 11);
    const list = this.#list(sizeClass);
    const slab = list.slabs.pop();
    if (slab === undefined) return new PooledSlab(this, SMALLEST_CLASS_BYTES << sizeClass, sizeClass);
    this.#freeBytes -= slab.buffer.byteLength;
    if (list.slabs.length < list.unusedSinceTrim) list.unusedSinceTrim = list.slabs.length;
    slab.holders = 1;
    return slab;
  }

  /** Adds a holder, who releases the slab once nothing of its own reads or writes the slab any more. */
  retain(slab: Slab): void {
    this.#ownSlab(slab).holders += 1;
  }

  /** Ends one holding. The last one makes the slab free for another body; one more would lend it to two requests. */
  release(slab: Slab): void {
    const own = this.#ownSlab(slab);
    own.holders -= 1;
    if (own.holders > 0) return;
    this.#lent--;
    const bytes = own.buffer.byteLength;
    this.#lentBytes -= bytes;
    this.#count(own, null);
    if (own.sizeClass === UNPOOLED || this.#freeBytes + bytes > this.#freeBytesMax) return;
    this.#list(own.sizeClass).slabs.push(own);
    this.#freeBytes += bytes;
  }

  #ownSlab(slab: Slab): PooledSlab {
    assert(slab instanceof PooledSlab && slab.pool === this, 'a slab is held that is of no pool or of another one');
    assert(slab.holders > 0, 'a slab is held or released that nobody holds');
    return slab;
  }

  /** Drops what lay free all the time since the last trim. To be called every minute or so. */
  trim(): void {
    for (const [owner, { lentBytes }] of this.#shares) if (lentBytes === 0) this.#shares.delete(owner);
    for (const list of this.#free) {
      for (let dropped = 0; dropped < list.unusedSinceTrim; dropped++)
        this.#freeBytes -= list.slabs.shift()?.buffer.byteLength ?? 0;
      list.unusedSinceTrim = list.slabs.length;
    }
  }

  get freeBytes(): number {
    return this.#freeBytes;
  }

  /** Slabs that somebody holds now: 0 when the process is idle. */
  get lent(): number {
    return this.#lent;
  }

  get lentBytes(): number {
    return this.#lentBytes;
  }

  #list(sizeClass: number): FreeList {
    const list = this.#free[sizeClass];
    assert(list !== undefined, 'a slab has no size class');
    return list;
  }
}
