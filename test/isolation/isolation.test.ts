// The short form of the isolation run (README.md here): no tenant ever sees a foreign mark, and the run finds faults
// that are planted in a gateway: one fault in `npm test`, all of them at length.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { AT_LENGTH_ONLY, howMany } from '../support/at-length.ts';
import { assertIsolated } from './assert-isolated.ts';
import { startLoneGateway } from './installation.ts';
import { Isolation, type IsolationOptions } from './isolate.ts';
import { PLANTED_FAULTS } from './planted-faults.ts';

/**
 * With this seed, before buffers counted their holders, a stalled provider's request contained another tenant's prompt.
 */
const SEED = 2;
const OPTIONS: Omit<IsolationOptions, 'seed'> = {
  from: 1,
  exchanges: howMany({ short: 160, long: 800 }),
  atOnce: 16,
  isLight: false,
  lookUpsEvery: howMany({ short: 80, long: 200 }),
  rollEvery: howMany({ short: 100, long: 500 }),
};
/** In `npm test` only one run replaces gateways, since each replacement starts two new ones. */
const FURTHER = { ...OPTIONS, exchanges: 2_000, rollEvery: 500 };
/** For the runs in which most organizations have own provider keys. */
const OWN_KEYS = { changeEvery: 40 };
/** The most exchanges of a run with a planted fault: such a run ends at its first finding. */
const PLANTED_EXCHANGES = 6_000;

describe('isolation of tenants', () => {
  let isolation: Isolation;

  before(async () => {
    isolation = await Isolation.start(2);
  });

  after(async () => {
    await isolation?.stop();
  });

  test(`seed ${SEED}: nobody sees a foreign mark`, () => assertIsolated(isolation, { ...OPTIONS, seed: SEED }));

  test(
    `seed ${SEED}, own provider keys: no credential, connection or pause is another organization's`,
    AT_LENGTH_ONLY,
    () =>
      assertIsolated(isolation, {
        ...FURTHER,
        seed: SEED,
        lookUpsEvery: Number.POSITIVE_INFINITY,
        ownKeys: OWN_KEYS,
      }),
  );

  test(`seed ${SEED}, guardrails: no value, placeholder or policy is another organization's`, AT_LENGTH_ONLY, () =>
    assertIsolated(isolation, {
      ...FURTHER,
      seed: SEED,
      lookUpsEvery: Number.POSITIVE_INFINITY,
      isGuarded: true,
    }),
  );

  test(
    `seed ${SEED}, uploaded files: no byte, id, size or existence of one shows to another organization`,
    AT_LENGTH_ONLY,
    () =>
      assertIsolated(isolation, {
        ...FURTHER,
        seed: SEED,
        lookUpsEvery: Number.POSITIVE_INFINITY,
        media: { steps: 4_000 },
      }),
  );

  for (const { name, found, isQuick, ofOwnKeys, ofGuardrails, ofMedia } of PLANTED_FAULTS) {
    test(`found when planted: ${name}`, isQuick === true ? {} : AT_LENGTH_ONLY, async () => {
      const gateway = await startLoneGateway(isolation.tollgate, name);
      try {
        const watch = await isolation.run({
          ...OPTIONS,
          seed: SEED,
          exchanges: PLANTED_EXCHANGES,
          rollEvery: 0,
          instead: gateway,
          endsAtFirst: true,
          ...(ofOwnKeys === true ? { ownKeys: OWN_KEYS } : {}),
          ...(ofGuardrails === true ? { isGuarded: true } : {}),
          ...(ofMedia === true ? { media: { steps: 0 } } : {}),
        });
        const wasFound = [found].flat().some((kind) => watch.countOf(kind) > 0);
        assert.ok(wasFound, watch.report());
      } finally {
        await gateway.stop();
      }
    });
  }
});
