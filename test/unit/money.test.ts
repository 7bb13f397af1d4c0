// Money text in and out, against an oracle that shares nothing with the code: string arithmetic on fixed-width digits.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { isLosslessNumber, parse as parseLossless } from 'lossless-json';
import { formatUsdJsonNumber, formatUsdString } from '../../src/domain/money/format.ts';
import { parsePricePerMillion, parseUsd } from '../../src/domain/money/parse-usd.ts';

const AMOUNT = fc.bigInt({ min: 0n, max: 10n ** 38n - 1n });

describe('parseUsd', () => {
  const read: readonly (readonly [string, bigint])[] = [
    ['0', 0n],
    ['0.0', 0n],
    ['1', 1_000_000_000_000n],
    ['25.00', 25_000_000_000_000n],
    ['0.000000000001', 1n],
    ['0.00001875', 18_750_000n],
    ['9007199254740993', 9_007_199_254_740_993_000_000_000_000n],
    ['99999999999999999999999999.999999999999', 10n ** 38n - 1n],
  ];
  for (const [text, amount] of read) test(`reads ${text}`, () => assert.equal(parseUsd(text), amount));

  const refused = [
    '',
    ' ',
    '.',
    '.5',
    '5.',
    '-1',
    '+1',
    '-0',
    '01',
    '00',
    '1e3',
    '1E3',
    '0x10',
    '1,5',
    '1_000',
    ' 1',
    '1 ',
    '1\n',
    'NaN',
    'Infinity',
    '١',
    '0.0000000000001',
    '1.0000000000000',
    '100000000000000000000000000',
    '1'.repeat(10_000),
  ];
  for (const text of refused)
    test(`refuses ${JSON.stringify(text.slice(0, 40))}`, () => assert.equal(parseUsd(text), null));

  test('reads every amount that formatUsdString prints, exactly', () => {
    fc.assert(fc.property(AMOUNT, (amount) => parseUsd(formatUsdString(amount)) === amount));
  });

  test('agrees with the digits moved by hand', () => {
    const decimal = fc.tuple(fc.bigInt({ min: 0n, max: 10n ** 20n }), fc.stringMatching(/^[0-9]{0,12}$/));
    fc.assert(
      fc.property(decimal, ([whole, fraction]) => {
        const text = fraction === '' ? `${whole}` : `${whole}.${fraction}`;
        assert.equal(parseUsd(text), whole * 10n ** 12n + BigInt(`${fraction}${'0'.repeat(12 - fraction.length)}`));
      }),
    );
  });

  test('never throws', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        parseUsd(text);
        parsePricePerMillion(text);
      }),
    );
  });
});

describe('parsePricePerMillion', () => {
  test('is whole pico-dollars per token', () => {
    assert.equal(parsePricePerMillion('1.25'), 1_250_000n);
    assert.equal(parsePricePerMillion('0.000001'), 1n);
    assert.equal(parsePricePerMillion('0'), 0n);
    assert.equal(parsePricePerMillion('75'), 75_000_000n);
  });
  test('refuses what would not be whole', () => assert.equal(parsePricePerMillion('0.0000001'), null));
  test('a million tokens cost the price', () => {
    const price = fc
      .tuple(fc.nat({ max: 1_000_000 }), fc.stringMatching(/^[0-9]{1,6}$/))
      .map(([whole, fraction]) => `${whole}.${fraction}`);
    fc.assert(fc.property(price, (text) => (parsePricePerMillion(text) as bigint) * 1_000_000n === parseUsd(text)));
  });
});

describe('formatUsdString', () => {
  const printed: readonly (readonly [bigint, string])[] = [
    [0n, '0'],
    [1n, '0.000000000001'],
    [-1n, '-0.000000000001'],
    [18_750_000n, '0.00001875'],
    [1_000_000_000_000n, '1'],
    [-1_500_000_000_000n, '-1.5'],
    [10_000_000_000_000n, '10'],
    [10n ** 38n, '100000000000000000000000000'],
    [10n ** 38n + 1n, '100000000000000000000000000.000000000001'],
  ];
  for (const [amount, text] of printed)
    test(`prints ${amount} as ${text}`, () => assert.equal(formatUsdString(amount), text));

  test('is the amount divided by 10^12, digit for digit, with nothing to spare', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n }), (amount) => {
        const text = formatUsdString(amount);
        assert.match(text, /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]{0,11}[1-9])?$/);
        const [whole = '', fraction = ''] = text.split('.');
        assert.equal(BigInt(`${whole}${fraction.padEnd(12, '0')}`), amount);
      }),
    );
  });
});

describe('formatUsdJsonNumber', () => {
  test('is a legal JSON number that a lossless parser reads back to the digit', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n }), (amount) => {
        const text = formatUsdJsonNumber(amount);
        assert.doesNotMatch(text, /[eE+]/);
        JSON.parse(text);
        const read = parseLossless(`{"total_cost":${text}}`) as { total_cost: unknown };
        assert.ok(isLosslessNumber(read.total_cost));
        assert.equal(read.total_cost.value, text);
        assert.equal(text, formatUsdString(amount));
      }),
    );
  });
});
