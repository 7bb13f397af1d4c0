// Vendors' exports against what was recorded: equal where they bill what was used, and each planted difference is named
// with the money that it explains.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type Comparison, compareInvoice, type Tolerance } from '../../src/domain/invoices/compare-invoice.ts';
import type { InvoiceRead } from '../../src/domain/invoices/invoice.ts';
import { findDays } from '../../src/domain/invoices/invoice-days.ts';
import { readAnthropicInvoice } from '../../src/domain/invoices/read-anthropic.ts';
import { readOpenaiInvoice } from '../../src/domain/invoices/read-openai.ts';
import { RowsSeen } from '../../src/domain/invoices/read-pages.ts';
import type { RecordedUsage } from '../../src/domain/invoices/recorded-usage.ts';
import { readDecimal } from '../../src/domain/money/read-decimal.ts';
import {
  anthropicCosts,
  anthropicUsage,
  CATALOG_PRICE,
  type ExportOptions,
  type Fact,
  FIRST_DAY_MS,
  openaiCosts,
  openaiUsage,
  PRICES,
  partCost,
  recordedOf,
} from '../support/vendor-exports.ts';

const DAY_MS = 86_400_000;
const NOTHING: Tolerance = { amount: 0n };
const MODEL = 'gpt-5.6-terra';
const BASE: Fact = {
  day: 0,
  model: MODEL,
  key: 'openai',
  tier: 'default',
  requests: 40,
  input: 120_000,
  cached: 30_000,
  written: 8_000,
  writtenHour: 0,
  output: 21_000,
  searches: 2,
};
/** Three days of one model, and one of another on the second. */
const FACTS: readonly Fact[] = [
  BASE,
  { ...BASE, day: 1, requests: 50, input: 150_001 },
  { ...BASE, day: 1, model: 'gpt-5.6-luna', requests: 7, input: 900, cached: 0, written: 0, output: 333, searches: 0 },
  { ...BASE, day: 2, requests: 60, output: 25_017 },
];
const OPTIONS: ExportOptions = { days: 3, keyOf: () => 'key_abc', modelOf: (model) => `${model}-2026-07-14` };
const HOURS: readonly Fact[] = FACTS.map((fact) => ({ ...fact, writtenHour: 500 }));

interface Given {
  readonly texts: readonly string[];
  readonly recorded: readonly RecordedUsage[];
  readonly read?: (text: string) => InvoiceRead;
  readonly days?: number;
  readonly keys?: ReadonlyMap<string, string>;
  readonly models?: ReadonlyMap<string, string>;
  readonly tolerance?: Tolerance;
}

function compare(given: Given): Comparison {
  const { read = readOpenaiInvoice, days: count = 3, keys = new Map(), models = new Map() } = given;
  const invoices = given.texts.map((text) => {
    const found = read(text);
    assert.ok(found.ok, found.ok ? '' : found.problem);
    return found.invoice;
  });
  const [first] = invoices;
  assert.ok(first !== undefined);
  const invoice = {
    ...first,
    buckets: invoices.flatMap(({ buckets }) => buckets),
    usage: invoices.flatMap(({ usage }) => usage),
    costs: invoices.flatMap(({ costs }) => costs),
  };
  const found = findDays({ invoice, fromMs: FIRST_DAY_MS, untilMs: FIRST_DAY_MS + count * DAY_MS });
  assert.ok(found.ok, found.ok ? '' : found.problem);
  const prices = new Map([['1', CATALOG_PRICE]]);
  const params = { invoice, days: found.days, recorded: given.recorded, prices, models, keys };
  return compareInvoice(params, given.tolerance ?? NOTHING);
}

/** Rows with causes: `day model: kind amount, kind amount`. */
function differences({ rows }: Comparison): string[] {
  return rows
    .filter(({ causes }) => causes.length > 0)
    .map(
      ({ day, model, causes }) => `${day} ${model}: ${causes.map(({ kind, cost }) => `${kind} ${cost}`).join(', ')}`,
    );
}

