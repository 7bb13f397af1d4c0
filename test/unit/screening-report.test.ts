// What screening says of a stage: whatever policies, rules and detectors find, and however many reports are joined, a
// record of it stays short, and no count is lost.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Finding } from '../../src/domain/guardrails/finding.ts';
import { ACTIONS, type Action } from '../../src/domain/guardrails/policy.ts';
import {
  FINDINGS_LISTED_MAX,
  findingsIn,
  isOthers,
  type StageReport,
  StageTally,
} from '../../src/domain/guardrails/screening-report.ts';
import { terminalRecord } from '../support/execution-records.ts';
import { ruleOf } from '../support/guardrail-policies.ts';
import { frameBytesOf } from '../support/spool-records.ts';

/** As long as names can be: those of policies and rules, and what an external detector may call a finding. */
const NAME = 'n'.repeat(63);
const RULE = ruleOf({
  policy: NAME,
  id: NAME,
  version: 2_147_483_647,
  external: { name: 'own', entities: null, minScore: 0 },
});

function found(entity: string | number): Finding {
  return { rule: RULE, entity: String(entity).padEnd(64, 'e'), start: 0, end: 1, isOpen: false };
}

/** As many findings of as many names. */
function tallyOf(count: number, actionOf: (index: number) => Action): StageTally {
  const tally = new StageTally();
  for (let index = 0; index < count; index++) tally.add(found(index), actionOf(index));
  return tally;
}

function namedIn({ findings = [] }: StageReport): string[] {
  return findings.filter((one) => !isOthers(one)).map(({ entity }) => entity.replace(/e+$/, ''));
}

describe('the report of a stage', () => {
  test('as many as are listed are all named, in their order', () => {
    const report = tallyOf(FINDINGS_LISTED_MAX, (index) => (index % 2 === 0 ? 'flag' : 'mask')).report();
    assert.deepEqual(
      namedIn(report),
      Array.from({ length: FINDINGS_LISTED_MAX }, (_, index) => String(index)),
    );
    assert.equal(report.findings?.length, FINDINGS_LISTED_MAX);
  });

  test('of more the strongest stay, and of these the first; the others are summed by what was done', () => {
    const report = tallyOf(1_000, (index) => (index === 998 ? 'block' : index >= 950 ? 'cloak' : 'flag')).report();
    const cloaked = Array.from({ length: 50 }, (_, index) => 950 + index).filter((index) => index !== 998);
    const flagged = Array.from({ length: 14 }, (_, index) => index);
    assert.deepEqual(namedIn(report), [998, ...cloaked, ...flagged].map(String));
    const others = report.findings?.filter(isOthers);
    assert.deepEqual(others, [{ policy: '', version: 0, rule: '', entity: 'others', action: 'flag', count: 936 }]);
    assert.equal(report.action, 'blocked');
    assert.equal(findingsIn(report), 1_000);
  });

  test('joined reports are no longer than one, and each finding is counted', () => {
    const joined = new StageTally();
    for (let event = 0; event < 100; event++) {
      const part = new StageTally();
      for (let index = 0; index < 100; index++)
        part.add(found(event * 100 + index), ACTIONS[index % ACTIONS.length] as Action);
      joined.addReport(part.report(), null);
    }
    const report = joined.report();
    assert.equal(namedIn(report).length, FINDINGS_LISTED_MAX);
    assert.equal(report.findings?.length, FINDINGS_LISTED_MAX + ACTIONS.length);
    assert.equal(findingsIn(report), 10_000);
    const again = new StageTally();
    again.addReport(report, null);
    assert.deepEqual(again.report(), report);
  });

  test('both stages, with the longest names and counts, take 40,000 bytes of a record at most', () => {
    const tally = tallyOf(10_000, (index) => ACTIONS[index % ACTIONS.length] as Action);
    const { findings = [], ...rest } = tally.report();
    const stage = { ...rest, findings: findings.map((one) => ({ ...one, count: 4_294_967_295 })) };
    const screened = terminalRecord(undefined, { screening: { input: stage, output: stage } });
    const bytes = frameBytesOf(screened) - frameBytesOf(terminalRecord());
    assert.ok(bytes > 30_000 && bytes <= 40_000, `${bytes} bytes`);
  });
});
