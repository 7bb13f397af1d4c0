// Spec 4.10, 2.5, 8: the routing report for its five audiences, over generated facts: every field, figures, windows,
// granularity, filters.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { z } from 'zod';
import { routingAnswer } from '../../src/control-plane/reports/report-answers.ts';
import type { RequestFact } from '../../src/storage/clickhouse/facts.ts';
import type { ReportParams } from '../../src/storage/clickhouse/reports/report-params.ts';
import { assertFigures } from '../support/assert-figures.ts';
import { GENERATED_DAYS, GENERATED_WINDOW, generateFacts } from '../support/fact-generator.ts';
import { type PersonalFact, startGeneratedReports } from '../support/generated-reports.ts';
import { expectedReport, latestVersions } from '../support/report-oracle.ts';
import type { Json, ReportsFront } from '../support/reports-front.ts';

const { facts } = generateFacts(4_10, 6_000);
const latest = latestVersions(facts);
/** Of the largest organization that has teams and people. */
const sample = latest.find(
  (fact) => fact.teamId !== null && fact.userId !== null && fact.route != null,
) as PersonalFact;
const { organizationId, teamId, userId } = sample;

const AUDIENCES = {
  '/v1/usage/me/analytics/routing': { as: 'caller', scope: { organizationId, userId }, showsCorrections: true },
  [`/v1/usage/teams/${teamId}/analytics/routing`]: {
    as: 'owner',
    scope: { organizationId, teamId },
    showsCorrections: false,
  },
  '/v1/usage/active-org/analytics/routing': { as: 'member', scope: { organizationId }, showsCorrections: false },
  '/v1/admin/active-org/usage/analytics/routing': { as: 'owner', scope: { organizationId }, showsCorrections: true },
  '/v1/admin/analytics/routing': { as: 'platform', scope: { organizationId: null }, showsCorrections: false },
} as const;
const [MINE = '', OF_TEAM = '', MEMBER_VIEW = '', ADMINISTRATORS = '', OF_PLATFORM = ''] = Object.keys(AUDIENCES);

let front: ReportsFront;
before(async () => {
  front = await startGeneratedReports(facts, sample);
});
after(() => front?.stop());

const report = (path: string, query = GENERATED_DAYS) => front.json(AUDIENCES[path]?.as ?? '', `${path}?${query}`);

async function refusal(path: string, query: string): Promise<string> {
  const answer = await front.get(AUDIENCES[path]?.as ?? '', `${path}?${query}`);
  assert.equal(answer.status, 400, `${query}: ${answer.body.toString()}`);
  return String((JSON.parse(answer.body.toString()) as Json)['error']);
}

describe('the routing report (spec 2.5)', () => {
  for (const [path, { scope, showsCorrections }] of Object.entries(AUDIENCES)) {
    test(`${path.replace(teamId, '{teamId}')}: what the facts of that audience say`, async () => {
      const { start_date, end_date, granularity, time_zone, ...found } = await report(path);
      assert.deepEqual([start_date, end_date, granularity, time_zone], ['2026-09-24', '2026-11-19', 'day', 'UTC']);
      const question: ReportParams = { scope, filters: {}, window: GENERATED_WINDOW };
      assertFigures(found, expectedReport(latest, { ...question, recentCorrections: showsCorrections }), 'report');
      assert.equal(found['recent_corrections'] === null, !showsCorrections);
    });
  }

  test('has every field that the spec names', async () => {
    const found = await report(ADMINISTRATORS);
    const METRICS =
      'requests tokens spend_usd baseline_requests baseline_spend_usd baseline_cost_usd errors truncated ' +
      'cached escalated fallbacks task_applied p50_latency_ms p95_latency_ms p50_ttft_ms avg_confidence ' +
      'share cost_per_request savings_usd savings_pct error_rate truncation_rate';
    const has = (value: unknown, names: string, where: string) => {
      const object = (Array.isArray(value) ? value[0] : value) as Json | undefined;
      assert.ok(object !== undefined, `${where} is empty`);
      for (const name of names.split(' ')) assert.ok(name in object, `${where} has no ${name}`);
    };
    const { totals } = found as { totals: Json };
    has(totals, `${METRICS} all_requests routed_share`, 'totals');
    has(
      totals['classifier'],
      'calls input_tokens p50_ms p95_ms cost_usd fallback_rate cached_share escalated_share',
      'totals.classifier',
    );
    has(
      totals['sessions'],
      'follow_ups corrections correction_rate remembered escalated sticky sticky_share',
      'totals.sessions',
    );
    has(found['series'], 'bucket tier requests spend_usd baseline_cost_usd baseline_spend_usd', 'series');
    has(found['series_totals'], 'bucket requests spend_usd baseline_cost_usd baseline_spend_usd', 'series_totals');
    has(found['by_tier'], `${METRICS} tier rank`, 'by_tier');
    has(found['by_model'], `${METRICS} model`, 'by_model');
    has(found['by_task'], `${METRICS} task`, 'by_task');
    has(found['task_models'], `${METRICS} task model`, 'task_models');
    has(found['picked_by'], 'picked_by requests', 'picked_by');
    has(found['reasons'], 'reason requests', 'reasons');
    has(found['rejections'], 'model tier reason count', 'rejections');
    has(found['classifiers'], 'model calls', 'classifiers');
    has(found['policies'], 'policy version first_used_at last_used_at', 'policies');
    has(found['by_previous_tier'], 'previous_tier follow_ups corrections correction_rate', 'by_previous_tier');
    has(found['by_previous_model'], 'previous_model follow_ups corrections correction_rate', 'by_previous_model');
    has(
      found['recent_corrections'],
      'at request_id previous_model previous_tier model tier task probability escalated',
      'recent_corrections',
    );
    assert.equal((found['confidence'] as unknown[]).length, 10);
    has(await report(OF_PLATFORM).then((whole) => whole['model_remainder']), METRICS, 'model_remainder');
    assert.ok(((await report(OF_PLATFORM))['by_model'] as unknown[]).length === 25);
  });

  test('is what the OpenAPI document says, and nothing beside', async () => {
    const strict = z.strictObject(routingAnswer.shape);
    for (const path of Object.keys(AUDIENCES)) {
      const found = await report(path);
      assert.deepEqual(strict.parse(found), found);
    }
  });
});

