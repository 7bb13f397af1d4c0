// A hold bounds the dearest that a request can reach: prices, requests and usages made from seeds, and no usage that a
// deployment may report costs more than what was held. Each cost is that of a second calculation, in fractions.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { rateUsage } from '../../src/domain/settlement/rate-usage.ts';
import type { UsageDetails } from '../../src/domain/usage/usage.ts';
import { messages } from '../../src/generation/dialects/messages.ts';
import { seededRandom } from '../support/byte-splits.ts';
import { exactCost, type WrittenPrice } from '../support/exact-bill.ts';
import { holdFor, priceOf } from '../support/real-bills.ts';

const SEEDS = 250;
const OUTPUT_MAX = 40;
const SERVICE_TIERS = ['flex', 'priority'];
const GEOS = ['us', 'eu'];

type Random = () => number;
const upTo = (random: Random, most: number): number => Math.floor(random() * (most + 1));
const oneOf = <T>(random: Random, all: readonly T[]): T => all[upTo(random, all.length - 1)] as T;
const maybe = (random: Random, fields: object): object => (random() < 0.4 ? fields : {});
const usd = (random: Random): string => (upTo(random, 20_000) / 1_000).toFixed(6);
const factor = (random: Random): string => (0.4 + random()).toFixed(9);

function amounts(random: Random): object {
  return ['input', 'cached_input', 'cache_write', 'cache_write_1h', 'output', 'input_audio', 'cached_audio'].reduce(
    (fields, name) => ({ ...fields, ...maybe(random, { [name]: usd(random) }) }),
    {},
  );
}

function tiers(random: Random): object[] {
  return [300, 900, 5_000].slice(0, 1 + upTo(random, 2)).map((from_input) => ({ from_input, ...amounts(random) }));
}

function variations(random: Random, names: readonly string[]): Record<string, unknown> {
  const variation = (): unknown =>
    random() < 0.5
      ? factor(random)
      : {
          ...amounts(random),
          ...maybe(random, { tiers: tiers(random) }),
          ...maybe(random, { factor: factor(random) }),
        };
  return Object.fromEntries(names.filter(() => random() < 0.7).map((name) => [name, variation()]));
}

function writtenPrice(random: Random): object {
  const serviceTiers = variations(random, SERVICE_TIERS);
  const names = Object.keys(serviceTiers);
  return {
    ...amounts(random),
    input: usd(random),
    output: usd(random),
    cache_write_1h: usd(random),
    ...maybe(random, { tiers: tiers(random) }),
    service_tiers: serviceTiers,
    ...(names.length === 0 ? {} : maybe(random, { service_tier_default: oneOf(random, names) })),
    speeds: variations(random, ['fast']),
    geos: variations(random, GEOS),
    ...maybe(random, { factor: factor(random) }),
    ...maybe(random, { request: '0.0001' }),
    calls: { web_search: { usd: '0.001', max: 3 } },
  };
}

interface Asked {
  readonly service_tier?: string;
  readonly speed?: string;
  readonly inference_geo?: string;
}

/** How a deployment may say that it has served what was asked for. */
function servedWith(random: Random, asked: Asked, price: { geos: object }): UsageDetails {
  const tier = oneOf(random, [asked.service_tier ?? 'auto', 'standard', undefined]);
  const speed = oneOf(random, [asked.speed, 'standard']);
  // Where the request names no region, the account of the operator may have one.
  const geos = asked.inference_geo === undefined ? Object.keys(price.geos) : [asked.inference_geo];
  const geo = oneOf(random, [...geos, undefined, 'global']);
  return {
    ...(tier === undefined ? {} : { serviceTier: tier }),
    ...(speed === undefined ? {} : { speed }),
    ...(geo === undefined ? {} : { geo }),
  };
}

describe('what is held', () => {
  test('covers every usage that a deployment may report', () => {
    let held = 0;
    for (let seed = 1; seed <= SEEDS; seed += 1) {
      const random = seededRandom(seed);
      const prices = Array.from({ length: 1 + upTo(random, 2) }, () => writtenPrice(random));
      const asked: Asked = {
        ...maybe(random, { service_tier: oneOf(random, ['auto', 'standard_only']) }),
        ...maybe(random, { speed: 'fast' }),
        ...maybe(random, { inference_geo: oneOf(random, GEOS) }),
      };
      const asksForHour = random() < 0.5;
      const cache = asksForHour ? { cache_control: { type: 'ephemeral', ttl: '1h' } } : {};
      const text = 'x'.repeat(upTo(random, 1_500));
      const request = {
        ...asked,
        max_tokens: OUTPUT_MAX,
        messages: [{ role: 'user', content: [{ type: 'text', text, ...cache }] }],
      };
      const hold = holdFor(messages, request, prices);
      if (typeof hold.held !== 'bigint') continue;
      held += 1;
      for (const written of prices as (WrittenPrice & { geos: object; speeds: object })[]) {
        const lacks = (names: object, name: string | undefined): boolean =>
          name !== undefined && !Object.hasOwn(names, name);
        if (lacks(written.speeds, asked.speed) || lacks(written.geos, asked.inference_geo)) continue;
        const price = priceOf(written);
        for (let round = 0; round < 5; round += 1) {
          const inputTokens = oneOf(random, [hold.inputTokensMax, upTo(random, hold.inputTokensMax)]);
          const cachedInputTokens = oneOf(random, [0, inputTokens, upTo(random, inputTokens)]);
          const cacheWriteTokens = oneOf(random, [0, inputTokens - cachedInputTokens]);
          const details = { ...servedWith(random, asked, written), inputAudioTokens: upTo(random, inputTokens) };
          const usage = {
            inputTokens,
            cachedInputTokens,
            cacheWriteTokens,
            hourCacheWriteTokens: asksForHour ? upTo(random, cacheWriteTokens) : 0,
            outputTokens: OUTPUT_MAX,
            reasoningTokens: null,
            images: null,
            details: { ...details, cachedAudioTokens: Math.min(cachedInputTokens, details.inputAudioTokens) },
          };
          const cost = rateUsage(usage, price);
          assert.equal(cost, exactCost(written, usage), `seed ${seed}: ${JSON.stringify({ usage, written })}`);
          assert.ok(
            cost !== null && cost <= hold.held,
            `seed ${seed}: ${cost} of ${hold.held} for ${JSON.stringify({ asked, usage, written })}`,
          );
          assert.ok(hold.heldOfBudget !== null && cost <= hold.heldOfBudget, `seed ${seed}: of a budget`);
        }
      }
    }
    assert.ok(held > SEEDS / 2);
  });
});
