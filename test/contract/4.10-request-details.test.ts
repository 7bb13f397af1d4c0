// One request with all that is known of it, for whoever may list it: the row of the listing with its details; what is
// another's looks like what is not there.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { requestAnswer } from '../../src/control-plane/reports/report-answers.ts';
import type { TerminalRecord } from '../../src/records/execution-record.ts';
import type { RequestFact } from '../../src/storage/clickhouse/facts.ts';
import { GENERATED_DAYS, generateFacts } from '../support/fact-generator.ts';
import { type PersonalFact, startGeneratedReports } from '../support/generated-reports.ts';
import { refusalBody } from '../support/refusal-body.ts';
import { latestVersions } from '../support/report-oracle.ts';
import type { Json, ReportsFront } from '../support/reports-front.ts';

const { facts } = generateFacts(4_12, 1_500);
const latest = latestVersions(facts);
const isColleague = (one: RequestFact, other: RequestFact) =>
  one.organizationId === other.organizationId && one.userId !== other.userId && one.teamId !== other.teamId;
const sample = latest.find(
  (fact) =>
    fact.teamId !== null &&
    fact.userId !== null &&
    fact.route?.classifier !== undefined &&
    latest.some((other) => isColleague(fact, other)),
) as PersonalFact;
const { organizationId, teamId } = sample;
const foreign = latest.find((fact) => fact.organizationId !== organizationId) as RequestFact;
const colleagues = latest.find((other) => isColleague(sample, other)) as RequestFact;

const PLACES = {
  '/v1/usage/me': { as: 'caller', sees: [sample], not: [colleagues, foreign] },
  [`/v1/usage/teams/${teamId}`]: { as: 'owner', sees: [sample], not: [colleagues, foreign] },
  '/v1/usage/active-org': { as: 'owner', sees: [sample, colleagues], not: [foreign] },
  '/v1/admin/active-org/usage': { as: 'owner', sees: [sample, colleagues], not: [foreign] },
  '/v1/admin/usage': { as: 'platform', sees: [sample, colleagues, foreign], not: [] },
} as const;

const ATTEMPTS = [
  { provider: 'provider-0', started_ms: 2, ended_ms: 9, cause: 'status', status: 503 },
  { provider: sample.provider, started_ms: 9, ended_ms: null, cause: null, status: null },
];
/** What Postgres has of it. */
const record = {
  ...sample,
  attempts: ATTEMPTS,
  screening: { input: { action: 'none' } },
  ownFailures: [{ credential_id: randomUUID(), reason: 'key_refused', status: 401 }],
  fee: '1000000000',
} as unknown as TerminalRecord;

let front: ReportsFront;
before(async () => {
  front = await startGeneratedReports(facts, sample, {
    endedExecution: async ({ id, organizationId: of }) => (id === sample.id && of === organizationId ? record : null),
  });
});
after(() => front?.stop());

async function missing(as: string, path: string): Promise<string> {
  const answer = await front.get(as, path);
  assert.equal(answer.status, 404, `${path}: ${answer.body.toString()}`);
  return JSON.stringify(refusalBody(answer.body.toString()));
}

describe('GET .../requests/{id}', () => {
  for (const [place, { as, sees, not }] of Object.entries(PLACES)) {
    test(`${place.replace(teamId, '{teamId}')}: what is listed there, and nothing else`, async () => {
      for (const { id } of sees) {
        const found = await front.json(as, `${place}/requests/${id}`);
        assert.deepEqual(requestAnswer.parse(found), found);
        const { details, ...entry } = found['data'] as Json;
        const listed = (await front.get(as, `${place}/requests?${GENERATED_DAYS}&format=csv`)).body.toString();
        assert.ok(listed.includes(`\r\n${id},${String(entry['created_at'])},`), id);
        assert.equal(details === null, id !== sample.id);
      }
      const absent = await missing(as, `${place}/requests/${sample.id.slice(0, 24)}000000000000`);
      for (const { id } of not) assert.equal(await missing(as, `${place}/requests/${id}`), absent);
      for (const id of [randomUUID(), 'x', "'%20OR%201=1", sample.id.replaceAll('-', '')])
        assert.equal(await missing(as, `${place}/requests/${id}`), absent);
    });
  }

  test('members do not see single requests of others', async () => {
    for (const place of ['/v1/usage/active-org', '/v1/admin/active-org/usage'])
      assert.equal((await front.get('member', `${place}/requests/${sample.id}`)).status, 403);
  });

  test('has the decision, the calls, what guardrails and own keys did, and the money, as it was recorded', async () => {
    const { data } = await front.json('owner', `/v1/admin/active-org/usage/requests/${sample.id.toUpperCase()}`);
    const { details } = data as { details: Json };
    const { route } = sample as { route: NonNullable<RequestFact['route']> };
    assert.deepEqual(details['attempts'], ATTEMPTS);
    assert.deepEqual(details['own_failures'], record.ownFailures);
    assert.deepEqual(details['guardrail'], record.screening);
    assert.equal(details['fee'], '0.001');
    const shown = details['route'] as Json;
    assert.deepEqual(
      [shown['classifier'], shown['rejected'], shown['policy'], shown['policy_version'], shown['escalated']],
      [route.classifier, route.rejected, route.policy, route.policy_version, route.escalated],
    );
    const text = JSON.stringify(data);
    // An operator's own matters.
    for (const hidden of ['suspense', 'wallet', 'provider_model', 'session', 'conversation'])
      assert.ok(!text.includes(`"${hidden}`), hidden);
  });

  test('takes no parameters', async () => {
    const answer = await front.get('owner', `/v1/admin/active-org/usage/requests/${sample.id}?model=x`);
    assert.equal(answer.status, 400);
  });
});
