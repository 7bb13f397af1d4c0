// The long form of the isolation run: further seeds, and more exchanges of each than the short form has.

import { after, before, describe, test } from 'node:test';
import { assertIsolated } from './assert-isolated.ts';
import { Isolation } from './isolate.ts';

/** Seeds that once found something stay here. */
const SEEDS = [2, 7] as const;

describe('isolation of tenants, at length', () => {
  let isolation: Isolation;

  before(async () => {
    isolation = await Isolation.start(2);
  });

  after(async () => {
    await isolation?.stop();
  });

  test('own provider keys: no credential, connection or pause is another organization’s', () =>
    assertIsolated(isolation, {
      seed: 1,
      from: 1,
      exchanges: 4_000,
      atOnce: 16,
      isLight: false,
      lookUpsEvery: 1_000,
      ownKeys: { changeEvery: 40 },
      rollEvery: 1_200,
    }));

  test('guardrails: no value, placeholder or policy is another organization’s', () =>
    assertIsolated(isolation, {
      seed: 1,
      from: 1,
      exchanges: 4_000,
      atOnce: 16,
      isLight: false,
      lookUpsEvery: 1_000,
      isGuarded: true,
      rollEvery: 1_200,
    }));

  test('uploaded files: no byte, id, size or existence of one shows to another organization', () =>
    assertIsolated(isolation, {
      seed: 1,
      from: 1,
      exchanges: 3_000,
      atOnce: 16,
      isLight: false,
      lookUpsEvery: 1_000,
      media: { steps: 8_000 },
      rollEvery: 1_200,
    }));

  for (const seed of SEEDS) {
    test(`seed ${seed}: nobody sees a foreign mark`, () =>
      assertIsolated(isolation, {
        seed,
        from: 1,
        exchanges: 3_000,
        atOnce: 16,
        isLight: false,
        lookUpsEvery: 1_000,
        rollEvery: 1_200,
      }));
  }
});
