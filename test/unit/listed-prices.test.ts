// Listed prices in the words of the configuration file: exact, whole, and compared term by term.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { loadPriceList, PRICE_LIST } from '../../src/commands/configuration-file/price-list.ts';
import { PRESET_NAMES } from '../../src/domain/configuration/presets.ts';
import { pricesProblem, pricesSchema } from '../../src/domain/configuration/schema/price-schema.ts';
import { comparePrices } from '../../src/domain/list-prices/compare-prices.ts';
import { scaleDecimal, scaleNumber } from '../../src/domain/list-prices/decimal-text.ts';
import type { ListedModel, ListedPrice } from '../../src/domain/list-prices/listed-model.ts';
import { writeListedPrices } from '../../src/domain/list-prices/listed-price.ts';
import { nearestNames } from '../../src/domain/list-prices/nearest-names.ts';

const NOW = Date.parse('2026-11-24T12:00:00Z');

function listed(...prices: (Partial<ListedPrice> & Pick<ListedPrice, 'amounts'>)[]): ListedModel {
  return {
    id: 'm',
    name: null,
    contextLength: null,
    isDeprecated: false,
    prices: prices.map((price) => ({ from: null, between: null, ...price })),
  };
}

describe('decimals are moved as text', () => {
  for (const [text, power, decimalsMax, expected] of [
    ['0.00000125', 6, 6, '1.25'],
    ['1.25e-06', 6, 6, '1.25'],
    ['1.25E-6', 6, 6, '1.25'],
    ['3e-7', 6, 6, '0.3'],
    ['2', 6, 6, '2000000'],
    ['0', 6, 6, '0'],
    ['0.10', 0, 6, '0.1'],
    ['10', -3, 12, '0.01'],
    ['2.5', -3, 12, '0.0025'],
    ['0.0000000000001', 6, 6, '0.000001'],
    ['123456789.000001', 0, 6, '123456789.000001'],
  ] as const)
    test(`${text} times 10^${power} is ${expected}`, () =>
      assert.equal(scaleDecimal(text, power, decimalsMax)?.text, expected));

  for (const text of ['', 'free', '-1', '1.2.3', '1e', 'NaN', 'Infinity', '1_000', '0x10'])
    test(`"${text}" is no number`, () => assert.equal(scaleDecimal(text, 6, 6), null));

  test('the noise of a float is left out, and what has too many decimals is rounded up and says so', () => {
    assert.deepEqual(scaleNumber(0.18000000000000002, 0, 6), { text: '0.18', isRounded: false });
    assert.deepEqual(scaleNumber(0.1 + 0.2, 0, 6), { text: '0.3', isRounded: false });
    assert.deepEqual(scaleNumber(0.08333333333333334, 0, 6), { text: '0.083334', isRounded: true });
  });
});

describe('the list that comes along', () => {
  test('is the version that is installed', () => {
    const { dependencies } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
      dependencies: Record<string, string>;
    };
    assert.equal(dependencies['@pydantic/genai-prices'], PRICE_LIST.version);
  });

  test('each of its prices by tokens is one that the file may have, at every provider with a preset', async () => {
    const list = await loadPriceList();
    let written = 0;
    let rounded = 0;
    for (const preset of PRESET_NAMES)
      for (const model of list.provider({ preset, baseUrl: null })?.models ?? []) {
        const found = writeListedPrices(model, NOW);
        if (found === null) continue;
        const price = pricesSchema.safeParse(found.prices.length === 1 ? found.prices[0] : found.prices);
        assert.ok(price.success, `${preset} ${model.id}: ${JSON.stringify(found.prices)}`);
        assert.equal(pricesProblem(found.kind, price.data), null, `${preset} ${model.id}`);
        written += 1;
        if (found.notes.some((note) => note.includes('rounded up'))) rounded += 1;
      }
    assert.ok(written > 1_000, `only ${written}`);
    assert.equal(rounded, 6);
  });

  test('a provider without a preset is known by its address, and one that nobody lists is not', async () => {
    const list = await loadPriceList();
    assert.equal(list.provider({ preset: null, baseUrl: 'https://api.groq.com/openai/v1' })?.id, 'groq');
    assert.equal(list.provider({ preset: null, baseUrl: 'https://llm.acme.test/v1' }), null);
    assert.equal(list.provider({ preset: 'vllm', baseUrl: null }), null);
  });

  test('a dated name finds its model, a wrong one finds names like it', async () => {
    const openai = (await loadPriceList()).provider({ preset: 'openai', baseUrl: null });
    assert.equal(openai?.find('gpt-5-2025-08-07')?.id, 'gpt-5');
    assert.equal(openai?.find('gpt-5.6-tera'), null);
    assert.equal(openai?.nearest('gpt-5.6-tera')[0], 'gpt-5.6-terra');
    assert.deepEqual(nearestNames('zzzz', ['gpt-5', 'o3']), []);
  });
});

