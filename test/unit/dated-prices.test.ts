// Which of several prices is valid when, and when that changes: by the instant from which each is valid, and by hours
// of the day.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { pricesSchema, readPrices } from '../../src/domain/configuration/schema/price-schema.ts';
import type { Catalog, Model } from '../../src/domain/models/catalog.ts';
import { catalogAt } from '../../src/domain/models/dated-prices.ts';
import type { Price } from '../../src/domain/models/price.ts';
import { checkAgainst } from '../../src/domain/refusals/check-against.ts';
import { HeldCatalog } from '../../src/gateway/generation/held-catalog.ts';
import { NO_ROUTING } from '../support/no-routing.ts';
import { silentLog } from '../support/silent-log.ts';

const priced = (input: string, rest: object = {}): object => ({ input, output: '1', ...rest });

function catalogOf(written: readonly object[]): Catalog {
  const prices = readPrices('text', pricesSchema.parse(written)).map(
    (price, index): Price => ({ version: String(index + 1), ...price }),
  );
  const provider = { id: 'p', baseUrl: 'http://p.test', apiKey: '', auth: 'none', onDisconnect: 'cancel' } as const;
  const model: Model = {
    id: 'm',
    displayName: 'M',
    kind: 'text',
    aliases: ['alias'],
    contextLength: null,
    maxOutputTokens: null,
    maxCompletionTokensCap: null,
    attachmentTokensMax: null,
    tokenizer: 'o200k_base',
    active: true,
    createdAtMs: 0,
    servedBy: [{ provider, providerModel: 'm', apis: ['chat_completions'], price: null, prices }],
  };
  const byName = new Map(['m', 'alias'].map((name) => [name, model]));
  return { version: 1, models: [model], byName, routing: NO_ROUTING };
}

/** Of the list of models and of the index of names, which have to agree. */
function validAt(written: readonly object[], at: string): readonly [version: string | null, until: string | null] {
  const { catalog, untilMs } = catalogAt(catalogOf(written), Date.parse(at));
  const [model] = catalog.models;
  assert.equal(catalog.byName.get('alias'), model);
  const until = untilMs === Number.POSITIVE_INFINITY ? null : new Date(untilMs).toISOString().replace('.000Z', 'Z');
  return [model?.servedBy[0]?.price?.version ?? null, until];
}

const DOUBLED = [priced('1'), priced('2', { from: '2027-01-01' })];
const BEGINNING = [priced('1', { from: '2026-06-01T12:00:00+02:00' })];
const NIGHTLY = [priced('1'), priced('0.5', { between: '16:30-00:30' })];
const DAILY = [priced('1'), priced('2', { between: '09:00-17:00' }), priced('3', { from: '2027-01-01' })];

const ROWS: readonly (readonly [
  prices: readonly object[],
  at: string,
  version: string | null,
  until: string | null,
])[] = [
  [DOUBLED, '2026-12-31T23:59:59.999Z', '1', '2027-01-01T00:00:00Z'],
  [DOUBLED, '2027-01-01T00:00:00Z', '2', null],
  [BEGINNING, '2026-06-01T09:59:59.999Z', null, '2026-06-01T10:00:00Z'],
  [BEGINNING, '2026-06-01T10:00:00Z', '1', null],
  [NIGHTLY, '2026-11-24T00:29:59.999Z', '2', '2026-11-24T00:30:00Z'],
  [NIGHTLY, '2026-11-24T00:30:00Z', '1', '2026-11-24T16:30:00Z'],
  [NIGHTLY, '2026-11-24T16:30:00Z', '2', '2026-11-25T00:30:00Z'],
  [DAILY, '2026-11-24T08:59:59Z', '1', '2026-11-24T09:00:00Z'],
  [DAILY, '2026-11-24T09:00:00Z', '2', '2026-11-24T17:00:00Z'],
  [DAILY, '2026-12-31T17:00:00Z', '1', '2027-01-01T00:00:00Z'],
  // The last that is valid counts: the hours of before are over.
  [DAILY, '2027-01-01T10:00:00Z', '3', '2027-01-01T17:00:00Z'],
];

describe('the price that is valid', () => {
  for (const [prices, at, version, until] of ROWS)
    test(`${JSON.stringify(prices)} at ${at}`, () => assert.deepEqual(validAt(prices, at), [version, until]));

  test('a catalog without dates is the same object', () => {
    const { prices: _, ...served } = catalogOf([priced('1')]).models[0]?.servedBy[0] ?? assert.fail();
    const catalog = catalogOf([priced('1')]);
    const plain = { ...catalog, models: catalog.models.map((model) => ({ ...model, servedBy: [served] })) };
    assert.equal(catalogAt(plain, 0).catalog, plain);
  });
});

test('a gateway whose clock goes back has the prices of before again, within a minute', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  let nowMs = 0;
  const clock = { nowMs: () => nowMs, monotonicMs: () => 0 };
  for (const [prices, at, versions] of [
    [DOUBLED, '2027-01-01T00:10:00Z', ['2', '1', '2']],
    [NIGHTLY, '2026-11-24T00:40:00Z', ['1', '2', '1']],
  ] as const) {
    nowMs = Date.parse(at);
    const held = await HeldCatalog.load({ load: async () => catalogOf(prices), clock, log: silentLog });
    const seen = [0, -20, 20].map((minutes) => {
      nowMs += minutes * 60_000;
      context.mock.timers.tick(60_000);
      return held.serving.byName.get('m')?.deployments.get('chat_completions')?.[0]?.price?.version;
    });
    assert.deepEqual(seen, versions);
  }
});

describe('prices that cannot be', () => {
  const REFUSED: readonly (readonly [prices: unknown, field: string, reason: RegExp])[] = [
    [[], 'body', /at least one price/],
    [[priced('1', { between: '09:00-17:00' })], '0.between', /not be of the first/],
    [[priced('1'), priced('2', { from: '2027-01-01' }), priced('3')], '2.from', /not be before/],
    ...['2027-13-01', '2027-02-29', '2027-02-30T08:00:00Z', '2027-04-31T23:00-02:00', '2027-01-00'].map(
      (from): (typeof REFUSED)[number] => [[priced('1'), priced('2', { from })], '1.from', /a date or an instant/],
    ),
    [[priced('1'), priced('2', { between: '9-17' })], '1.between', /hours of the day/],
    [[priced('1'), priced('2', { between: '09:00-09:00' })], '1.between', /hours of the day/],
    [[priced('1'), { input: 5 }], '1.input', /USD per million tokens/],
    [{ input: '1', tiers: [{ input: '2' }] }, 'tiers.0.from_input', /must be a whole number/],
    [{ input: '1', service_tiers: { flex: '0' } }, 'service_tiers.flex', /a factor above zero/],
    [{ input: '1', service_tiers: { flex: { inputs: '1' } } }, 'service_tiers.flex.inputs', /no such field/],
    [{ input: '1', service_tiers: { default: '2' } }, 'service_tiers', /what the price itself is for/],
    [{ input: '1', tiers: [{ from_input: 9, input: '2' }, { from_input: 9 }] }, 'tiers', /ascending/],
    [{ input: '1', calls: { web_search: 1 } }, 'calls.web_search', /USD for a call/],
    [{ input: '1', cost: 'guessed' }, 'cost', /must be reported/],
  ];
  for (const [prices, field, reason] of REFUSED) {
    test(JSON.stringify(prices), () => {
      const checked = checkAgainst(pricesSchema, prices);
      assert.ok('kind' in checked && checked.kind === 'invalid_field');
      assert.equal(checked.field, field);
      assert.match(String(checked.reason), reason);
    });
  }
});