describe('the member view', () => {
  const sums = ['/v1/usage/active-org', '/v1/usage/active-org/daily', MEMBER_VIEW] as const;

  test('is the whole organization’s for members as for administrators', async () => {
    for (const path of sums)
      assert.deepEqual(
        await front.json('member', `${path}?${GENERATED_DAYS}`),
        await front.json('owner', `${path}?${GENERATED_DAYS}`),
      );
    const { totals, by_model } = await report(MEMBER_VIEW);
    const { totals: all, by_model: allModels } = await report(ADMINISTRATORS);
    assert.deepEqual([totals, by_model], [all, allModels]);
  });

  test('shows nobody’s single requests, and sets no people side by side', async () => {
    assert.equal((await front.get('member', '/v1/usage/active-org/requests')).status, 403);
    assert.equal((await front.get('owner', '/v1/usage/active-org/requests')).status, 200);
    for (const [groups, status] of [
      ['team', 200],
      ['organization,model', 200],
      ['user', 400],
      ['team,api_key', 400],
    ] as const)
      assert.equal((await front.get('member', `/v1/usage/active-org?group_by=${groups}`)).status, status, groups);
  });

  test('is no key’s, and opens nothing of the administrators', async () => {
    for (const path of sums) assert.equal((await front.get('caller', path)).status, 403, path);
    for (const path of ['/v1/admin/active-org/usage', ADMINISTRATORS, `/v1/usage/teams/${teamId}`])
      assert.equal((await front.get('member', path)).status, 403, path);
  });
});

describe('windows and granularity', () => {
  test('hourly up to three days, else daily, unless asked otherwise', async () => {
    for (const [query, granularity] of [
      ['start_date=2026-11-17&end_date=2026-11-19', 'hour'],
      ['start_date=2026-11-16&end_date=2026-11-19', 'day'],
      ['start_date=2026-11-17&end_date=2026-11-19&granularity=day', 'day'],
      ['start_date=2026-09-01&end_date=2026-11-19&granularity=hour', 'hour'],
      ['start_date=2026-11-17T00:00:00%2B01:00&end_date=2026-11-18T12:00:00Z', 'hour'],
      ['', 'day'],
    ] as const) {
      const found = await report(ADMINISTRATORS, query);
      assert.equal(found['granularity'], granularity, query);
      for (const { bucket } of found['series'] as { bucket: string }[]) {
        assert.match(bucket, granularity === 'day' ? /T00:00:00Z$/ : /T\d\d:00:00Z$/);
      }
    }
  });

  test('buckets are the time zone’s own', async () => {
    const { series } = (await report(ADMINISTRATORS, `${GENERATED_DAYS}&time_zone=Asia/Kathmandu`)) as {
      series: readonly { bucket: string }[];
    };
    assert.ok(series.length > 10 && series.every(({ bucket }) => bucket.endsWith('T00:00:00+05:45')));
  });

  test('92 days are answered, 93 are not', async () => {
    for (const path of Object.keys(AUDIENCES)) {
      await report(path, 'start_date=2026-08-20&end_date=2026-11-19');
      assert.match(
        await refusal(path, 'start_date=2026-08-19&end_date=2026-11-19'),
        /"start_date" is not valid: it must be at most 92 days before end_date/,
      );
    }
  });
});