describe('a listed price in the words of the file', () => {
  test('all terms: caches, tiers, audio, searches, requests', () => {
    const found = writeListedPrices(
      listed({
        amounts: {
          input_mtok: { base: 1.25, tiers: [{ start: 199_999, price: 2.5 }] },
          cache_read_mtok: {
            base: 0.125,
            tiers: [
              { start: 199_999, price: 0.25 },
              { start: 499_999, price: 0.5 },
            ],
          },
          cache_write_mtok: 1.5625,
          cache_write_1h_mtok: 2.5,
          output_mtok: 10,
          input_audio_mtok: 32,
          cache_audio_read_mtok: 0.4,
          output_audio_mtok: 64,
          web_searches_kcount: 10,
          requests_kcount: 5,
          output_reasoning_mtok: 3,
        },
      }),
      NOW,
    );
    assert.deepEqual(found, {
      kind: 'text',
      notes: ['the list also has output_reasoning_mtok, for which the file has no price'],
      prices: [
        {
          input: '1.25',
          cached_input: '0.125',
          cache_write: '1.5625',
          cache_write_1h: '2.5',
          output: '10',
          input_audio: '32',
          cached_audio: '0.4',
          output_audio: '64',
          tiers: [
            { from_input: 200_000, input: '2.5', cached_input: '0.25' },
            { from_input: 500_000, input: '2.5', cached_input: '0.5' },
          ],
          calls: { web_search: { usd: '0.01', max: 10 } },
          request: '0.005',
        },
      ],
    });
  });

  test('what has been replaced is left out; what is to come keeps its date, also for its hours', () => {
    const amounts = (input: number) => ({ input_mtok: input, output_mtok: input });
    const words = (input: string) => ({ input, output: input });
    const found = writeListedPrices(
      listed(
        { amounts: amounts(9) },
        { from: '2026-08-17', amounts: amounts(1) },
        { between: { from: '03:00:00+02:00', until: '04:00:00Z' }, amounts: amounts(2) },
        { from: '2027-01-01', amounts: amounts(3) },
        { between: { from: '23:30:00Z', until: '00:30:00Z' }, amounts: amounts(4) },
      ),
      NOW,
    );
    assert.deepEqual(found?.prices, [
      words('1'),
      { between: '01:00-04:00', ...words('2') },
      { from: '2027-01-01', ...words('3') },
      { from: '2027-01-01', between: '23:30-00:30', ...words('4') },
    ]);
    assert.ok(pricesSchema.safeParse(found?.prices).success);
  });

  test('vectors have no output; what is not priced by tokens has no price', () => {
    assert.equal(writeListedPrices(listed({ amounts: { input_mtok: 0.02 } }), NOW)?.kind, 'embedding');
    assert.equal(writeListedPrices(listed({ amounts: { audio_hours: 3 } }), NOW), null);
    assert.equal(writeListedPrices(listed({ amounts: { input_mtok: 5, output_image_mtok: 40 } }), NOW), null);
  });
});

