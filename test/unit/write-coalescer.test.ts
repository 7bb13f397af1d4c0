// A stream's bursts: the first piece goes out at once, what comes close behind it waits together, and nothing waits for
// long or grows.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { WriteCoalescer } from '../../src/generation/reply/coalesce.ts';
import { waitFor } from '../support/waiting.ts';

class NotedStream {
  readonly done: string[] = [];
  pause(): void {
    this.done.push('pause');
  }
  resume(): void {
    this.done.push('resume');
  }
  isBlocked = false;
  write(): boolean {
    this.done.push('write');
    return !this.isBlocked;
  }
}

const gathered = (stream: NotedStream, writes: number) =>
  waitFor(
    'what was gathered to be written',
    () => stream.done.filter((what) => what === 'write').length,
    (count) => count === writes,
  );

/** One piece that went out at once, and one behind it that was gathered. */
async function afterFirstBurst(): Promise<{ stream: NotedStream; coalescer: WriteCoalescer }> {
  const stream = new NotedStream();
  const coalescer = new WriteCoalescer(stream);
  coalescer.take(0, 100);
  coalescer.take(0.5, 100);
  await gathered(stream, 2);
  return { stream, coalescer };
}

describe('burst coalescer', () => {
  test('pieces apart from each other are written each as it comes', () => {
    const stream = new NotedStream();
    const coalescer = new WriteCoalescer(stream);
    for (const nowMs of [0, 5, 10, 11]) coalescer.take(nowMs, 100);
    assert.deepEqual(stream.done, ['write', 'write', 'write', 'write']);
  });

  test('a piece close behind another is held, nothing more is read, and later all is written in one', async () => {
    const stream = new NotedStream();
    const coalescer = new WriteCoalescer(stream);
    coalescer.take(0, 100);
    coalescer.take(0.1, 100);
    // One that was on its way already.
    coalescer.take(0.2, 200);
    assert.deepEqual(stream.done, ['write', 'pause']);
    await gathered(stream, 2);
    assert.deepEqual(stream.done, ['write', 'pause', 'resume', 'write']);
    // What is read between the going on and the end of that tick went along.
    await sleep(10);
    assert.equal(stream.done.length, 4);
  });

  test('a burst that goes on is gathered again; a pause ends it', async () => {
    const { stream, coalescer } = await afterFirstBurst();
    coalescer.take(1.2, 100);
    assert.equal(stream.done.at(-1), 'pause');
    await gathered(stream, 3);
    coalescer.take(9, 100);
    assert.equal(stream.done.filter((what) => what === 'write').length, 4);
  });

  test('behind two bursts the first piece after a pause goes out at once and is taken for the beginning of the next, until nothing follows it', async () => {
    const { stream, coalescer } = await afterFirstBurst();
    coalescer.take(16, 100);
    assert.equal(stream.done.at(-1), 'write', 'one may be chance');
    coalescer.take(16.5, 100);
    await gathered(stream, 4);
    coalescer.take(32, 100);
    assert.deepEqual(stream.done.slice(-2), ['write', 'pause']);
    coalescer.take(32.3, 100);
    await gathered(stream, 6);
    coalescer.take(48, 100);
    assert.deepEqual(stream.done.slice(-2), ['write', 'pause']);
    // Nothing came: the next one is a piece like others again.
    await gathered(stream, 8);
    coalescer.take(64, 100);
    assert.equal(stream.done.at(-1), 'write');
    await sleep(10);
    assert.equal(stream.done.at(-1), 'write');
  });

  test('a stream whose client takes nothing for now is not read on by it', async () => {
    const { stream, coalescer } = await afterFirstBurst();
    coalescer.take(16, 100);
    coalescer.take(16.5, 100);
    await gathered(stream, 4);
    const { length } = stream.done;
    stream.isBlocked = true;
    coalescer.take(32, 100);
    await sleep(10);
    assert.deepEqual(stream.done.slice(length), ['write']);
  });

  test('much is written at once, however close', () => {
    const stream = new NotedStream();
    const coalescer = new WriteCoalescer(stream);
    for (let piece = 0; piece < 5; piece++) coalescer.take(piece / 10, 65_536);
    assert.deepEqual(new Set(stream.done), new Set(['write']));
  });

  test('streams that gather at once have one timer', async () => {
    const streams = Array.from({ length: 20 }, () => new NotedStream());
    for (const stream of streams) {
      const coalescer = new WriteCoalescer(stream);
      coalescer.take(0, 1);
      coalescer.take(0.1, 1);
    }
    await gathered(streams.at(-1) as NotedStream, 2);
    for (const stream of streams) assert.deepEqual(stream.done, ['write', 'pause', 'resume', 'write']);
  });
});