describe('filters', () => {
  const whole = async (path: string, query: string) =>
    ((await report(path, `${GENERATED_DAYS}&${query}`))['totals'] as Json)['all_requests'];
  const counted = (scope: ReportParams['scope'], filters: ReportParams['filters']) =>
    expectedReport(latest, { scope, filters, window: GENERATED_WINDOW, recentCorrections: false }).totals.all_requests;

  test('each audience has its own, and they narrow its scope', async () => {
    const scope = { organizationId };
    for (const [path, query, expected] of [
      [MINE, `model=${sample.model}`, counted({ organizationId, userId }, { model: sample.model })],
      [MINE, `api_key_id=${sample.apiKeyId}`, counted({ organizationId, userId }, { apiKeyId: sample.apiKeyId })],
      [OF_TEAM, `user_id=${userId}`, counted({ organizationId, teamId }, { userId })],
      [MEMBER_VIEW, `team_id=${teamId}`, counted(scope, { teamId })],
      ...['error', '4xx', '200'].map(
        (status) => [ADMINISTRATORS, `status=${status}`, counted(scope, { status })] as const,
      ),
      [
        ADMINISTRATORS,
        `team_id=${teamId}&provider=${sample.provider}`,
        counted(scope, { teamId, provider: sample.provider }),
      ],
      [OF_PLATFORM, `organization_id=${organizationId}`, counted(scope, {})],
      [OF_PLATFORM, `organization_id=${randomUUID()}`, 0],
    ] as const) {
      assert.equal(await whole(path, query), expected, query);
    }
    assert.ok(counted({ organizationId, teamId }, { userId }) > 0);
  });

  test('those of another audience, and of listings, are refused by name', async () => {
    const id = randomUUID();
    for (const [path, names] of [
      [MINE, ['user_id', 'team_id', 'organization_id']],
      [OF_TEAM, ['team_id', 'organization_id']],
      [MEMBER_VIEW, ['organization_id']],
      [ADMINISTRATORS, ['organization_id']],
    ] as const) {
      for (const name of names)
        assert.equal(
          await refusal(path, `${name}=${id}`),
          `The field "${name}" is not valid: it is not a parameter of this endpoint.`,
        );
    }
    for (const query of ['routed=true', 'route_tier=light', 'limit=5', 'cursor=x', 'format=csv', 'tag=ci']) {
      assert.match(await refusal(ADMINISTRATORS, query), /it is not a parameter of this endpoint/);
    }
  });

  test('that mean nothing are refused by name', async () => {
    for (const [query, reason] of [
      ['granularity=minute', '"granularity" is not valid: it must be hour or day'],
      ['granularity=', '"granularity" is not valid: it must be hour or day'],
      ['user_id=ann', '"user_id" is not valid: it must be a UUID'],
      ['team_id=%27', '"team_id" is not valid: it must be a UUID'],
      ['model=a%20b', '"model" is not valid: it must be 1 to 200 visible ASCII characters without spaces'],
      ['start_date=19-11-2026', '"start_date" is not valid: it must be a date'],
      ['granularity=day&granularity=hour', '"granularity" is not valid: it appears more than once'],
    ] as const) {
      assert.ok((await refusal(ADMINISTRATORS, query)).includes(reason), query);
    }
  });
});

describe('routed requests in listings (spec 4.10)', () => {
  test('routed, route_tier and route_reason', async () => {
    const idsOf = async (query: string) =>
      (
        (await front.json('owner', `/v1/admin/active-org/usage/requests?${GENERATED_DAYS}&limit=100&${query}`))[
          'data'
        ] as Json[]
      ).map(({ id }) => String(id));
    const expected = (matches: (fact: RequestFact) => boolean) =>
      latest
        .filter((fact) => fact.organizationId === organizationId && matches(fact))
        .toSorted((a, b) => b.admittedAtMs - a.admittedAtMs)
        .slice(0, 100)
        .map(({ id }) => id);
    for (const [query, matches] of [
      ['routed=true', ({ route }: RequestFact) => route != null],
      ['routed=false', ({ route }: RequestFact) => route == null],
      ['route_tier=strong', ({ route }: RequestFact) => route?.tier === 'strong'],
      ['route_reason=correction_escalated', ({ route }: RequestFact) => route?.reason === 'correction_escalated'],
      [
        'route_tier=light&route_reason=classified',
        ({ route }: RequestFact) => route?.tier === 'light' && route.reason === 'classified',
      ],
    ] as const) {
      const found = await idsOf(query);
      assert.ok(found.length > 0, query);
      assert.deepEqual(found.toSorted(), expected(matches).toSorted(), query);
    }
  });
});
