// What rules make of detectors: keys by their issuers' forms, words, patterns, what a policy lets through, which of
// overlapping findings count, and how many a text may have.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { compilePolicy } from '../../src/domain/guardrails/compile-policy.ts';
import { DETECTORS } from '../../src/domain/guardrails/detectors/detectors.ts';
import { KEY_FORMS } from '../../src/domain/guardrails/detectors/key-forms.ts';
import { checkPattern, writtenSizeOf } from '../../src/domain/guardrails/detectors/patterns.ts';
import { ENTITY_NAMES } from '../../src/domain/guardrails/entities.ts';
import { FINDINGS_MAX, type Finding, resolveOverlaps } from '../../src/domain/guardrails/finding.ts';
import { guardrailDefinition, guardrailPolicyOf } from '../../src/domain/guardrails/policy-definition.ts';
import { scanText } from '../../src/domain/guardrails/scan-text.ts';
import { seededRandom } from '../support/byte-splits.ts';
import { compiledOf, findingsIn, foundIn, policyOf, ruleOf } from '../support/guardrail-policies.ts';

test('every entity that a rule can name has a detector', () => {
  const found = new Set<string>(DETECTORS.map(({ entity }) => entity));
  assert.deepEqual(
    ENTITY_NAMES.filter((entity) => !found.has(entity)),
    [],
  );
});

describe('keys of every issuer', () => {
  const keys = compiledOf(ruleOf({ detect: ['api_key'] }));
  const random = seededRandom(7);
  const made = KEY_FORMS.map((form) => {
    const text = form.parts
      .map(({ literal, characters, min }) => {
        if (literal !== null) return literal.toString();
        const members = [...characters.keys()].filter((byte) => characters[byte] === 1);
        return Buffer.from(
          Array.from({ length: min }, () => members[Math.floor(random() * members.length)] ?? 0),
        ).toString();
      })
      .join('');
    const whole = form.issuer === 'telegram' ? `123456789${text}` : text;
    return { ...form, whole };
  });

  test('are found in quotes, assignments and sentences', () => {
    for (const { issuer, whole } of made) {
      for (const text of [`"${whole}"`, `KEY=${whole}\n`, `it is ${whole}, you see`])
        assert.deepEqual(foundIn(keys, text), [['api_key', whole]], `${issuer}: ${text}`);
    }
  });

  test('are none when they are within a word, too short, or made of one character', () => {
    for (const { issuer, whole, parts } of made) {
      const isShort = parts.at(-1)?.literal === null && (parts.at(-1)?.min ?? 0) > 1;
      assert.deepEqual(foundIn(keys, `x${whole}`), [], `${issuer} within a word`);
      if (isShort) assert.deepEqual(foundIn(keys, `"${whole.slice(0, -1)}"`), [], `${issuer} too short`);
      const same = parts
        .map(
          ({ literal, characters, min }) =>
            literal?.toString() ?? String.fromCharCode(characters.lastIndexOf(1)).repeat(min),
        )
        .join('');
      if (!same.includes('T3BlbkFJ')) assert.deepEqual(foundIn(keys, `"${same}"`), [], `${issuer} of one character`);
    }
  });
});

test('words are found whole, in upper or lower case, the longest first', () => {
  // Scripts without spaces have no other end of a word; so one that ends in such a letter is found in longer ones.

  const words = compiledOf(ruleOf({ words: ['Falcon', 'Falcon Heavy', 'Zoë', '東京'] }));
  assert.deepEqual(
    foundIn(words, 'a FALCON, falcons, falcon heavy; zoë Zoëy 東京タワー').map(([, value]) => value),
    ['FALCON', 'falcon heavy', 'zoë', 'Zoë', '東京'],
  );
});

test('patterns are RE2’s, no longer than they say, with the byte before as their context', () => {
  const patterns = compiledOf(ruleOf({ patterns: [{ regex: '\\bACME-[0-9]+', maxLength: 11 }] }));
  assert.deepEqual(
    foundIn(patterns, 'ACME-123456 ACME-1234567 xACME-1 ACME-7').map(([, value]) => value),
    ['ACME-123456', 'ACME-7'],
  );
  for (const regex of ['(a)\\1', '(?=a)', '^a', 'a$', 'a*', '(']) assert.notEqual(checkPattern(regex).problem, null);
  assert.equal(checkPattern('(a+)+b').problem, null);
  assert.match(checkPattern('.{1,900}a').problem ?? '', /too large/);
  const pattern = (index: number) => ({ regex: `.{1,60}${index}`, max_length: 70 });
  const rules = (count: number) => [
    { id: 'a', patterns: Array.from({ length: count }, (_, index) => pattern(index)), stage: 'both', action: 'mask' },
  ];
  assert.equal(guardrailDefinition.safeParse({ rules: rules(2) }).success, true);
  assert.equal(guardrailDefinition.safeParse({ rules: rules(20) }).success, false);
});

