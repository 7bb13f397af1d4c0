// What is made to be slow or to be much: nothing of it is read again and again, and too much of it is said to be so.
// How long it takes is measured by benchmarks/micro/guardrails.bench.ts.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ENTITY_NAMES } from '../../src/domain/guardrails/entities.ts';
import { FINDINGS_MAX, resolveOverlaps } from '../../src/domain/guardrails/finding.ts';
import { packEdits, unpackEdits } from '../../src/domain/guardrails/packed-edits.ts';
import { screenFewFindings, screenWhole, type WholeBody } from '../../src/domain/guardrails/screen-whole.ts';
import { messages } from '../../src/generation/dialects/messages.ts';
import { compiledOf, findingsIn, ruleOf } from '../support/guardrail-policies.ts';
import { HOSTILE_TEXTS, hostileText } from '../support/hostile-texts.ts';

const ALL = compiledOf(ruleOf({ id: 'built-in', detect: ENTITY_NAMES }));
const MAILS = compiledOf(ruleOf({ id: 'mails', detect: ['email'] }));
const NO_CLOAKING = { scopes: null, values: null };
const PRIVATE_KEY_BEGUN = `-----BEGIN PRIVATE KEY-----\n${'A'.repeat(40)}`;

function bodyOf(content: string): WholeBody {
  const body = Buffer.from(`{"messages":[{"role":"user","content":${content}}]}`);
  return { stage: 'input', body, places: messages.texts, parts: null };
}

describe('hostile texts', () => {
  for (const name of HOSTILE_TEXTS)
    test(`${name}: what is found lies in the text, and none overlaps another`, () => {
      const text = hostileText(name, 8_192);
      let reached = 0;
      for (const { start, end } of resolveOverlaps(findingsIn(ALL, text))) {
        assert.ok(start >= reached && end > start && end <= text.length);
        reached = end;
      }
    });

  test('a private key without an end is over where the next one begins', () => {
    const found = findingsIn(ALL, PRIVATE_KEY_BEGUN.repeat(3)).filter(({ entity }) => entity === 'private_key');
    const length = PRIVATE_KEY_BEGUN.length;
    assert.deepEqual(
      found.map(({ start, end }) => [start, end]),
      [0, 1, 2].map((index) => [index * length, (index + 1) * length]),
    );
  });
});

describe('hostile bodies', () => {
  test('objects within objects that each name two types: what they hold is replaced once', () => {
    const depth = 200;
    const content =
      '[{"type":"tool_result","type":"x","content":'.repeat(depth) + '"to ada@acme.test"' + '}]'.repeat(depth);
    const { edits } = screenWhole(MAILS, bodyOf(content), NO_CLOAKING);
    assert.deepEqual(
      edits.map(({ replacement }) => replacement.toString()),
      ['[email]'],
    );
  });

  test('more findings in all texts together than a body may have: it counts as not screened', () => {
    const texts = (count: number): string =>
      `[${Array.from({ length: count }, (_, index) => `{"type":"text","text":"a${index}@b.example"}`).join(',')}]`;
    const whole = screenWhole(MAILS, bodyOf(texts(FINDINGS_MAX)), NO_CLOAKING);
    assert.equal(whole.edits.length, FINDINGS_MAX);
    assert.equal(whole.report.not_scanned, undefined);
    const over = screenWhole(MAILS, bodyOf(texts(FINDINGS_MAX + 100)), NO_CLOAKING);
    assert.equal(over.edits.length, FINDINGS_MAX + 1);
    assert.deepEqual(over.report.not_scanned, ['too_large']);
  });

  test('what a thread has found comes from it as it was', () => {
    const { edits } = screenWhole(MAILS, bodyOf('"é a@b.example, c@d.example"'), NO_CLOAKING);
    assert.equal(edits.length, 2);
    assert.deepEqual(unpackEdits(structuredClone(packEdits(edits))), edits);
    assert.deepEqual(unpackEdits(packEdits([])), []);
  });

  test('more findings than the event loop has time for: it is left to a worker', () => {
    const body = bodyOf('"a@b.example c@d.example e@f.example"');
    assert.equal(screenFewFindings(MAILS, body, NO_CLOAKING, 3)?.edits.length, 3);
    assert.equal(screenFewFindings(MAILS, body, NO_CLOAKING, 2), null);
  });
});
