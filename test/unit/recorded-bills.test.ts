// Bills of recorded replies that say themselves what they cost: the reported cost is read to the last digit, and where
// the vendor's list prices are known, our prices make of the counts exactly what the vendor billed.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { chatCompletions } from '../../src/generation/dialects/chat-completions.ts';
import { responses } from '../../src/generation/dialects/responses.ts';
import { priceOf, rateReply } from '../support/real-bills.ts';
import { loadRecordedExchanges, type RecordedExchange } from '../support/recorded-exchanges.ts';
import { sharedAssets } from '../support/shared-assets.ts';

const SKIP = sharedAssets() === null ? 'no recordings beside the repository' : false;

/** By the model that the reply names: dollars a million as the vendor lists them, and for a call of a tool. */
const LISTED: readonly (readonly [model: RegExp, price: object])[] = [
  [/^anthropic\/claude-4\.5-haiku|^anthropic\/claude-haiku-4\.5/, { input: '1', cached_input: '0.1', output: '5' }],
  [/^openai\/gpt-5\.2/, { input: '1.75', cached_input: '0.175', output: '14', calls: { web_search: '0.01' } }],
  [
    /^grok-4\.3/,
    { input: '1.25', cached_input: '0.2', output: '2.5', calls: { web_search: '0.005', x_search: '0.005' } },
  ],
  [/^grok-3-mini/, { input: '0.3', cached_input: '0.075', output: '0.5' }],
];

/** Of the text of a number of dollars; null: finer than that. */
function picoOf(text: string): bigint {
  const [, whole = '0', fraction = '', exponent = '0'] = /^(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(text) ?? [];
  const shift = 12 - fraction.length + Number(exponent);
  const digits = BigInt(whole + fraction);
  if (shift >= 0) return digits * 10n ** BigInt(shift);
  // What is finer than a pico-dollar is rounded up.
  const divisor = 10n ** BigInt(-shift);
  return (digits + divisor - 1n) / divisor;
}

interface RecordedBill {
  readonly exchange: RecordedExchange;
  readonly model: string;
  readonly pico: bigint;
}

function recordedBill(exchange: RecordedExchange): RecordedBill | null {
  const text = exchange.responseBody.toString('utf8');
  if (exchange.status !== 200) return null;
  const ticks = [...text.matchAll(/"cost_in_usd_ticks":\s*(\d+)/g)].at(-1)?.[1];
  const usd = [...text.matchAll(/"cost":\s*([\d.]+(?:e[+-]?\d+)?)/gi)].at(-1)?.[1];
  const model = /"model":\s*"([^"]+)"/.exec(text)?.[1] ?? '';
  if (ticks !== undefined) return { exchange, model, pico: BigInt(ticks) * 100n };
  return usd === undefined ? null : { exchange, model, pico: picoOf(usd) };
}

describe('recorded replies that say what they cost', { skip: SKIP }, () => {
  let [reported, listed] = [0, 0];
  for (const [format, dialect] of [
    ['chat', chatCompletions],
    ['responses', responses],
  ] as const) {
    for (const exchange of loadRecordedExchanges(format)) {
      const bill = recordedBill(exchange);
      if (bill === null) continue;
      const price = LISTED.find(([model]) => model.test(bill.model))?.[1];
      test(`${exchange.name}: ${bill.model} costs ${bill.pico}`, () => {
        const text = exchange.responseBody.toString('utf8');
        const asReported = { input: '1000', output: '1000', cost: 'reported' };
        assert.equal(rateReply(dialect, {}, text, priceOf(asReported)).cost, bill.pico);
        reported += 1;
        if (price === undefined) return;
        const rated = rateReply(dialect, {}, text, priceOf(price));
        assert.deepEqual([rated.cost, rated.unpriced], [bill.pico, null]);
        listed += 1;
      });
    }
  }

  test('are enough to mean something', () => assert.ok(reported > 20 && listed > 10, `${reported}, ${listed}`));
});
