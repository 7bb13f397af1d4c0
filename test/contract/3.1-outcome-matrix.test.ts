// Spec 3.1 and the outcome matrix: every way an execution can end, cell by cell: with and without usage, billed and
// not.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { picoUsd } from '../../src/domain/money/pico-usd.ts';
import type { Outcome } from '../../src/domain/settlement/outcome.ts';
import { OUTCOME_MATRIX } from '../../src/domain/settlement/outcome-matrix.ts';
import { settle } from '../../src/domain/settlement/settle.ts';
import { NO_COUNTS, type UsageSource } from '../../src/domain/usage/usage.ts';

const PRICE = {
  version: '1',
  input: picoUsd(2n),
  cachedInput: null,
  cacheWrite: null,
  output: picoUsd(10n),
  image: null,
};
const USAGE = { ...NO_COUNTS, inputTokens: 100, outputTokens: 30 };
const COST = 500n;

// Columns: charge and rated cost with usage, charge and rated cost without any, status.
type Row = readonly [
  outcome: Outcome,
  source: UsageSource,
  charge: bigint | null,
  rated: bigint | null,
  chargeWithout: bigint | null,
  ratedWithout: bigint | null,
  status: string,
];

const ROWS: readonly Row[] = [
  ['refused', 'reported', null, null, null, null, 'not_billed'],
  ['completed', 'reported', COST, COST, 0n, null, 'final'],
  ['completed_without_usage', 'counted', COST, COST, 0n, null, 'final'],
  ['connect_failed', 'reported', null, null, null, null, 'not_billed'],
  ['provider_refused', 'reported', null, null, null, null, 'not_billed'],
  ['provider_failed', 'reported', null, null, null, null, 'not_billed'],
  ['no_reply', 'reported', null, null, null, null, 'not_billed'],
  ['aborted_before_first_byte', 'counted', 0n, null, 0n, null, 'cancelled'],
  ['aborted_mid_stream', 'counted', COST, COST, 0n, null, 'final'],
  ['cut_mid_stream', 'counted', COST, COST, 0n, null, 'final'],
  ['usage_then_cut', 'reported', COST, COST, 0n, null, 'final'],
  ['output_blocked', 'reported', COST, COST, 0n, null, 'final'],
  ['process_killed', 'counted', 0n, null, 0n, null, 'cancelled'],
];

test('the table has a row for every outcome', () => {
  assert.deepEqual(ROWS.map(([outcome]) => outcome).sort(), Object.keys(OUTCOME_MATRIX).sort());
});

for (const [outcome, usageSource, charge, ratedCost, chargeWithout, ratedWithout, billingStatus] of ROWS) {
  describe(outcome, () => {
    const base = { outcome, price: PRICE, billed: true, authorizedAmount: picoUsd(1000n) };
    /** What an end with usage costs where `held` is charged, and `beyond` goes to suspense, if anything is charged. */
    const costing = (held: bigint, beyond: bigint) =>
      charge === COST
        ? { billingStatus, ratedCost, charge: held, suspense: beyond }
        : { billingStatus, ratedCost, charge, suspense: 0n };

    test('billed, with usage', () => {
      assert.deepEqual(settle({ ...base, usage: USAGE, usageSource }), {
        billingStatus,
        ratedCost,
        charge,
        suspense: 0n,
      });
    });
    test('billed, with usage above the hold', () => {
      const settled = settle({ ...base, usage: USAGE, usageSource, authorizedAmount: picoUsd(400n) });
      assert.deepEqual(settled, costing(400n, 100n));
    });
    test(
      'billed, served with what has no price: charged as held, and what the price does not account for is ' +
        'in suspense',
      () => {
        const settled = settle({ ...base, usage: USAGE, usageSource, isUnpriced: true });
        assert.deepEqual(settled, costing(1000n, 500n));
      },
    );
    test('billed, served with what has no price, above the hold all the same', () => {
      const settled = settle({ ...base, usage: USAGE, usageSource, isUnpriced: true, authorizedAmount: picoUsd(400n) });
      assert.deepEqual(settled, costing(400n, 100n));
    });
    test('not billed, served with what has no price', () => {
      const settled = settle({
        ...base,
        usage: USAGE,
        usageSource,
        isUnpriced: true,
        billed: false,
        authorizedAmount: null,
      });
      assert.deepEqual(settled, { billingStatus: 'not_billed', ratedCost: COST, charge: null, suspense: 0n });
    });
    test('billed, with no usage to be had', () => {
      assert.deepEqual(settle({ ...base, usage: null, usageSource: null }), {
        billingStatus,
        ratedCost: ratedWithout,
        charge: chargeWithout,
        suspense: 0n,
      });
    });
    test('not billed, priced', () => {
      const settled = settle({ ...base, usage: USAGE, usageSource, billed: false, authorizedAmount: null });
      assert.deepEqual(settled, { billingStatus: 'not_billed', ratedCost: COST, charge: null, suspense: 0n });
    });
    test('not billed, without a price', () => {
      const settled = settle({
        ...base,
        usage: USAGE,
        usageSource,
        price: null,
        billed: false,
        authorizedAmount: null,
      });
      assert.deepEqual(settled, { billingStatus: 'not_billed', ratedCost: null, charge: null, suspense: 0n });
    });
  });
}
