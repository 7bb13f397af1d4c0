// Rating and settling: golden prices, and the rules that hold for every execution whatever it was.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Price } from '../../src/domain/models/price.ts';
import { formatUsdString } from '../../src/domain/money/format.ts';
import { parsePricePerMillion } from '../../src/domain/money/parse-usd.ts';
import { type PicoUsd, picoUsd } from '../../src/domain/money/pico-usd.ts';
import type { Outcome } from '../../src/domain/settlement/outcome.ts';
import { OUTCOME_MATRIX } from '../../src/domain/settlement/outcome-matrix.ts';
import { rateUsage } from '../../src/domain/settlement/rate-usage.ts';
import { settle } from '../../src/domain/settlement/settle.ts';
import { NO_COUNTS, type Usage } from '../../src/domain/usage/usage.ts';
import { priceOf } from '../support/real-bills.ts';

const NO_PRICE: Price = { version: '1', input: null, cachedInput: null, cacheWrite: null, output: null, image: null };

function price(perMillion: Partial<Record<'input' | 'cachedInput' | 'cacheWrite' | 'output', string>>): Price {
  const parsed = Object.fromEntries(
    Object.entries(perMillion).map(([name, text]) => [name, parsePricePerMillion(text)]),
  );
  return { ...NO_PRICE, ...parsed };
}

const FULL = price({ input: '1.25', cachedInput: '0.125', cacheWrite: '1.5625', output: '10.00' });

