// The catalog that a gateway holds: what may have changed is loaded until that succeeds, one load at a time, and an
// older catalog replaces none.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Catalog } from '../../src/domain/models/catalog.ts';
import { HeldCatalog } from '../../src/gateway/generation/held-catalog.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { NO_ROUTING } from '../support/no-routing.ts';
import { silentLog } from '../support/silent-log.ts';

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('what may have changed is loaded until that succeeds, once for all who say so meanwhile', async ({ mock }) => {
  mock.timers.enable({ apis: ['setTimeout'] });
  let version = 1;
  let isAway = false;
  let loads = 0;
  const load = async (): Promise<Catalog> => {
    loads += 1;
    if (isAway) throw new Error('away');
    return { version, models: [], byName: new Map(), routing: NO_ROUTING };
  };
  const held = await HeldCatalog.load({ load, clock: systemClock, log: silentLog });
  const change = async (): Promise<void> => {
    held.mayHaveChanged();
    await settled();
  };
  isAway = true;
  await change();
  assert.deepEqual([held.present.version, loads], [1, 2]);
  isAway = false;
  version = 3;
  for (let times = 0; times < 10; times += 1) await change();
  assert.equal(loads, 2, 'a second after one that failed');
  mock.timers.tick(1_000);
  await settled();
  assert.deepEqual([held.present.version, loads], [3, 3]);
  // As a standby answers that is behind.
  version = 2;
  mock.timers.tick(50);
  await change();
  assert.deepEqual([held.present.version, loads], [3, 4]);
  held.close();
});

test('what is closed is not loaded again, also where a load was under way', async ({ mock }) => {
  mock.timers.enable({ apis: ['setTimeout'] });
  let loads = 0;
  let fail = (): void => {};
  const load = (): Promise<Catalog> => {
    loads += 1;
    if (loads === 1) return Promise.resolve({ version: 1, models: [], byName: new Map(), routing: NO_ROUTING });
    return new Promise((_, reject) => {
      fail = () => reject(new Error('the pool has ended'));
    });
  };
  const held = await HeldCatalog.load({ load, clock: systemClock, log: silentLog });
  held.mayHaveChanged();
  held.mayHaveChanged();
  held.close();
  fail();
  await settled();
  held.mayHaveChanged();
  for (let seconds = 0; seconds < 3; seconds += 1) {
    mock.timers.tick(1_000);
    await settled();
  }
  assert.equal(loads, 2);
});