test('what would take long to compile is refused before it is compiled', () => {
  const problemsOf = (...regexes: readonly string[]) => {
    const patterns = regexes.map((regex) => ({ regex, max_length: 20 }));
    const parsed = guardrailDefinition.safeParse({ rules: [{ id: 'a', patterns, stage: 'both', action: 'flag' }] });
    return parsed.error?.issues.map(({ message }) => message) ?? [];
  };
  assert.match(problemsOf(`(?:${'a?'.repeat(500)}){1000}`).join(), /too large/);
  assert.match(problemsOf(...Array.from({ length: 60 }, () => `[a-z]${'a|'.repeat(400)}b`)).join(), /large together/);
  assert.match(problemsOf(`(?i)[${'B-\\x{1e900}'.repeat(17)}]`).join(), /classes beyond ASCII/);
  assert.match(problemsOf('\\pL'.repeat(17)).join(), /classes beyond ASCII/);
  assert.deepEqual(problemsOf('[\\p{L}é-ÿ]{2,30}', 'ACME-[0-9]{6}', '(?i)(?:Straße|straat) [0-9]+'), []);
  for (const [regex, size] of [
    ['ACME-[0-9]{6}', 11],
    ['(?:ab{2}){3,5}c', 21],
    ['[]a-z]\\p{Greek}\\x{e9}[[:alpha:]]\\]', 5],
    ['a{2,}', 2],
  ] as const)
    assert.equal(writtenSizeOf(regex), size, regex);
  const { size } = checkPattern('(?:ab{2}){3,5}c');
  assert.ok(size >= 16 && size <= 2 * 21, String(size));
});

test('words of many rules are all found, however differently their beginnings are shared', () => {
  // Word n is of the rules whose bits n has: each beginning is looked for by another set of rules.
  const words = Array.from({ length: 500 }, (_, index) => {
    const first = String.fromCharCode(0x61 + (index % 26));
    return `${first}${String.fromCharCode(0x61 + Math.floor(index / 26))}zq`;
  });
  const rules = Array.from({ length: 9 }, (_, bit) =>
    ruleOf({ id: `rule-${bit}`, words: words.filter((_word, index) => (((index + 1) >> bit) & 1) === 1) }),
  );
  const compiled = compiledOf(...rules);
  assert.deepEqual(
    words.filter((word) => foundIn(compiled, ` ${word} `).length === 0),
    [],
  );
});

describe('behind a blank that is spelt out', () => {
  const all = compiledOf(ruleOf({ detect: ['email', 'card', 'iban', 'phone', 'us_ssn', 'api_key', 'jwt', 'es_nif'] }));
  const words = compiledOf(ruleOf({ words: ['Falcon'] }));
  const VALUES = {
    email: ['ada@acme.test'],
    card: ['4111 1111 1111 1111', '4111111111111111'],
    iban: ['DE89370400440532013000'],
    phone: ['+14155552671', '415-555-2671', '(415) 555-2671'],
    us_ssn: ['219-09-9998'],
    api_key: [`ghp_${'Ab1Cd2xYz9'.repeat(4).slice(0, 36)}`],
    jwt: ['eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmN'],
    es_nif: ['12345678Z'],
  };

  test('values are found as behind one, as programs and JSON within a text have them', () => {
    for (const [entity, values] of Object.entries(VALUES))
      for (const value of values)
        for (const blank of ['\\n', '\\r\\n', '\\t', '\\\\n'])
          assert.deepEqual(foundIn(all, `print("to${blank}${value}")`), [[entity, value]], `${blank}${value}`);
    assert.deepEqual(foundIn(words, '"a\\nFalcon"'), [['words', 'Falcon']]);
  });

  test('not behind other escapes, nor behind such a letter alone', () => {
    for (const before of ['n', 't', '\\u000a', '\\x', '\\_n'])
      assert.deepEqual(foundIn(all, `${before}4111 1111 1111 1111`), [], before);
    assert.deepEqual(foundIn(words, 'nFalcon'), []);
  });
});

test('words and patterns are prepared once for every stage and API', () => {
  const policies = [policyOf([ruleOf({ words: ['falcon'], patterns: [{ regex: 'ACME-[0-9]{6}', maxLength: 11 }] })])];
  const one = compilePolicy(policies, 'messages');
  const other = compilePolicy(policies, 'responses');
  const [stage, ...others] = [one?.input, one?.output, other?.input];
  assert.ok(stage?.patterns[0] !== undefined && stage.words[0] !== undefined);
  for (const found of others) {
    assert.equal(found?.patterns[0]?.set, stage.patterns[0].set);
    assert.equal(found?.words[0]?.search, stage.words[0].search);
  }
});

test('a pattern that would explode elsewhere takes linear time here', () => {
  const patterns = compiledOf(ruleOf({ patterns: [{ regex: '(a+)+b', maxLength: 256 }] }));
  assert.deepEqual(foundIn(patterns, 'a'.repeat(20_000)), []);
});

