// When a look-up may say that there is nothing: all that any gateway had recorded before it is posted.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PostingFence } from '../../src/gateway/generation/posting-fence.ts';
import { systemClock } from '../../src/platform/clock.ts';
import {
  type OpenSpool,
  POSTING_WANTED_CHANNEL,
  SPOOLS_ASKED_CHANNEL,
  SPOOLS_TOLD_CHANNEL,
} from '../../src/storage/postgres/ledger/open-spools.ts';
import type { SpoolEnd } from '../../src/storage/spool/spool-directory.ts';
import { waitFor } from '../support/waiting.ts';

const LONG_MS = 60_000;
const HOUR_MS = 3_600_000;

/** Gateways by epoch, on machines that each have a spool directory, before one database that carries notifications. */
class Cluster {
  readonly open = new Map<number, OpenSpool>();
  readonly fences: PostingFence[] = [];
  lists = 0;
  asked = 0;
  wanted = 0;

  gateway(epoch: number, directory: ReadonlyMap<number, SpoolEnd | null>, clock = systemClock): PostingFence {
    this.begin(epoch);
    const fence = new PostingFence({
      epoch,
      readSpoolEnds: () => directory,
      listOpenSpools: async () => {
        this.lists += 1;
        return [...this.open.values()];
      },
      notify: async (channel, payload) => {
        if (channel === SPOOLS_ASKED_CHANNEL) this.asked += 1;
        if (channel === POSTING_WANTED_CHANNEL) this.wanted += 1;
        for (const other of this.fences)
          if (channel === SPOOLS_ASKED_CHANNEL) other.answer(payload);
          else if (channel === SPOOLS_TOLD_CHANNEL) other.hear(payload);
          else other.hearWanted();
      },
      clock,
    });
    this.fences.push(fence);
    return fence;
  }

  begin(epoch: number, quietMs = 0): void {
    this.open.set(epoch, { epoch, posted: null, quietMs });
  }

  post(epoch: number, segment: number, offset: number): void {
    this.open.set(epoch, { epoch, posted: { segment, offset }, quietMs: 0 });
  }

  async looksMore(): Promise<void> {
    const before = this.lists;
    await waitFor(
      'two more looks',
      () => this.lists,
      (count) => count >= before + 2,
    );
  }
}

/** What it resolved to; null: it waits. */
function outcomeOf(passed: Promise<boolean>): { value: boolean | null } {
  const outcome: { value: boolean | null } = { value: null };
  void passed.then((value) => (outcome.value = value));
  return outcome;
}

test('what is in the spools of this machine when it is asked is waited for, and not what comes later', async () => {
  const cluster = new Cluster();
  const directory = new Map<number, SpoolEnd | null>([
    [1, null],
    [2, { segment: 3, bytes: 100 }],
  ]);
  const fence = cluster.gateway(1, directory);
  cluster.post(2, 3, 99);
  const passed = fence.passed(LONG_MS);
  const outcome = outcomeOf(passed);
  await cluster.looksMore();
  assert.equal(outcome.value, null);
  directory.set(2, { segment: 3, bytes: 500 });
  cluster.post(2, 3, 100);
  assert.equal(await passed, true);
  assert.equal(cluster.asked, 0);
});

test('jobs is told that somebody waits: once for all who come at once, and again a while later', async () => {
  const cluster = new Cluster();
  let nowMs = 0;
  const directory = new Map([
    [1, { segment: 1, bytes: 1 }],
    [2, { segment: 1, bytes: 1 }],
  ]);
  const clock = { ...systemClock, monotonicMs: () => nowMs };
  const [fence, other] = [cluster.gateway(1, directory, clock), cluster.gateway(2, directory, clock)];
  cluster.post(2, 1, 1);
  const waiting = Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? fence : other).passed(LONG_MS));
  await cluster.looksMore();
  assert.equal(cluster.wanted, 1);
  nowMs += 60;
  await cluster.looksMore();
  assert.equal(cluster.wanted, 2, 'the first may have come while jobs was posting something else');
  cluster.post(1, 1, 1);
  assert.deepEqual(new Set(await Promise.all(waiting)), new Set([true]));
  nowMs += 60;
  assert.equal(await fence.passed(LONG_MS), true);
  assert.equal(cluster.wanted, 2, 'nothing was left to post');
});

test('a later segment that is posted, a closed epoch and an empty spool have nothing left', async () => {
  const cluster = new Cluster();
  const fence = cluster.gateway(
    1,
    new Map<number, SpoolEnd | null>([
      [1, null],
      [2, { segment: 3, bytes: 100 }],
      [3, { segment: 1, bytes: 100 }],
    ]),
  );
  cluster.post(2, 4, 1);
  assert.equal(await fence.passed(LONG_MS), true);
});

test('where postings take too long it says so; many who wait make one look, too many do not wait', async () => {
  const cluster = new Cluster();
  const fence = cluster.gateway(1, new Map([[1, { segment: 1, bytes: 1 }]]));
  assert.equal(await fence.passed(1), false);
  const waiting = Array.from({ length: 256 }, () => fence.passed(LONG_MS));
  const lists = cluster.lists;
  assert.equal(await fence.passed(LONG_MS), false);
  assert.ok(cluster.lists - lists <= 3, `${cluster.lists - lists} looks`);
  cluster.post(1, 1, 1);
  assert.deepEqual(new Set(await Promise.all(waiting)), new Set([true]));
  assert.equal(await fence.passed(1), true);
});

test('gateways of another machine tell how far all spools there are written, also those of dead ones', async () => {
  const cluster = new Cluster();
  const fence = cluster.gateway(1, new Map([[1, null]]));
  cluster.gateway(
    2,
    new Map<number, SpoolEnd | null>([
      [2, { segment: 1, bytes: 10 }],
      [3, { segment: 1, bytes: 20 }],
    ]),
  );
  cluster.begin(3);
  cluster.post(2, 1, 10);
  const passed = fence.passed(LONG_MS);
  const outcome = outcomeOf(passed);
  await cluster.looksMore();
  assert.equal(outcome.value, null, 'the dead one is not posted');
  assert.ok(cluster.asked >= 1);
  cluster.post(3, 1, 20);
  assert.equal(await passed, true);
});

test('a machine that does not answer may hold something for a while, and not for ever', async () => {
  const cluster = new Cluster();
  const fence = cluster.gateway(1, new Map([[1, null]]));
  cluster.begin(9);
  assert.equal(await fence.passed(100), false);
  cluster.begin(9, HOUR_MS);
  assert.equal(await fence.passed(100), true);
});

test('a database that cannot be asked is a fault for each who waits, and the next one asks again', async () => {
  let away = true;
  const fence = new PostingFence({
    epoch: 1,
    readSpoolEnds: () => new Map(),
    listOpenSpools: async () => {
      if (away) throw new Error('away');
      return [];
    },
    notify: async () => undefined,
    clock: systemClock,
  });
  await assert.rejects(fence.passed(LONG_MS), /away/);
  away = false;
  assert.equal(await fence.passed(LONG_MS), true);
});
