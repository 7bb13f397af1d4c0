// The buffer pool: right sizes, no buffer in two hands, bounded when idle.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { BufferPool, type PooledBuffer } from '../../src/platform/buffer-pool.ts';

describe('buffer pool', () => {
  test('a pooled buffer holds the body', () => {
    const pool = new BufferPool();
    for (const bytes of [0, 1, 2047, 2048, 2049, 4096, 4097, 65_536, 1 << 20, (1 << 20) + 1, 5_000_000]) {
      const pooled = pool.acquire(bytes);
      assert.ok(pooled.buffer.length >= bytes);
      assert.ok(bytes <= 2048 || pooled.buffer.length < bytes * 2);
      pool.release(pooled);
    }
  });

  test('a released pooled buffer serves the next body of its class', () => {
    const pool = new BufferPool();
    const pooled = pool.acquire(3000);
    pool.release(pooled);
    assert.notEqual(pool.acquire(2000), pooled);
    assert.notEqual(pool.acquire(5000), pooled);
    assert.equal(pool.acquire(4096), pooled);
    assert.notEqual(pool.acquire(4096), pooled);
  });

  test('a pooled buffer with several holders serves no other body before the last of them has released it', () => {
    const pool = new BufferPool();
    const pooled = pool.acquire(3000);
    pool.retain(pooled);
    pool.retain(pooled);
    for (const holders of [2, 1]) {
      pool.release(pooled);
      assert.deepEqual([pool.lent, pool.freeBytes], [1, 0], `${holders} are left`);
      const other = pool.acquire(3000);
      assert.notEqual(other, pooled);
      pool.release(other);
      pool.trim();
      pool.trim();
    }
    pool.release(pooled);
    assert.equal(pool.lent, 0);
    assert.equal(pool.acquire(3000), pooled);
  });

  test('a second release, and a pooled buffer from elsewhere, are bugs', () => {
    const pool = new BufferPool();
    for (const bytes of [100, 2 << 20]) {
      const pooled = pool.acquire(bytes);
      pool.release(pooled);
      assert.throws(() => pool.release(pooled), /nobody holds/);
      assert.throws(() => pool.retain(pooled), /nobody holds/);
      const foreign = new BufferPool().acquire(bytes);
      assert.throws(() => pool.release(foreign), /another one/);
    }
    assert.throws(() => pool.release({ pool, buffer: Buffer.alloc(10) }));
    assert.throws(() => pool.acquire(-1));
    assert.throws(() => pool.acquire(Number.NaN));
    assert.equal(pool.lent, 0);
  });

  test('idle memory is bounded, and large bodies are not kept', () => {
    const pool = new BufferPool({ freeBytesMax: 100_000 });
    const buffers = Array.from({ length: 50 }, () => pool.acquire(8000));
    for (const pooled of buffers) pool.release(pooled);
    assert.ok(pool.freeBytes <= 100_000 && pool.freeBytes > 80_000);
    pool.release(pool.acquire(3 << 20));
    assert.ok(pool.freeBytes <= 100_000);
  });

  test('trim drops what nobody used since the last trim and keeps what was in use', () => {
    const pool = new BufferPool();
    const held = Array.from({ length: 10 }, () => pool.acquire(1000));
    for (const pooled of held) pool.release(pooled);
    pool.trim();
    const bytes = pool.freeBytes;
    const three = [pool.acquire(1), pool.acquire(1), pool.acquire(1)];
    for (const pooled of three) pool.release(pooled);
    pool.trim();
    assert.equal(pool.freeBytes, (bytes / 10) * 3);
    pool.trim();
    assert.equal(pool.freeBytes, 0);
    pool.trim();
    assert.equal(pool.freeBytes, 0);
  });

  test('no more is lent than may be, of the last eighth only to small bodies, and what comes back can be lent again', () => {
    const pool = new BufferPool({ lentBytesMax: 8 << 20 });
    const held = [pool.acquire(3 << 20), pool.acquire(3 << 20)];
    assert.equal(pool.tryAcquire((1 << 20) + 1, 'nobody'), null);
    const small: PooledBuffer[] = [];
    const next = (): PooledBuffer | null => pool.tryAcquire(65_536, `owner ${small.length}`);
    for (let pooled = next(); pooled !== null; pooled = next()) small.push(pooled);
    assert.ok(small.length > 20 && pool.lentBytes > 7 << 20);
    // The last may be larger than what was asked for, by its class.
    assert.ok(pool.lentBytes <= (8 << 20) + 2048);
    for (const pooled of [...held, ...small]) pool.release(pooled);
    assert.equal(pool.lentBytes, 0);
    const again = pool.tryAcquire(4 << 20, 'one');
    assert.ok(again !== null);
    pool.release(again);
  });

  test('one owner gets half of what may be lent, whatever the pieces, and who comes after gets half of what is left', () => {
    const pool = new BufferPool({ lentBytesMax: 8 << 20 });
    const take = (owner: string, bytes: number): PooledBuffer[] => {
      const held: PooledBuffer[] = [];
      for (let pooled = pool.tryAcquire(bytes, owner); pooled !== null; pooled = pool.tryAcquire(bytes, owner))
        held.push(pooled);
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
    assert.equal(larger?.buffer.length, 131_072);
    for (const pooled of first) pool.release(pooled);
    assert.ok(pool.tryAcquire(1 << 20, 'one') !== null, 'what came back is counted no more');
  });

  test('what is lent before it is known whose the body is counts for its organization from then on', () => {
    const pool = new BufferPool({ lentBytesMax: 8 << 20 });
    const pooled = pool.tryAcquire(3 << 20, 'strangers');
    assert.ok(pooled !== null);
    pool.giveTo(pooled, 'one');
    assert.equal(pool.tryAcquire(2 << 20, 'one'), null);
    const other = pool.tryAcquire(2 << 20, 'strangers');
    assert.ok(other !== null);
    pool.release(pooled);
    assert.ok(pool.tryAcquire(2 << 20, 'one') !== null);
  });

  test('whatever the order, no pooled buffer is in two hands and the books agree', () => {
    const step = fc.oneof(
      fc.record({ acquire: fc.nat(1_100_000) }),
      fc.record({ release: fc.nat() }),
      fc.constant('trim' as const),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const pool = new BufferPool({ freeBytesMax: 4 << 20 });
        const out: PooledBuffer[] = [];
        for (const action of steps) {
          if (action === 'trim') pool.trim();
          else if ('acquire' in action) {
            const pooled = pool.acquire(action.acquire);
            assert.ok(!out.includes(pooled));
            assert.ok(pooled.buffer.length >= action.acquire);
            out.push(pooled);
          } else if (out.length > 0) {
            const [pooled] = out.splice(action.release % out.length, 1);
            if (pooled !== undefined) pool.release(pooled);
          }
          assert.equal(pool.lent, out.length);
          assert.ok(pool.freeBytes >= 0 && pool.freeBytes <= 4 << 20);
        }
      }),
      { numRuns: 100 },
    );
  });
});

test('a buffer for which there is no memory is not lent', (context) => {
  const pool = new BufferPool({ lentBytesMax: 1 << 20 });
  context.mock.method(Buffer, 'allocUnsafeSlow', () => {
    throw new Error('no memory');
  });
  assert.throws(() => pool.tryAcquire(10_000, 'acme'), /no memory/);
  assert.deepEqual([pool.lent, pool.lentBytes], [0, 0]);
});