const openai = (facts: readonly Fact[], options: ExportOptions = OPTIONS): readonly string[] => [
  openaiUsage(facts, options),
  openaiCosts(facts, options),
];
const recordedAll = (facts: readonly Fact[]): RecordedUsage[] => facts.map((fact) => recordedOf(fact));

describe('an export of what was used', () => {
  test('of OpenAI is the same to the pico-dollar, snapshots and keys are found by themselves', () => {
    const found = compare({ texts: openai(FACTS), recorded: recordedAll(FACTS) });
    assert.deepEqual(differences(found), []);
    assert.equal(found.isWithin, true);
    assert.equal(found.ours, found.theirs);
    assert.deepEqual([...new Set(found.rows.map(({ key }) => key))], ['openai']);
    assert.match(found.notes.join(' '), /key_abc is taken for openai: 99 % of what both used/);
    assert.match(found.notes.join(' '), /gpt-5.6-luna-2026-07-14 is taken for gpt-5.6-luna/);
  });

  test('of Anthropic is too, in cents, where costs know no keys', () => {
    const facts = [...HOURS, { ...BASE, key: 'second', input: 7, searches: 0 }];
    const options = { ...OPTIONS, keyOf: (key: string) => `apikey_${key}` };
    const texts = [anthropicUsage(facts, options), anthropicCosts(facts, options)];
    const found = compare({ texts, recorded: recordedAll(facts), read: readAnthropicInvoice });
    assert.deepEqual(differences(found), []);
    assert.equal(found.ours, found.theirs);
  });

  test('costs alone, and usage alone, are compared by what they have', () => {
    for (const text of openai(FACTS)) {
      const found = compare({ texts: [text], recorded: recordedAll(FACTS), keys: new Map([['key_abc', 'openai']]) });
      assert.deepEqual(differences(found), []);
    }
  });

  test('searches are no tokens of the tier that they were recorded with', () => {
    const facts = FACTS.map((fact) => ({ ...fact, tier: 'priority' as const }));
    const recorded = facts.map((fact) => recordedOf(fact, { tier: 'priority' }));
    const searches = {
      object: 'organization.usage.web_searches.result',
      model: `${MODEL}-2026-07-14`,
      api_key_id: 'key_abc',
      num_model_requests: 2,
      num_requests: 2,
    };
    const text = openaiUsage(facts, { ...OPTIONS, further: { 0: [searches], 1: [searches], 2: [searches] } });
    const found = compare({ texts: [text], recorded, keys: new Map([['key_abc', 'openai']]) });
    assert.deepEqual(differences(found), []);
    assert.equal(found.isWithin, true);
  });

  test('amounts in whole cents differ by no more than their rounding', () => {
    const costOf: ExportOptions['costOf'] = (fact, part) => (partCost(fact, part) / 10_000_000_000n) * 10_000_000_000n;
    const found = compare({ texts: openai(FACTS, { ...OPTIONS, costOf }), recorded: recordedAll(FACTS) });
    assert.notEqual(found.ours, found.theirs);
    assert.deepEqual(differences(found), []);
  });

  test('whatever was used, two vendors bill it and nothing differs', () => {
    const tokens = fc.nat({ max: 3_000_000 });
    const fact = fc.record({
      day: fc.nat({ max: 4 }),
      model: fc.constantFrom('alpha', 'beta', 'gamma-2026-01-01'),
      key: fc.constantFrom('first', 'second'),
      tier: fc.constantFrom('default' as const, 'priority' as const),
      requests: fc.integer({ min: 1, max: 500 }),
      input: tokens,
      cached: tokens,
      written: tokens,
      writtenHour: tokens,
      output: tokens,
      searches: fc.nat({ max: 9 }),
    });
    const options = { days: 5, keyOf: (key: string) => `key_${key}`, pageDays: 2 };
    const keys = new Map([
      ['key_first', 'first'],
      ['key_second', 'second'],
    ]);
    fc.assert(
      fc.property(fc.array(fact, { minLength: 1, maxLength: 30 }), (facts) => {
        const plain = facts.map((one) => ({ ...one, writtenHour: 0 }));
        const both = [
          { facts: plain, texts: openai(plain, options), read: readOpenaiInvoice },
          {
            facts,
            texts: [anthropicUsage(facts, options), anthropicCosts(facts, options)],
            read: readAnthropicInvoice,
          },
        ];
        for (const { facts: used, texts, read } of both) {
          const found = compare({ texts, recorded: recordedAll(used), read, keys, days: 5 });
          assert.deepEqual(differences(found), []);
          assert.equal(found.theirs, found.ours);
        }
      }),
      { numRuns: 60 },
    );
  });
});

