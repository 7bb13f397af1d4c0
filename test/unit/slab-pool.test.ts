// The slab pool: right sizes, no slab in two hands, bounded when idle.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { SLAB_HEADROOM_BYTES, SLAB_TAILROOM_BYTES, type Slab, SlabPool } from '../../src/platform/slab-pool.ts';

describe('slab pool', () => {
  test('a slab holds the body with room on both sides', () => {
    const pool = new SlabPool();
    for (const bytes of [0, 1, 2047, 2048, 2049, 4096, 4097, 65_536, 1 << 20, (1 << 20) + 1, 5_000_000]) {
      const slab = pool.acquire(bytes);
      assert.equal(slab.bodyStart, SLAB_HEADROOM_BYTES);
      assert.ok(slab.bodyBytesMax >= bytes);
      assert.ok(bytes <= 2048 || slab.bodyBytesMax < bytes * 2);
      assert.equal(slab.buffer.length, slab.bodyBytesMax + SLAB_HEADROOM_BYTES + SLAB_TAILROOM_BYTES);
      pool.release(slab);
    }
  });

  test('a released slab serves the next body of its class', () => {
    const pool = new SlabPool();
    const slab = pool.acquire(3000);
    pool.release(slab);
    assert.notEqual(pool.acquire(2000), slab);
    assert.notEqual(pool.acquire(5000), slab);
    assert.equal(pool.acquire(4096), slab);
    assert.notEqual(pool.acquire(4096), slab);
  });

  test('a slab with several holders serves no other body before the last of them has released it', () => {
    const pool = new SlabPool();
    const slab = pool.acquire(3000);
    pool.retain(slab);
    pool.retain(slab);
    for (const holders of [2, 1]) {
      pool.release(slab);
      assert.deepEqual([pool.lent, pool.freeBytes], [1, 0], `${holders} are left`);
      const other = pool.acquire(3000);
      assert.notEqual(other, slab);
      pool.release(other);
      pool.trim();
      pool.trim();
    }
    pool.release(slab);
    assert.equal(pool.lent, 0);
    assert.equal(pool.acquire(3000), slab);
  });

  test('a second release, and a slab from elsewhere, are bugs', () => {
    const pool = new SlabPool();
    for (const bytes of [100, 2 << 20]) {
      const slab = pool.acquire(bytes);
      pool.release(slab);
      assert.throws(() => pool.release(slab), /nobody holds/);
      assert.throws(() => pool.retain(slab), /nobody holds/);
      const foreign = new SlabPool().acquire(bytes);
      assert.throws(() => pool.release(foreign), /another one/);
    }
    assert.throws(() => pool.release({ pool, buffer: Buffer.alloc(10), bodyStart: 0, bodyBytesMax: 10 }));
    assert.throws(() => pool.acquire(-1));
    assert.throws(() => pool.acquire(Number.NaN));
    assert.equal(pool.lent, 0);
  });

  test('idle memory is bounded, and large bodies are not kept', () => {
    const pool = new SlabPool({ freeBytesMax: 100_000 });
    const slabs = Array.from({ length: 50 }, () => pool.acquire(8000));
    for (const slab of slabs) pool.release(slab);
    assert.ok(pool.freeBytes <= 100_000 && pool.freeBytes > 80_000);
    pool.release(pool.acquire(3 << 20));
    assert.ok(pool.freeBytes <= 100_000);
  });

  test('trim drops what nobody used since the last trim and keeps what was in use', () => {
    const pool = new SlabPool();
    const held = Array.from({ length: 10 }, () => pool.acquire(1000));
    for (const slab of held) pool.release(slab);
    pool.trim();
    const bytes = pool.freeBytes;
    const three = [pool.acquire(1), pool.acquire(1), pool.acquire(1)];
    for (const slab of three) pool.release(slab);
    pool.trim();
    assert.equal(pool.freeBytes, (bytes / 10) * 3);
    pool.trim();
    assert.equal(pool.freeBytes, 0);
    pool.trim();
    assert.equal(pool.freeBytes, 0);
  });

  test('no more is lent than may be, of the last eighth only to small bodies, and what comes back can be lent again', () => {
    const pool = new SlabPool({ lentBytesMax: 8 << 20 });
    const held = [pool.acquire(3 << 20), pool.acquire(3 << 20)];
    assert.equal(pool.tryAcquire(1 << 20, 'nobody'), null);
    const small: Slab[] = [];
    const next = (): Slab | null => pool.tryAcquire(65_536, `owner ${small.length}`);
    for (let slab = next(); slab !== null; slab = next()) small.push(slab);
    assert.ok(small.length > 20 && pool.lentBytes > 7 << 20);
    // The last may be larger than what was asked for, by its class and its headroom.
    assert.ok(pool.lentBytes <= (8 << 20) + 2048);
    for (const slab of [...held, ...small]) pool.release(slab);
    assert.equal(pool.lentBytes, 0);
    const again = pool.tryAcquire(4 << 20, 'one');
    assert.ok(again !== null);
    pool.release(again);
  });

  test('one owner gets half of what may be lent, whatever the pieces, and who comes after gets half of what is left', () => {
    const pool = new SlabPool({ lentBytesMax: 8 << 20 });
    const take = (owner: string, bytes: number): Slab[] => {
      const held: Slab[] = [];
      for (let slab = pool.tryAcquire(bytes, owner); slab !== null; slab = pool.tryAcquire(bytes, owner))
        held.push(slab);
      return held;
    };
    const first = [...take('one', 1 << 20), ...take('one', 10_000)];
    assert.ok(pool.lentBytes > 3.9 * (1 << 20) && pool.lentBytes <= (4 << 20) + 2048, String(pool.lentBytes));
    const second = take('two', 100_000);
    assert.ok(pool.lentBytes > 5 * (1 << 20) && pool.lentBytes <= (6 << 20) + 65_536, String(pool.lentBytes));
    const third = pool.tryAcquire(65_536, 'three');
    assert.ok(third !== null);
    pool.release(third);
    // What a larger one replaces is not counted beside it.
    const last = second.at(-1);
    assert.ok(last !== undefined && pool.tryAcquire(100_000, 'two') === null);
    const larger = pool.tryAcquire(100_000, 'two', last);
    assert.equal(larger?.bodyBytesMax, 131_072);
    for (const slab of first) pool.release(slab);
    assert.ok(pool.tryAcquire(1 << 20, 'one') !== null, 'what came back is counted no more');
  });

  test('what is lent before it is known whose the body is counts for its organization from then on', () => {
    const pool = new SlabPool({ lentBytesMax: 8 << 20 });
    const slab = pool.tryAcquire(3 << 20, 'strangers');
    assert.ok(slab !== null);
    pool.giveTo(slab, 'one');
    assert.equal(pool.tryAcquire(2 << 20, 'one'), null);
    const other = pool.tryAcquire(2 << 20, 'strangers');
    assert.ok(other !== null);
    pool.release(slab);
    assert.ok(pool.tryAcquire(2 << 20, 'one') !== null);
  });

  test('whatever the order, no slab is in two hands and the books agree', () => {
    const step = fc.oneof(
      fc.record({ acquire: fc.nat(1_100_000) }),
      fc.record({ release: fc.nat() }),
      fc.constant('trim' as const),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const pool = new SlabPool({ freeBytesMax: 4 << 20 });
        const out: Slab[] = [];
        for (const action of steps) {
          if (action === 'trim') pool.trim();
          else if ('acquire' in action) {
            const slab = pool.acquire(action.acquire);
            assert.ok(!out.includes(slab));
            assert.ok(slab.bodyBytesMax >= action.acquire);
            out.push(slab);
          } else if (out.length > 0) {
            const [slab] = out.splice(action.release % out.length, 1);
            if (slab !== undefined) pool.release(slab);
          }
          assert.equal(pool.lent, out.length);
          assert.ok(pool.freeBytes >= 0 && pool.freeBytes <= 4 << 20);
        }
      }),
      { numRuns: 100 },
    );
  });
});