describe('a price of the file beside the listed one', () => {
  const compare = (own: unknown, ...prices: Record<string, unknown>[]) =>
    comparePrices(own, prices, { kind: 'text', nowMs: NOW });

  test('the same amount written otherwise is no difference, and stays as it is written', () => {
    const found = compare({ input: '1.250', output: '10.00' }, { input: '1.25', output: '10' });
    assert.deepEqual(found, { differences: [], onlyOwn: [], merged: { input: '1.250', output: '10.00' } });
  });

  test('what differs is named and taken over; what a list cannot know stays', () => {
    const own = {
      input: '2.50',
      cached_input: '0.3',
      output: '10',
      tiers: [{ from_input: 200_000, input: '5' }],
      service_tiers: { flex: '0.5' },
      factor: '1.1',
      calls: { web_search: { usd: '0.01', max: 3 }, code: '0.03' },
    };
    const found = compare(own, { input: '2', output: '10', calls: { web_search: { usd: '0.02', max: 10 } } });
    assert.deepEqual(found, {
      differences: [
        { term: 'input', own: '2.5', listed: '2' },
        { term: 'tiers', own: '[{"from_input":200000,"input":"5"}]', listed: null },
        { term: 'calls.web_search', own: '0.01', listed: '0.02' },
      ],
      onlyOwn: ['cached_input'],
      merged: {
        input: '2',
        cached_input: '0.3',
        output: '10',
        service_tiers: { flex: '0.5' },
        factor: '1.1',
        calls: { web_search: { usd: '0.02', max: 3 }, code: '0.03' },
      },
    });
  });

  describe('searches that a model makes unasked', () => {
    const PLAIN = { input: '2', output: '8' };
    const LISTED = { ...PLAIN, calls: { web_search: { usd: '0.005', max: 50, unasked: true } } };
    const UNASKED = { term: 'calls.web_search.unasked', own: null, listed: 'true' };
    const ROWS: readonly (readonly [name: string, own: object, differences: object[], merged: object])[] = [
      [
        'are told and taken over with how many are held for',
        { web_search: { usd: '0.005', max: 10 }, code: '0.03' },
        [UNASKED, { term: 'calls.web_search.max', own: '10', listed: '50' }],
        { web_search: { usd: '0.005', max: 50, unasked: true }, code: '0.03' },
      ],
      [
        'are told where the file has just their price',
        { web_search: '0.0050' },
        [UNASKED, { term: 'calls.web_search.max', own: null, listed: '50' }],
        { web_search: { usd: '0.005', max: 50, unasked: true } },
      ],
      [
        'are told beside another price',
        { web_search: { usd: '0.01', max: 50 } },
        [{ term: 'calls.web_search', own: '0.01', listed: '0.005' }, UNASKED],
        { web_search: { usd: '0.005', max: 50, unasked: true } },
      ],
      [
        'leave the file its maximum where that is greater',
        { web_search: { usd: '0.005', max: 80 } },
        [UNASKED],
        { web_search: { usd: '0.005', max: 80, unasked: true } },
      ],
      [
        'leave the file its maximum where it has them',
        { web_search: { usd: '0.005', max: 30, unasked: true } },
        [],
        { web_search: { usd: '0.005', max: 30, unasked: true } },
      ],
    ];
    for (const [name, calls, differences, merged] of ROWS)
      test(name, () => {
        const found = compare({ ...PLAIN, calls }, LISTED);
        assert.deepEqual(found, { differences, onlyOwn: [], merged: { ...PLAIN, calls: merged } });
      });

    test('stay where the list knows nothing of them', () => {
      const own = { ...PLAIN, calls: { web_search: { usd: '0.005', max: 50, unasked: true } } };
      const found = compare(own, { ...PLAIN, calls: { web_search: { usd: '0.005', max: 10 } } });
      assert.deepEqual(found, { differences: [], onlyOwn: [], merged: own });
    });
  });

  test('a price of the file that is past is compared by what has replaced it', () => {
    const own = [
      { input: '9', output: '9' },
      { from: '2026-08-17', input: '1', output: '1' },
    ];
    assert.deepEqual(compare(own, { input: '1', output: '1' })?.differences, []);
    const more = compare(
      { input: '1', output: '1' },
      { input: '1', output: '1' },
      { from: '2027-01-01', input: '2', output: '2' },
    );
    const listed = '[{"input":"1","output":"1"},{"from":"2027-01-01","input":"2","output":"2"}]';
    assert.deepEqual(more?.differences, [{ term: 'price', own: '1 by date or hour', listed }]);
    assert.deepEqual(more?.merged, [
      { input: '1', output: '1' },
      { from: '2027-01-01', input: '2', output: '2' },
    ]);
  });

  test('the merged price is the listed one when it is compared again', () => {
    const wanted = {
      input: '2',
      output: '12',
      tiers: [{ from_input: 272_000, input: '4', output: '18' }],
      request: '0.005',
    };
    const once = compare({ input: '3', output: '12.0', tiers: [{ from_input: 1, input: '9' }], factor: '1.1' }, wanted);
    assert.notEqual(once?.differences.length, 0);
    assert.deepEqual(compare(once?.merged, wanted)?.differences, []);
  });

  test('what is no price cannot be compared', () => {
    assert.equal(compare({ input: 2 }, { input: '2' }), null);
    assert.equal(compare('free', { input: '2' }), null);
  });
});
