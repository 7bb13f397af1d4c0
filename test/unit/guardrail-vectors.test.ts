// How many values the built-in detectors find and miss in vectors that others made, and what they find where nothing
// is. The figures are kept in guardrail-figures.json: a detector that gets worse, or better, changes them.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { composeIBAN, countrySpecs, isValidIBAN } from 'ibantools';
import examples from 'libphonenumber-js/examples.mobile.json';
import { getCountryCallingCode, isValidPhoneNumber } from 'libphonenumber-js/max';
import validator from 'validator';
import { ENTITY_NAMES, type EntityName } from '../../src/domain/guardrails/entities.ts';
import { compiledOf, foundIn, ruleOf } from '../support/guardrail-policies.ts';
import { sharedAssets } from '../support/shared-assets.ts';

/** What a detector found of what is there. */
interface Figures {
  readonly expected: number;
  readonly found: number;
  /** Found where nothing is. */
  readonly extra: number;
}

const KEPT = JSON.parse(readFileSync(new URL('guardrail-figures.json', import.meta.url), 'utf8')) as Readonly<
  Record<string, Readonly<Record<string, Figures>>>
>;
const compiled = new Map(ENTITY_NAMES.map((entity) => [entity, compiledOf(ruleOf({ detect: [entity] }))]));

function countIn(entity: EntityName, text: string): number {
  const policy = compiled.get(entity);
  assert.ok(policy !== undefined);
  return foundIn(policy, text).length;
}

function figuresOf(entity: EntityName, rows: readonly (readonly [text: string, expected: number])[]): Figures {
  let [expected, found, extra] = [0, 0, 0];
  for (const [text, count] of rows) {
    const here = countIn(entity, text);
    expected += count;
    found += Math.min(here, count);
    extra += Math.max(0, here - count);
  }
  return { expected, found, extra };
}

/** Presidio's tables, by the name of their file. */
const PRESIDIO: Readonly<Record<string, EntityName>> = {
  credit_card: 'card',
  crypto: 'wallet_address',
  de_tax_id: 'de_tax_id',
  email: 'email',
  es_nie: 'es_nie',
  es_nif: 'es_nif',
  fi_personal_identity_code: 'fi_hetu',
  iban: 'iban',
  in_aadhaar: 'in_aadhaar',
  it_fiscal_code: 'it_fiscal_code',
  phone: 'phone',
  pl_pesel: 'pl_pesel',
  uk_nhs: 'uk_nhs',
  uk_nino: 'uk_nino',
  us_itin: 'us_itin',
  us_ssn: 'us_ssn',
};

/** The rows of the parametrized tables: a text, and how often the entity is in it. */
function presidioRows(file: string): (readonly [string, number])[] {
  const rows = readFileSync(file, 'utf8').matchAll(/^\s*\(\s*"((?:[^"\\]|\\.)*)",\s*\\?\s*(\d+),/gm);
  return [...rows].map(([, text = '', count]) => [text.replaceAll(/\\(.)/g, '$1'), Number(count)]);
}

const directory = sharedAssets('guardrails', 'presidio');

test('Presidio’s tables', directory !== null ? {} : { skip: 'the shared assets are not beside this clone' }, () => {
  const found = Object.fromEntries(
    Object.entries(PRESIDIO).map(([name, entity]) => [
      entity,
      figuresOf(entity, presidioRows(join(directory as string, `test_${name}_recognizer.py.txt`))),
    ]),
  );
  assert.deepEqual(found, KEPT['presidio']);
});

/** Its recognizers that need no model of a language, by our names. */
const RECOGNIZERS = {
  card: ['CreditCardRecognizer', 'CREDIT_CARD', 'credit_card'],
  email: ['EmailRecognizer', 'EMAIL_ADDRESS', 'email'],
  iban: ['IbanRecognizer', 'IBAN_CODE', 'iban'],
  us_ssn: ['UsSsnRecognizer', 'US_SSN', 'us_ssn'],
  phone: ['PhoneRecognizer', 'PHONE_NUMBER', 'phone'],
} as const;
const COUNT_FOUND = `
import json, sys
from presidio_analyzer import predefined_recognizers as all
name, entity = sys.argv[1:3]
recognizer = getattr(all, name)()
print(json.dumps([len([r for r in recognizer.analyze(text, [entity], None) if r.score >= 0.4])
                  for text in json.load(sys.stdin)]))`;
const python = process.env['PRESIDIO_PYTHON'];
const skipPresidio =
  directory === null || python === undefined
    ? { skip: 'PRESIDIO_PYTHON names no Python with presidio-analyzer 2.2.366, or the shared assets are not here' }
    : {};