describe('rateUsage', () => {
  test('what costs more than a column of the ledger holds has no cost, however factors and counts make it up', () => {
    const factor = '999999';
    const dearest = priceOf({
      input: '9999999',
      output: '9999999',
      factor,
      service_tiers: { t: factor },
      service_tier_default: 't',
      speeds: { fast: factor },
      geos: { us: factor },
    });
    const counts = { ...NO_COUNTS, inputTokens: 1_000, outputTokens: 5 };
    assert.equal(rateUsage({ ...counts, details: { serviceTier: 't', speed: 'fast', geo: 'us' } }, dearest), null);
    assert.equal(rateUsage({ ...counts, inputTokens: Number.MAX_SAFE_INTEGER }, dearest), null);
    const plain = priceOf({ input: '9999999', output: '9999999' });
    const most = rateUsage({ ...NO_COUNTS, inputTokens: Number.MAX_SAFE_INTEGER, outputTokens: 0 }, plain);
    assert.equal(most, BigInt(Number.MAX_SAFE_INTEGER) * 9_999_999_000_000n);
  });

  const rows: readonly (readonly [string, Price, Partial<Usage>, string | null])[] = [
    ['input and output', FULL, { inputTokens: 1000, outputTokens: 500 }, '0.00625'],
    ['one token each', FULL, { inputTokens: 1, outputTokens: 1 }, '0.00001125'],
    ['cached input at its price', FULL, { inputTokens: 1000, cachedInputTokens: 800, outputTokens: 0 }, '0.00035'],
    [
      'cache writes at theirs',
      FULL,
      { inputTokens: 1000, cachedInputTokens: 100, cacheWriteTokens: 900, outputTokens: 0 },
      '0.00141875',
    ],
    [
      'cached input without a price of its own at the plain one',
      price({ input: '2', output: '4' }),
      { inputTokens: 10, cachedInputTokens: 10, outputTokens: 0 },
      '0.00002',
    ],
    [
      'cache writes without a price of their own at the plain one',
      price({ input: '2', output: '4' }),
      { inputTokens: 10, cacheWriteTokens: 10, outputTokens: 0 },
      '0.00002',
    ],
    ['reasoning as the output it is', FULL, { inputTokens: 0, outputTokens: 100, reasoningTokens: 90 }, '0.001'],
    ['nothing used', FULL, { inputTokens: 0, outputTokens: 0 }, '0'],
    [
      'free output, which need not be reported',
      price({ input: '0.042', output: '0' }),
      { inputTokens: 300 },
      '0.0000126',
    ],
    ['no output and no price for it', price({ input: '1' }), { inputTokens: 3, outputTokens: 0 }, '0.000003'],
    [
      'images, whatever tokens are reported',
      { ...NO_PRICE, image: picoUsd(40_000_000_000n) },
      { images: 3, inputTokens: 50, outputTokens: 4000 },
      '0.12',
    ],
    [
      'tokens of a text model whose price has one by image, too',
      { ...FULL, image: picoUsd(40_000_000_000n) },
      { inputTokens: 1000, outputTokens: 500 },
      '0.00625',
    ],
    [
      'counts beyond what a float could price',
      price({ input: '999999.999999', output: '1' }),
      { inputTokens: Number.MAX_SAFE_INTEGER, outputTokens: 0 },
      '9007199254731983.800745259009',
    ],
    ['unknown: no input count', FULL, { outputTokens: 1 }, null],
    ['unknown: no output count', FULL, { inputTokens: 1 }, null],
    ['unknown: no input price', price({ output: '1' }), { inputTokens: 1, outputTokens: 1 }, null],
    ['unknown: no output price', price({ input: '1' }), { inputTokens: 1, outputTokens: 1 }, null],
    ['unknown: no image count', { ...NO_PRICE, image: picoUsd(1n) }, { inputTokens: 1 }, null],
    ['unknown: no price at all', NO_PRICE, { inputTokens: 1, outputTokens: 1 }, null],
  ];
  for (const [name, rate, usage, expected] of rows) {
    test(name, () => {
      const cost = rateUsage({ ...NO_COUNTS, ...usage }, rate);
      assert.equal(cost === null ? null : formatUsdString(cost), expected);
    });
  }

  test('costs each token once, at one price', () => {
    const tokens = fc.nat({ max: 1_000_000_000 });
    const pico = fc.bigInt({ min: 0n, max: 10n ** 9n }).map((amount) => amount as PicoUsd);
    fc.assert(
      fc.property(
        tokens,
        tokens,
        tokens,
        tokens,
        pico,
        pico,
        pico,
        pico,
        (plain, cached, written, output, ...prices) => {
          const [input, cachedInput, cacheWrite, outputPrice] = prices;
          const usage = {
            ...NO_COUNTS,
            inputTokens: plain + cached + written,
            cachedInputTokens: cached,
            cacheWriteTokens: written,
            outputTokens: output,
          };
          const expected =
            BigInt(plain) * input +
            BigInt(cached) * cachedInput +
            BigInt(written) * cacheWrite +
            BigInt(output) * outputPrice;
          assert.equal(
            rateUsage(usage, { version: '1', input, cachedInput, cacheWrite, output: outputPrice, image: null }),
            expected,
          );
        },
      ),
    );
  });
});

