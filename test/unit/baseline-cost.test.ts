// The baseline cost of a routed request (spec 2.4): the same tokens at the baseline model's price, and only where both
// prices are real.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Price } from '../../src/domain/models/price.ts';
import { picoUsd } from '../../src/domain/money/pico-usd.ts';
import { type Baseline, baselineCost, type EndedRequest } from '../../src/domain/routing/baseline-cost.ts';
import { NO_COUNTS } from '../../src/domain/usage/usage.ts';

const PRICE: Price = {
  version: '1',
  input: picoUsd(10n),
  cachedInput: picoUsd(1n),
  cacheWrite: null,
  output: picoUsd(100n),
  image: null,
};
const USAGE = { ...NO_COUNTS, inputTokens: 30, cachedInputTokens: 10, outputTokens: 4 };
const COST = picoUsd(77n);
const NONE = picoUsd(0n);
const PAID: EndedRequest = {
  usage: USAGE,
  settlement: { ratedCost: COST, charge: COST, suspense: NONE },
  isBilled: true,
  isUnpriced: false,
};
const UNBILLED: EndedRequest = {
  ...PAID,
  settlement: { ratedCost: COST, charge: null, suspense: NONE },
  isBilled: false,
};

const CASES: readonly [title: string, baseline: Baseline, ended: EndedRequest, expected: bigint | null][] = [
  ['the same tokens, cached ones as cached', PRICE, PAID, 20n * 10n + 10n * 1n + 4n * 100n],
  ['its own cost where the baseline is the model that served', 'own', PAID, 77n],
  ['an organization that is not billed: its rated cost is by the catalog', PRICE, UNBILLED, 610n],
  ['no baseline, or one without a price', null, PAID, null],
  ['a baseline whose price does not cover the tokens', { ...PRICE, output: null }, PAID, null],
  [
    'a request whose use is not known',
    PRICE,
    { ...PAID, usage: null, settlement: { ratedCost: null, charge: picoUsd(0n), suspense: NONE } },
    null,
  ],
  ['a use of which some has no price', PRICE, { ...UNBILLED, isUnpriced: true }, null],
  ['the same where the baseline is the model that served', 'own', { ...UNBILLED, isUnpriced: true }, null],
  [
    'a model that has no price of its own',
    PRICE,
    { ...UNBILLED, settlement: { ratedCost: null, charge: null, suspense: NONE } },
    null,
  ],
  [
    'a charge that stopped at the hold',
    PRICE,
    { ...PAID, settlement: { ratedCost: COST, charge: picoUsd(50n), suspense: NONE } },
    null,
  ],
  [
    'a report of more than who is not billed can have used',
    PRICE,
    { ...UNBILLED, settlement: { ratedCost: COST, charge: null, suspense: picoUsd(1n) } },
    null,
  ],
  [
    'a billed request that nobody paid for',
    'own',
    { ...PAID, settlement: { ratedCost: COST, charge: null, suspense: NONE } },
    null,
  ],
  [
    'a free request is a price of nothing',
    'own',
    { ...PAID, settlement: { ratedCost: picoUsd(0n), charge: picoUsd(0n), suspense: NONE } },
    0n,
  ],
];

for (const [title, baseline, ended, expected] of CASES)
  test(title, () => assert.equal(baselineCost(baseline, ended), expected));