test('Presidio itself, on the rows of its tables', skipPresidio, () => {
  const found = Object.entries(RECOGNIZERS).map(([entity, [recognizer, name, file]]) => {
    const rows = presidioRows(join(directory as string, `test_${file}_recognizer.py.txt`));
    const input = JSON.stringify(rows.map(([text]) => text));
    const output = execFileSync(python as string, ['-c', COUNT_FOUND, recognizer, name], {
      input,
      encoding: 'utf8',
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    const theirs = JSON.parse(output) as number[];
    const ours = rows.map(([text]) => countIn(entity as EntityName, text));
    const more = ours.filter((count, index) => count > (theirs[index] ?? 0)).length;
    const fewer = ours.filter((count, index) => count < (theirs[index] ?? 0)).length;
    return [entity, { rows: rows.length, more, fewer }];
  });
  assert.deepEqual(Object.fromEntries(found), KEPT['presidio itself']);
});

/** Of the schemes' own documentation for developers. */
const TEST_CARDS =
  '378282246310005 371449635398431 378734493671000 5610591081018250 30569309025904 38520000023237 ' +
  '6011111111111117 6011000990139424 3530111333300000 3566002020360505 5555555555554444 5105105105105100 ' +
  '4111111111111111 4012888888881881 4222222222222 2223003122003222 6200000000000005 4000056655665556 ' +
  '5200828282828210 2221000000000009';

test('test numbers of card schemes, in every grouping', () => {
  const rows = TEST_CARDS.split(' ').flatMap((number) => {
    const grouped = number.length === 15 ? /(.{4})(.{6})(.{5})/ : /(.{4})(.{4})(.{4})(.{1,4})/;
    return [
      number,
      number.replace(grouped, '$1 $2 $3 $4').trim(),
      number.replace(grouped, '$1-$2-$3-$4').replace(/-$/, ''),
    ].map((text) => [`card: ${text}.`, 1] as const);
  });
  assert.deepEqual(figuresOf('card', rows), KEPT['schemes']?.['card']);
});

test('an IBAN of every country that ibantools knows, and the same with one digit changed', () => {
  const rows = Object.keys(countrySpecs).flatMap((country) => {
    const spec = countrySpecs[country];
    if (spec?.IBANRegistry !== true || spec.bban_regexp === undefined) return [];
    const made = composeIBAN({ countryCode: country, bban: bbanOf(country) ?? '' });
    if (made === null || !isValidIBAN(made)) return [];
    const last = made.at(-1) === '7' ? '1' : '7';
    return [
      [`to ${made} please`, 1],
      [`to ${made.replaceAll(/(.{4})/g, '$1 ').trim()}, please`, 1],
      [`to ${made.slice(0, -1)}${last} please`, 0],
    ] as const;
  });
  assert.deepEqual(figuresOf('iban', rows), KEPT['ibantools']?.['iban']);
});

/** One that has the form of the country's; its national check digit may be wrong, so that some are left out. */
function bbanOf(country: string): string | undefined {
  const { bban_regexp: form = '', chars = 0 } = countrySpecs[country] ?? {};
  const matches = new RegExp(form);
  const candidates = ['0', '1', 'A', '9'].map((character) => character.repeat(chars - 4));
  const mixed = [...form.matchAll(/\[?([A-Z0-9-]+)\]?\{(\d+)\}/g)].map(([, characters = '', count]) =>
    (characters.startsWith('0') ? '1' : 'A').repeat(Number(count)),
  );
  return [mixed.join(''), ...candidates].find((candidate) => matches.test(candidate));
}

test('libphonenumber’s example of every country, as it is dialled from abroad', () => {
  const rows = Object.entries(examples).map(([country, national]) => {
    const code = getCountryCallingCode(country as Parameters<typeof getCountryCallingCode>[0]);
    return [`call +${code} ${national} now`, 1] as const;
  });
  assert.deepEqual(figuresOf('phone', rows), KEPT['libphonenumber']?.['phone']);
});

describe('oracles', () => {
  /** A generator of numbers that is the same in every run. */
  let seed = 12_345;
  const random = (below: number): number => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fffffff;
    return seed % below;
  };
  const pick = (characters: string, count: number): string =>
    Array.from({ length: count }, () => characters[random(characters.length)] ?? '').join('');

  test('libphonenumber says nearly the same of random numbers', () => {
    // It also takes off a country's own prefix where one is written behind the code; here only a zero is.
    let [expected, found, extra] = [0, 0, 0];
    for (let run = 0; run < 5_000; run += 1) {
      const number = `+${1 + random(998)}${pick('0123456789', 4 + random(9))}`;
      const isFound = countIn('phone', ` ${number} `) === 1;
      if (!isValidPhoneNumber(number)) extra += isFound ? 1 : 0;
      else [expected, found] = [expected + 1, found + (isFound ? 1 : 0)];
    }
    assert.deepEqual({ expected, found, extra }, KEPT['libphonenumber']?.['random_phone']);
  });

  test('validator says the same of random cards that have a brand', () => {
    for (let run = 0; run < 3_000; run += 1) {
      const number = ['4', '51', '37', '6011', '2221'][random(5)] + pick('0123456789', 15);
      const cut = number.slice(0, number.startsWith('37') ? 15 : 16);
      if (/^(\d)\1+$/.test(cut)) continue;
      assert.equal(countIn('card', ` ${cut} `) === 1, validator.isCreditCard(cut), cut);
    }
  });

  test('whatever is found as an email, JWT or public address is one to validator', () => {
    const alphabet = 'ab1.-_@+x9:';
    let found = 0;
    for (let run = 0; run < 20_000; run += 1) {
      const address = `8.${random(300)}.${random(256)}.9`;
      const text = `${pick(alphabet, 3 + random(8))}@${pick('ab1.-', 3 + random(6))}.com ${address}`;
      for (const [entity, value] of [
        ...foundIn(compiled.get('email') as never, text),
        ...foundIn(compiled.get('ip') as never, text),
      ]) {
        found += 1;
        assert.ok(entity === 'email' ? validator.isEmail(value) : validator.isIP(value), `${entity}: ${value}`);
      }
    }
    assert.ok(found > 1_000);
  });
});

/** Of the reference implementation's vectors (github.com/trezor/python-mnemonic), by count of words. */
const SEED_PHRASES = [
  `${'abandon '.repeat(11)}about`,
  'legal winner thank year wave sausage worth useful legal winner thank yellow',
  'letter advice cage absurd amount doctor acoustic avoid letter advice cage above',
  `${'zoo '.repeat(11)}wrong`,
  `${'abandon '.repeat(17)}agent`,
  `${'abandon '.repeat(23)}art`,
  `${'legal winner thank year wave sausage worth useful '.repeat(2)}legal winner thank year wave sausage worth title`,
  `${'zoo '.repeat(23)}vote`,
  'ozone drill grab fiber curtain grace pudding thank cruise elder eight picnic',
  'hamster diagram private dutch cause delay private meat slide toddler razor book happy fancy gospel tennis maple ' +
    'dilemma loan word shrug inflict delay length',
];

test('BIP-39’s vectors, in what stands around them; with two words changed, or too many, they are none', () => {
  const rows = SEED_PHRASES.flatMap((phrase) => {
    const words = phrase.split(' ');
    return [
      [`The phrase: ${phrase}.`, 1],
      [`my seed phrase is ${phrase}`, 1],
      [`word ${phrase} end`, 1],
      [`\n${words.join('\n')}\n`, 1],
      [words.join(', ').toUpperCase(), 1],
      [`it is ${[...words.slice(0, -1), 'abandonment'].join(' ')}`, 0],
      [`it is ${words.slice(1).join(' ')} horse`, 0],
      [`${'abandon ability '.repeat(12)}${phrase}`, 0],
    ] as const;
  });
  assert.deepEqual(figuresOf('seed_phrase', rows), KEPT['bip39']?.['seed_phrase']);
});

/** What is checked by digits, checksums or exact forms: none of it is in code and prose by accident. */
const VALIDATED: readonly EntityName[] = [
  'card',
  'iban',
  'phone',
  'us_ssn',
  'api_key',
  'jwt',
  'private_key',
  'wallet_key',
  'seed_phrase',
];
/** Packages whose sources and documents have few numbers and keys that are meant to be found. */
const CLEAN = [
  'typescript/lib',
  'undici',
  'pino',
  'piscina',
  'fast-check',
  '@types/node',
  'knip',
  'yaml',
  'gpt-tokenizer',
  'chdb',
];
const CLEAN_BYTES_MAX = 12_000_000;

test('10 MB of code and prose: nothing that is validated', () => {
  const root = join(createRequire(import.meta.url).resolve('typescript'), '..', '..', '..');
  const policy = compiledOf(ruleOf({ detect: VALIDATED }));
  let bytes = 0;
  const found: string[] = [];
  for (const file of CLEAN.flatMap((name) => filesIn(join(root, name)))) {
    if (bytes > CLEAN_BYTES_MAX) break;
    const text = readFileSync(file, 'utf8');
    bytes += text.length;
    for (const [entity, value] of foundIn(policy, text)) found.push(`${file}: ${entity} ${value}`);
  }
  assert.ok(bytes > 10_000_000, `only ${bytes} bytes`);
  assert.deepEqual(found, []);
});

function filesIn(path: string): string[] {
  if (!existsSync(path)) return [];
  return readdirSync(path, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(js|ts|md|mjs|cjs)$/.test(name))
    .map((name) => join(path, name))
    .filter((name) => statSync(name).isFile() && statSync(name).size < 2_000_000)
    .sort();
}