describe('settle', () => {
  const usage: Usage = { ...NO_COUNTS, inputTokens: 1000, outputTokens: 500 };
  const cost = picoUsd(6_250_000_000n);
  const base = {
    outcome: 'completed',
    usage,
    usageSource: 'reported',
    price: FULL,
    billed: true,
    authorizedAmount: picoUsd(10n ** 12n),
  } as const;

  test('charges the rated cost', () => {
    assert.deepEqual(settle(base), { billingStatus: 'final', ratedCost: cost, charge: cost, suspense: 0n });
  });
  test('never charges above the hold; the rest is suspense', () => {
    const authorizedAmount = picoUsd(6_000_000_000n);
    assert.deepEqual(settle({ ...base, authorizedAmount }), {
      billingStatus: 'final',
      ratedCost: cost,
      charge: authorizedAmount,
      suspense: 250_000_000n,
    });
  });
  test('charges our count where the report cannot be trusted, and keeps the claim in suspense', () => {
    const claimedUsage = { ...NO_COUNTS, inputTokens: 1000, outputTokens: 1_000_000 };
    const settled = settle({ ...base, usageSource: 'counted', claimedUsage });
    assert.deepEqual(settled, {
      billingStatus: 'final',
      ratedCost: cost,
      charge: cost,
      suspense: picoUsd(10_001_250_000_000n - cost),
    });
  });
  test('of who is not billed nothing is charged; what is beyond the most that it can cost is suspense', () => {
    const unbilled = { ...base, billed: false };
    const settled = { billingStatus: 'not_billed', ratedCost: cost, charge: null };
    for (const [authorizedAmount, suspense] of [
      [null, 0n],
      [cost, 0n],
      [picoUsd(cost - 1n), 1n],
      [picoUsd(0n), cost],
    ] as const)
      assert.deepEqual(settle({ ...unbilled, authorizedAmount }), { ...settled, suspense });
  });
  test('a claim below our count is no credit', () => {
    assert.equal(
      settle({ ...base, usageSource: 'counted', claimedUsage: { ...NO_COUNTS, inputTokens: 1, outputTokens: 1 } })
        .suspense,
      0n,
    );
  });
  test('charges nothing when there is nothing to charge by', () => {
    assert.deepEqual(settle({ ...base, usage: null, usageSource: null }), {
      billingStatus: 'final',
      ratedCost: null,
      charge: 0n,
      suspense: 0n,
    });
    const claimedUsage = { ...NO_COUNTS, inputTokens: 1000, outputTokens: 500 };
    assert.equal(settle({ ...base, usage: null, usageSource: null, claimedUsage }).suspense, cost);
  });
  test('knows no cost without a price', () => {
    assert.deepEqual(settle({ ...base, price: null }), {
      billingStatus: 'final',
      ratedCost: null,
      charge: 0n,
      suspense: 0n,
    });
  });
  test('takes a billed execution without a hold, or a usage without a source, for a bug', () => {
    assert.throws(() => settle({ ...base, authorizedAmount: null }), { name: 'AssertionFault' });
    assert.throws(() => settle({ ...base, usageSource: null }), { name: 'AssertionFault' });
  });

  test('for every execution: 0 <= charge <= hold, suspense >= 0, and what was rated is charged or in suspense', () => {
    const tokens = fc.option(fc.nat({ max: 10_000_000 }));
    const usages = fc.option(
      fc.record({
        inputTokens: tokens,
        cachedInputTokens: fc.constant(null),
        cacheWriteTokens: fc.constant(null),
        outputTokens: tokens,
        reasoningTokens: fc.constant(null),
        images: fc.constant(null),
      }),
    );
    const outcome = fc.constantFrom(...(Object.keys(OUTCOME_MATRIX) as Outcome[]));
    const hold = fc.bigInt({ min: 0n, max: 10n ** 14n }).map(picoUsd);
    fc.assert(
      fc.property(
        outcome,
        usages,
        usages,
        hold,
        fc.boolean(),
        fc.constantFrom(FULL, NO_PRICE, null),
        (outcome, usage, claimedUsage, authorizedAmount, billed, price) => {
          const usageSource = usage === null ? null : 'counted';
          const settled = settle({
            outcome,
            usage,
            usageSource,
            claimedUsage,
            price,
            billed,
            authorizedAmount: billed ? authorizedAmount : null,
          });
          assert.ok(settled.suspense >= 0n);
          if (!billed)
            assert.deepEqual([settled.charge, settled.billingStatus, settled.suspense], [null, 'not_billed', 0n]);
          if (settled.charge === null) assert.equal(settled.billingStatus, 'not_billed');
          else assert.ok(settled.charge >= 0n && settled.charge <= authorizedAmount);
          if (settled.charge !== null && settled.ratedCost !== null)
            assert.ok(settled.charge + settled.suspense >= settled.ratedCost);
        },
      ),
    );
  });
});