test('a policy lets its values and domains through, and no other policy’s', () => {
  const rule = ruleOf({ detect: ['email'] });
  const lenient = { allowedValues: ['help@acme.test'], allowedEmailDomains: ['partner.test'] };
  const compiled = compilePolicy([policyOf([rule], lenient)], 'messages');
  const text = 'Help@acme.test a@partner.test b@acme.test';
  assert.ok(compiled !== null);
  assert.deepEqual(foundIn(compiled, text), [['email', 'b@acme.test']]);
  const both = compilePolicy([policyOf([rule], lenient), policyOf([ruleOf({ detect: ['email'] })])], 'messages');
  assert.ok(both !== null);
  assert.equal(foundIn(both, text).length, 3);
});

test('of overlapping findings the stronger counts, then the longer, then the leftmost: it takes the others along', () => {
  const finding = (action: 'block' | 'mask' | 'cloak' | 'flag', start: number, end: number): Finding => ({
    rule: ruleOf({ action }),
    entity: 'words',
    start,
    end,
    isOpen: false,
  });
  const places = (...findings: readonly Finding[]) =>
    resolveOverlaps(findings).map(({ rule, start, end }) => [rule.action, start, end]);
  assert.deepEqual(places(finding('mask', 0, 20), finding('block', 5, 8)), [['block', 0, 20]]);
  assert.deepEqual(places(finding('mask', 0, 5), finding('mask', 3, 20)), [['mask', 0, 20]]);
  assert.deepEqual(places(finding('mask', 3, 8), finding('mask', 0, 5)), [['mask', 0, 8]]);
  assert.deepEqual(places(finding('flag', 0, 5), finding('mask', 4, 6), finding('flag', 6, 9)), [
    ['mask', 4, 6],
    ['flag', 6, 9],
  ]);
  assert.deepEqual(places(finding('cloak', 2, 12), finding('mask', 0, 4), finding('mask', 8, 10)), [
    ['mask', 0, 8],
    ['mask', 8, 12],
  ]);
  // A chain: the second loses to the first, the third to what the first has by then.
  assert.deepEqual(places(finding('mask', 0, 5), finding('cloak', 4, 9), finding('cloak', 8, 11)), [['mask', 0, 11]]);
});

test('a word that is masked within an address leaves nothing of the address', () => {
  const cloaks = ruleOf({ action: 'cloak', detect: ['email'] });
  const text = 'to ada.lovelace@falcon.com now';
  for (const compiled of [
    compiledOf(cloaks, ruleOf({ words: ['falcon'] })),
    compiledOf(cloaks, ruleOf({ patterns: [{ regex: '@falcon.com now', maxLength: 20 }] })),
  ]) {
    const [found, ...others] = resolveOverlaps(findingsIn(compiled, text));
    assert.deepEqual(
      [found?.rule.action, text.slice(found?.start, found?.end), others],
      ['mask', found?.entity === 'pattern' ? 'ada.lovelace@falcon.com now' : 'ada.lovelace@falcon.com', []],
    );
  }
});

test('the strongest of the rules that look for an entity counts; of a policy that observes, none acts', () => {
  const definition = guardrailDefinition.parse({
    mode: 'observe',
    rules: [{ id: 'cards', detect: ['card'], stage: 'input', action: 'block' }],
  });
  const observing = guardrailPolicyOf({ id: 'o', name: 'o', version: 1, organizationId: null }, definition, new Map());
  const masking = policyOf([ruleOf({ id: 'masks', detect: ['card'] })]);
  const both = compilePolicy([observing, masking], 'messages');
  assert.ok(both !== null);
  const actions = (policy: typeof both) =>
    findingsIn(policy, '4111111111111111').map(({ rule }) => [rule.id, rule.action]);
  assert.deepEqual(actions(both), [['masks', 'mask']]);
  const alone = compilePolicy([observing], 'messages');
  assert.ok(alone !== null);
  assert.deepEqual(actions(alone), [['cards', 'flag']]);
});

test('rules are for their APIs and stages', () => {
  const rules = [ruleOf({ detect: ['card'], apis: new Set(['messages'] as const), stages: ['output'] })];
  assert.equal(compilePolicy([policyOf(rules)], 'responses'), null);
  const compiled = compilePolicy([policyOf(rules)], 'messages');
  assert.equal(compiled?.input, null);
  assert.notEqual(compiled?.output, null);
});

test('a text with more findings than there may be counts as not screened', () => {
  const emails = compiledOf(ruleOf({ detect: ['email'] }));
  const bytes = Buffer.from('a@b.co '.repeat(FINDINGS_MAX + 1));
  assert.equal(scanText(emails, 'input', bytes, 0, bytes.length, []), false);
  assert.equal(scanText(emails, 'input', bytes, 0, 7 * FINDINGS_MAX, []), true);
});
