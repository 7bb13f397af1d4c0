// The short form of the isolation run (README.md here): nobody ever sees a foreign mark, and each fault that is planted in a gateway is found.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startLoneGateway } from './installation.ts';
import { Isolation, type IsolationOptions } from './isolate.ts';
import { PLANTED_FAULTS } from './planted-faults.ts';

/** A seed that found something stays here. By seed 2 main had another tenant's prompt in a stalled provider's request before buffers counted their holders. */
const SEEDS = [2, 7] as const;
const OPTIONS: Omit<IsolationOptions, 'seed'> = { from: 1, exchanges: 1_200, atOnce: 16, isLight: false, lookUpsEvery: 1_000, rollEvery: 800 };
/** Of those with a planted fault at the most: they end at the first that is found. */
const PLANTED_EXCHANGES = 6_000;

describe('isolation of tenants', () => {
  let isolation: Isolation;

  before(async () => {
    isolation = await Isolation.start(2);
  });

  after(async () => {
    await isolation?.stop();
  });

  for (const seed of SEEDS) {
    test(`seed ${seed}: nobody sees a foreign mark`, async () => {
      const watch = await isolation.run({ ...OPTIONS, seed });
      const again = `node test/isolation/run.ts --seed ${seed} --exchanges ${OPTIONS.exchanges} --at-once ${OPTIONS.atOnce}`;
      assert.equal(watch.violationCount, 0, `${watch.report()}\nagain: ${again}`);
      assert.ok((watch.answers.get('provider 200') ?? 0) > OPTIONS.exchanges / 2, watch.report());
    });
  }

  for (const { name, found } of PLANTED_FAULTS) {
    test(`found when planted: ${name}`, async () => {
      const gateway = await startLoneGateway(isolation.tollgate, name);
      try {
        const watch = await isolation.run({ ...OPTIONS, seed: 2, exchanges: PLANTED_EXCHANGES, rollEvery: 0, instead: gateway, endsAtFirst: true });
        assert.ok(watch.countOf(found) > 0, watch.report());
      } finally {
        await gateway.stop();
      }
    });
  }
});