describe('a planted difference is named', () => {
  const recorded = recordedAll(FACTS);
  const outputRate = PRICES.output;

  test('a day that the export leaves out, and a day that was not recorded', () => {
    const cost = (day: number): bigint =>
      recorded.filter((one) => one.day === day).reduce((sum, one) => sum + one.cost, 0n);
    const left = compare({ texts: openai(FACTS, { ...OPTIONS, without: [2] }), recorded });
    const missing = left.rows.filter(({ causes }) => causes.length > 0);
    assert.ok(missing.every(({ causes }) => causes[0]?.kind === 'day_not_exported'));
    assert.equal(
      missing.reduce((sum, { difference }) => sum + difference, 0n),
      -cost(2),
    );
    const lost = compare({ texts: openai(FACTS), recorded: recorded.filter(({ day }) => day !== 2) });
    const kinds = lost.rows.flatMap(({ causes }) => causes.map(({ kind }) => kind));
    assert.deepEqual([...new Set(kinds)], ['day_not_recorded']);
    assert.equal(lost.isWithin, false);
  });

  test('another key, and an own key whose bill it is', () => {
    const foreign = { ...BASE, day: 1, key: 'foreign', input: 5_000, output: 900, searches: 0 };
    const options = { ...OPTIONS, keyOf: (key: string) => `key_${key}` };
    const found = compare({ texts: openai([...FACTS, foreign], options), recorded });
    assert.deepEqual(
      found.rows.filter(({ causes }) => causes.length > 0).map(({ key }) => key),
      ['key_foreign'],
    );
    assert.match(found.rows.find(({ key }) => key === 'key_foreign')?.causes[0]?.evidence ?? '', /none of ours/);
    const own = { ...recordedOf(foreign), provider: 'openai', credentialId: 'own-key-id' };
    const hinted = compare({ texts: openai([...FACTS, foreign], options), recorded: [...recorded, own] });
    const [cause] = hinted.rows.flatMap(({ causes }) => causes);
    assert.equal(cause?.kind, 'unknown_key');
    assert.match(cause?.evidence ?? '', /--key key_foreign=own-key-id/);
    const told = compare({
      texts: openai([...FACTS, foreign], options),
      recorded: [...recorded, own],
      keys: new Map([['key_foreign', 'own-key-id']]),
    });
    assert.deepEqual(differences(told), []);
  });

  test('a model that nobody calls here', () => {
    const foreign = { ...BASE, day: 1, model: 'gpt-5.6-sol', searches: 0 };
    const found = compare({ texts: openai([...FACTS, foreign]), recorded });
    assert.deepEqual(
      found.rows.flatMap(({ causes }) => causes.map(({ kind }) => kind)),
      ['unknown_model'],
    );
  });

  test('a changed price, with the line that it is of', () => {
    const costOf: ExportOptions['costOf'] = (fact, part) =>
      part === 'output' && fact.day === 2 ? BigInt(fact.output) * 12_000_000n : partCost(fact, part);
    const dearer = BigInt(FACTS[3]?.output ?? 0) * 2_000_000n;
    const texts = openai(FACTS, { ...OPTIONS, costOf });
    for (const given of [texts, texts.slice(1)]) {
      const found = compare({ texts: given, recorded, keys: new Map([['key_abc', 'openai']]) });
      assert.deepEqual(differences(found), [`2026-11-03 ${MODEL}: price ${dearer}`]);
      const [cause] = found.rows.flatMap(({ causes }) => causes);
      assert.equal(cause?.evidence, 'output: theirs 12 USD per million, ours 10');
    }
  });

  test('a wrong tier: by what the export says, by the price of the tier, by half of the price', () => {
    const facts = FACTS.map((fact) => (fact.day === 2 ? { ...fact, tier: 'priority' as const } : fact));
    const [second] = facts.filter(({ day }) => day === 2);
    assert.ok(second !== undefined);
    const dearer = (['input', 'cached', 'written', 'output'] as const).reduce(
      (sum, part) => sum + partCost(second, part) / 2n,
      0n,
    );
    const told = compare({ texts: openai(facts), recorded });
    assert.deepEqual(differences(told), [`2026-11-03 ${MODEL}: service_tier ${dearer}`]);
    const silent = openai(facts).map((text) =>
      text.replaceAll('priority | ', '').replaceAll('"priority"', '"default"'),
    );
    const found = compare({ texts: silent, recorded });
    assert.deepEqual(differences(found), [`2026-11-03 ${MODEL}: service_tier ${dearer}`]);
    assert.match(found.rows.flatMap(({ causes }) => causes)[0]?.evidence ?? '', /^our price for service tier priority/);
    const costOf: ExportOptions['costOf'] = (fact, part) => partCost(fact, part) / (fact.day === 2 ? 2n : 1n);
    const half = compare({ texts: openai(FACTS, { ...OPTIONS, costOf }), recorded });
    assert.match(half.rows.flatMap(({ causes }) => causes)[0]?.evidence ?? '', /^half of our prices/);
  });

  test('a long context, and caches of an hour', () => {
    const long = openaiUsage(FACTS, OPTIONS);
    assert.ok(long.length > 0);
    const texts = [anthropicUsage(HOURS, OPTIONS), anthropicCosts(HOURS, OPTIONS)];
    const asLong = texts.map((text, index) =>
      index === 0
        ? text.replace('"context_window":null', '"context_window":"200k-1M"')
        : text.replace(/("amount":")(\d)/, '$11$2'),
    );
    const found = compare({ texts: asLong, recorded: recordedAll(HOURS), read: readAnthropicInvoice });
    assert.deepEqual(
      found.rows.flatMap(({ causes }) => causes.map(({ kind }) => kind)),
      ['long_context'],
    );
    const shorter = HOURS.map((fact) => ({ ...fact, written: fact.written + 500, writtenHour: 0 }));
    const hours = compare({ texts, recorded: recordedAll(shorter), read: readAnthropicInvoice });
    const kinds = hours.rows.flatMap(({ causes }) => causes.map(({ kind }) => kind));
    assert.deepEqual(
      kinds,
      HOURS.map(() => 'cache_write_1h'),
    );
    assert.equal(hours.rows[0]?.difference, hours.rows[0]?.causes[0]?.cost);
  });

  test('a cancelled stream, and one that was counted', () => {
    const billed = FACTS.map((fact) =>
      fact.day === 2 ? { ...fact, requests: 61, input: fact.input + 700, output: fact.output + 90 } : fact,
    );
    const unseen = recordedOf(
      { ...BASE, day: 2, requests: 1, input: 0, cached: 0, written: 0, output: 0, searches: 0 },
      { usageSource: 'unseen', outcome: 'aborted_before_first_byte' },
    );
    const found = compare({ texts: openai(billed), recorded: [...recorded, unseen] });
    assert.deepEqual(differences(found), [`2026-11-03 ${MODEL}: cancelled ${700n * PRICES.input + 90n * outputRate}`]);
    assert.match(
      found.rows.flatMap(({ causes }) => causes)[0]?.evidence ?? '',
      /aborted_before_first_byte 1\); they count 1 requests more/,
    );
    const part = { ...BASE, day: 2, requests: 1, input: 300, cached: 0, written: 0, output: 12, searches: 0 };
    const counted = recordedOf(part, { usageSource: 'counted' });
    const more = FACTS.map((fact) =>
      fact.day === 2 ? { ...fact, requests: 61, input: fact.input + 301, output: fact.output + 50 } : fact,
    );
    const guessed = compare({ texts: openai(more), recorded: [...recorded, counted] });
    assert.deepEqual(differences(guessed), [`2026-11-03 ${MODEL}: counted ${PRICES.input + 38n * outputRate}`]);
  });

  test('requests at midnight, on either day', () => {
    const late = { ...BASE, requests: 1, input: 400, cached: 0, written: 0, output: 60, searches: 0 };
    const at = [...recorded, recordedOf(late, { isAtEdge: true })];
    const found = compare({ texts: openai([...FACTS, { ...late, day: 1 }]), recorded: at });
    const worth = 400n * PRICES.input + 60n * outputRate;
    assert.deepEqual(differences(found), [
      `2026-11-01 ${MODEL}: day_edge ${-worth}`,
      `2026-11-02 ${MODEL}: day_edge ${worth}`,
    ]);
  });

  test('usage outside, usage that is not billed, credits and taxes, what is in suspense', () => {
    const more = FACTS.map((fact) => (fact.day === 0 ? { ...fact, requests: 45, output: fact.output + 5 } : fact));
    assert.deepEqual(differences(compare({ texts: openai(more), recorded })), [
      `2026-11-01 ${MODEL}: outside ${5n * outputRate}`,
    ]);
    const less = FACTS.map((fact) => (fact.day === 0 ? { ...fact, output: fact.output - 5 } : fact));
    assert.deepEqual(differences(compare({ texts: openai(less), recorded })), [
      `2026-11-01 ${MODEL}: not_billed ${-5n * outputRate}`,
    ]);
    const item = (line_item: string, value: number) => ({
      object: 'organization.costs.result',
      amount: { value, currency: 'usd' },
      line_item,
      api_key_id: null,
    });
    const further = { 1: [item('Complimentary tokens', -0.5), item('VAT', 0.07), item('vector storage', 0.01)] };
    const found = compare({
      texts: [openaiUsage(FACTS, OPTIONS), openaiCosts(FACTS, { ...OPTIONS, further })],
      recorded,
    });
    assert.deepEqual(differences(found), [
      '2026-11-02 Complimentary tokens: credit -500000000000',
      '2026-11-02 VAT: tax 70000000000',
      '2026-11-02 vector storage: other_charge 10000000000',
    ]);
    const hidden = recordedOf(BASE, { requests: 40, suspected: 2, suspense: 77n });
    const doubted = compare({ texts: openai(more), recorded: [hidden, ...recorded.slice(1)] });
    assert.deepEqual(differences(doubted), [`2026-11-01 ${MODEL}: suspense ${5n * outputRate}`]);
  });

  test('requests that are not over, a model without a price, and what nothing explains', () => {
    const nothing = { ...BASE, requests: 2, input: 0, cached: 0, written: 0, output: 0, searches: 0 };
    const unfinished = recordedOf(nothing, { usageSource: 'open' });
    const more = FACTS.map((fact) => (fact.day === 0 ? { ...fact, requests: 42, output: fact.output + 5 } : fact));
    const early = compare({ texts: openai(more), recorded: [...recorded, unfinished] });
    assert.deepEqual(differences(early), [`2026-11-01 ${MODEL}: open ${5n * outputRate}`]);
    assert.match(early.rows.flatMap(({ causes }) => causes)[0]?.evidence ?? '', /^2 requests of ours are not over/);

    const tokens = { ...BASE, searches: 0 };
    const unrated = recordedOf(tokens, { priceVersion: null, cost: 0n, unrated: 40 });
    const unpriced = compare({ texts: openai([tokens]), recorded: [unrated] });
    assert.deepEqual(differences(unpriced), [`2026-11-01 ${MODEL}: no_price ${recordedOf(tokens).cost}`]);
    const [reason] = unpriced.rows.flatMap(({ causes }) => causes);
    assert.match(reason?.evidence ?? '', /^40 requests of ours have no price in the catalog/);

    // More input and less output at once: neither a use outside nor a thing that was not billed.
    const odd = FACTS.map((fact) =>
      fact.day === 0 ? { ...fact, input: fact.input + 3, output: fact.output - 5 } : fact,
    );
    const left = compare({ texts: openai(odd), recorded });
    assert.deepEqual(differences(left), [`2026-11-01 ${MODEL}: unexplained ${3n * PRICES.input - 5n * outputRate}`]);
    assert.match(left.rows.flatMap(({ causes }) => causes)[0]?.evidence ?? '', /input \+3.*output -5/);
  });

  test('a tolerance is of dollars or of a share, and of no difference without an amount', () => {
    const more = FACTS.map((fact) => (fact.day === 0 ? { ...fact, output: fact.output + 5 } : fact));
    const within = (tolerance: Tolerance) => compare({ texts: openai(more), recorded, tolerance }).isWithin;
    assert.equal(within({ amount: 5n * outputRate }), true);
    assert.equal(within({ amount: 5n * outputRate - 1n }), false);
    assert.equal(within({ milliPercent: 1_000n }), true);
    assert.equal(within({ milliPercent: 1n }), false);
  });

  test('an export that says that there is more', () => {
    const [usage = ''] = openai(FACTS);
    const cut = compare({ texts: [usage.replace(/"has_more":false/, '"has_more":true')], recorded });
    assert.match(cut.notes.join(' '), /has_more/);
  });
});

test('rows that are there twice are told of, over all files', () => {
  const seen = new RowsSeen();
  const [usage, costs] = [openaiUsage(FACTS, OPTIONS), openaiCosts(FACTS, OPTIONS)];
  for (const text of [usage, costs]) assert.ok(readOpenaiInvoice(text, seen).ok);
  assert.deepEqual(seen.notes(), []);
  assert.ok(readOpenaiInvoice(costs, seen).ok);
  assert.match(seen.notes().join(), /^\d+ rows are in the export more than once, word for word/);
  const anthropic = new RowsSeen();
  const page = anthropicCosts(FACTS, OPTIONS);
  assert.ok(readAnthropicInvoice(page, anthropic).ok);
  assert.deepEqual(anthropic.notes(), []);
  assert.ok(readAnthropicInvoice(page, anthropic).ok);
  assert.equal(anthropic.notes().length, 1);
});

describe('an export that cannot be read', () => {
  const usage = openaiUsage(FACTS, OPTIONS);
  const cases: readonly (readonly [name: string, text: string, problem: RegExp])[] = [
    ['nothing', ' \n', /^the file is empty$/],
    ['another format', 'day,amount\n', /^line 1, column 1: expected \{ or \[/],
    ['a cut file', usage.slice(0, 400), /^line 1, column \d+: .* cut$/],
    ['a comma too many', '{"data":[\n {"start_time":1,,}\n]}', /^line 2, column 18: not JSON: /],
    ['depth', '['.repeat(100_000), /^line 1, column 65: nested deeper than 64/],
    ['no data', '{"pages":[]}', /^page 1, data: is missing$/],
    ['no list', '{"data":1}', /^page 1, data: must be a list$/],
    ['pages that are none', '[[1]]', /^page 1: must be an object$/],
    [
      'a row that is none',
      usage.replace(/"results":\[/, '$&5,'),
      /^page 1, data\[0\]\.results\[0\]: must be an object$/,
    ],
    ['an odd end', '{"data":[],"has_more":1}', /^page 1, has_more: must be true or false$/],
    [
      'a quantity of another kind',
      openaiCosts(FACTS, OPTIONS).replace('"line_item"', '"quantity":true,$&'),
      /^bucket 1, results\[0\]\.quantity: must be a number or a string$/,
    ],
    [
      'a wrong count',
      usage.replace('"output_tokens":21000', '"output_tokens":-3'),
      /^bucket 1, results\[0\]\.output_tokens: must not be negative$/,
    ],
    [
      'a count with digits that no number holds',
      usage.replace('"output_tokens":21000', '"output_tokens":99007199254740993'),
      /output_tokens: must be a whole number/,
    ],
    [
      'more cached than there is',
      usage.replace('"input_tokens":158000', '"input_tokens":10'),
      /input_tokens: is less than/,
    ],
    [
      'no time',
      usage.replace(/"start_time":\d+/, '"start_time":"yesterday"'),
      /^page 1, data\[0\]\.start_time: must be seconds/,
    ],
    [
      'milliseconds',
      usage.replace(/"start_time":(\d+)/, '"start_time":$1000'),
      /^page 1, data\[0\]\.start_time: must be seconds since 1970$/,
    ],
    ['another currency', openaiCosts(FACTS, OPTIONS).replace('"usd"', '"eur"'), /amount\.currency: is eur/],
    [
      'no amount',
      openaiCosts(FACTS, OPTIONS).replace(/"value":[\d.]+/, '"value":"much"'),
      /amount\.value: is no amount: "much"/,
    ],
  ];
  for (const [name, text, problem] of cases) {
    test(name, () => {
      const read = readOpenaiInvoice(text);
      assert.ok(!read.ok);
      assert.match(read.problem, problem);
    });
  }

  test("Anthropic's too", () => {
    const text = anthropicCosts(FACTS, OPTIONS);
    const read = readAnthropicInvoice(text.replace(/"amount":"[^"]*"/, '"amount":"1,5"'));
    assert.ok(!read.ok);
    assert.match(read.problem, /^bucket 1, results\[0\]\.amount: is no amount: "1,5"$/);
    const other = readAnthropicInvoice(text.replace(/"starting_at":"[^"]*"/, '"starting_at":"Sunday"'));
    assert.ok(!other.ok);
    assert.match(other.problem, /^page 1, data\[0\]\.starting_at: must be a moment/);
    const third = readAnthropicInvoice(
      anthropicUsage(FACTS, OPTIONS).replace(/"cache_creation":\{[^}]*\}/, '"cache_creation":4'),
    );
    assert.ok(!third.ok);
    assert.match(third.problem, /^bucket 1, results\[0\]\.cache_creation: must be an object$/);
    assert.ok(!readAnthropicInvoice(openaiUsage(FACTS, OPTIONS)).ok);
  });

  test('amounts are read to the pico-dollar, in any notation', () => {
    const amounts = [
      '0.06',
      '1e-7',
      '0.8958740000000000',
      '5.2e-06',
      '-0.000000000001',
      '0.0000000000005',
      '12',
      '1.5E+2',
      '.5',
      '1,5',
      '',
    ];
    assert.deepEqual(
      amounts.map((text) => readDecimal(text, 12)?.amount ?? null),
      [
        60_000_000_000n,
        100_000n,
        895_874_000_000n,
        5_200_000n,
        -1n,
        1n,
        12_000_000_000_000n,
        150_000_000_000_000n,
        null,
        null,
        null,
      ],
    );
    assert.equal(readDecimal('123.78912', 10)?.amount, 1_237_891_200_000n);
    assert.equal(readDecimal('123.78912', 10)?.step, 100_000n);
  });
});
