// Look-ups in a queue: so many at once, the next one when one has ended, refused beyond what may wait and for how long.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { FairQueue } from '../../src/platform/fair-queue.ts';

/** Work that ends when it is told to. */
class Works {
  readonly begun: number[] = [];
  readonly #end = new Map<number, () => void>();
  make(id: number): () => Promise<number> {
    return () => {
      this.begun.push(id);
      return new Promise((resolve) => this.#end.set(id, () => resolve(id)));
    };
  }
  end(id: number): void {
    this.#end.get(id)?.();
  }
}

describe('fair queue', () => {
  test('one begins when another has ended, in the order they came; who finds no room is refused at once', async () => {
    const queue = new FairQueue({ underWayMax: 2, waitingMax: 2, waitMsMax: 60_000 });
    const works = new Works();
    const answers = [1, 2, 3, 4, 5].map((id) => queue.run(works.make(id), 'refused'));
    assert.equal(await answers[4], 'refused');
    assert.deepEqual(works.begun, [1, 2]);
    works.end(2);
    assert.equal(await answers[1], 2);
    assert.deepEqual(works.begun, [1, 2, 3]);
    works.end(1);
    await answers[0];
    assert.deepEqual(works.begun, [1, 2, 3, 4]);
    for (const id of [3, 4]) works.end(id);
    assert.deepEqual(await Promise.all(answers), [1, 2, 3, 4, 'refused']);
  });

  test('who waits too long is refused, its work never begins, and its place is free', async () => {
    const queue = new FairQueue({ underWayMax: 1, waitingMax: 1, waitMsMax: 1 });
    const works = new Works();
    const first = queue.run(works.make(1), 'refused');
    assert.equal(await queue.run(works.make(2), 'refused'), 'refused');
    assert.equal(await queue.run(works.make(3), 'refused'), 'refused');
    works.end(1);
    assert.equal(await first, 1);
    const last = queue.run(works.make(4), 'refused');
    assert.deepEqual(works.begun, [1, 4]);
    works.end(4);
    assert.equal(await last, 4);
  });

  test('work that fails makes room as well', async () => {
    const queue = new FairQueue({ underWayMax: 1, waitingMax: 1, waitMsMax: 60_000 });
    await assert.rejects(
      queue.run(() => Promise.reject(new Error('away')), 'refused'),
      /away/,
    );
    assert.equal(await queue.run(() => Promise.resolve(1), 'refused'), 1);
  });

  test('sources take turns, however many of one wait', async () => {
    const queue = new FairQueue({ underWayMax: 1, waitingMax: 10, waitMsMax: 60_000 });
    const works = new Works();
    const sources = ['flood', 'flood', 'flood', 'flood', 'one', 'other', 'one'];
    const answers = sources.map((source, id) => queue.run(works.make(id), 'refused', source));
    for (const id of [0, 1, 4, 5, 2, 6, 3]) {
      works.end(id);
      await answers[id];
    }
    assert.deepEqual(works.begun, [0, 1, 4, 5, 2, 6, 3]);
  });

  test('in a full queue who has more than others gives way to who has less, down to equal shares', async () => {
    const queue = new FairQueue({ underWayMax: 1, waitingMax: 4, waitMsMax: 60_000 });
    const works = new Works();
    const sources = ['flood', 'flood', 'flood', 'flood', 'flood', 'flood', 'one', 'one', 'one'];
    const answers = sources.map((source, id) => queue.run(works.make(id), 'refused', source));
    for (const id of [5, 4, 3, 8]) assert.equal(await answers[id], 'refused');
    for (const id of [0, 1, 6, 2, 7]) {
      works.end(id);
      assert.equal(await answers[id], id);
    }
  });

  test('where a source has at most a part of the places, the others are left for the rest', async () => {
    const queue = new FairQueue({ underWayMax: 3, underWayOfSourceMax: 2, waitingMax: 10, waitMsMax: 60_000 });
    const works = new Works();
    const sources = ['slow', 'slow', 'slow', 'slow', 'one', 'one', 'other'];
    const answers = sources.map((source, id) => queue.run(works.make(id), 'refused', source));
    assert.deepEqual(works.begun, [0, 1, 4]);
    works.end(4);
    await answers[4];
    assert.deepEqual(works.begun, [0, 1, 4, 5]);
    works.end(0);
    await answers[0];
    assert.deepEqual(works.begun, [0, 1, 4, 5, 2]);
    for (const id of [5, 6, 1, 2, 3]) {
      works.end(id);
      await answers[id];
    }
    assert.deepEqual(works.begun, [0, 1, 4, 5, 2, 6, 3]);
  });

  test('work that throws before it waits for anything gives its place back', async () => {
    const queue = new FairQueue({ underWayMax: 1, waitingMax: 1, waitMsMax: 60_000 });
    const faulty = (): Promise<number> => {
      throw new Error('at once');
    };
    await assert.rejects(async () => queue.run(faulty, 'refused'), /at once/);
    assert.equal(await queue.run(async () => 2, 'refused'), 2);
  });
});
