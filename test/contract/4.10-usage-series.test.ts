// The series of usage for its five audiences, over generated facts: shape, groups and what remains of them, buckets,
// CSV, and what is refused.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { seriesAnswer } from '../../src/control-plane/reports/report-answers.ts';
import { assertFigures } from '../support/assert-figures.ts';
import { GENERATED_DAYS, GENERATED_WINDOW, generateFacts } from '../support/fact-generator.ts';
import { type PersonalFact, startGeneratedReports } from '../support/generated-reports.ts';
import { latestVersions } from '../support/report-oracle.ts';
import type { Json, ReportsFront } from '../support/reports-front.ts';
import { expectedSeries } from '../support/series-oracle.ts';

const { facts } = generateFacts(4_11, 4_000);
const latest = latestVersions(facts);
const sample = latest.find((fact) => fact.teamId !== null && fact.userId !== null) as PersonalFact;
const { organizationId, teamId, userId } = sample;

const AUDIENCES = {
  '/v1/usage/me/analytics/series': { as: 'caller', scope: { organizationId, userId } },
  [`/v1/usage/teams/${teamId}/analytics/series`]: { as: 'owner', scope: { organizationId, teamId } },
  '/v1/usage/active-org/analytics/series': { as: 'member', scope: { organizationId } },
  '/v1/admin/active-org/usage/analytics/series': { as: 'owner', scope: { organizationId } },
  '/v1/admin/analytics/series': { as: 'platform', scope: { organizationId: null } },
} as const;
const OF_ORGANIZATION = '/v1/admin/active-org/usage/analytics/series';
const MEMBER_VIEW = '/v1/usage/active-org/analytics/series';

let front: ReportsFront;
before(async () => {
  front = await startGeneratedReports(facts, sample);
});
after(() => front?.stop());

const get = async (path: string, query: string) => front.get(AUDIENCES[path]?.as ?? '', `${path}?${query}`);
const data = async (path: string, query: string) =>
  (await front.json(AUDIENCES[path]?.as ?? '', `${path}?${query}`))['data'] as Json;

async function refusal(path: string, query: string): Promise<string> {
  const answer = await get(path, query);
  assert.equal(answer.status, 400, `${query}: ${answer.body.toString()}`);
  return String((JSON.parse(answer.body.toString()) as Json)['error']);
}

describe('the series of usage', () => {
  for (const [path, { scope }] of Object.entries(AUDIENCES)) {
    test(`${path.replace(teamId, '{teamId}')}: what the facts of that audience say`, async () => {
      const found = await data(path, `${GENERATED_DAYS}&group_by=model&top=4`);
      const { currency, start_date, end_date, granularity, time_zone, group_by, ...series } = found;
      assert.deepEqual(
        [currency, start_date, end_date, granularity, time_zone, group_by],
        ['USD', '2026-09-24', '2026-11-19', 'day', 'UTC', 'model'],
      );
      const question = { scope, filters: {}, window: GENERATED_WINDOW, groupBy: 'model', top: 4 } as const;
      assertFigures(series, expectedSeries(latest, question), 'series');
      // What the OpenAPI document says, and nothing beside.
      assert.deepEqual(seriesAnswer.parse({ data: found }).data, found);
    });
  }

  test('without group_by is of all requests, and ten groups are shown where nothing else is asked for', async () => {
    const all = await data(OF_ORGANIZATION, GENERATED_DAYS);
    assert.deepEqual([all['group_by'], all['groups'], all['remainder']], [null, [], null]);
    const { groups, remainder, totals } = (await data(
      '/v1/admin/analytics/series',
      `${GENERATED_DAYS}&group_by=model`,
    )) as { groups: Json[]; remainder: Json; totals: Json };
    assert.equal(groups.length, 10);
    assert.equal(remainder['groups'], 24);
    const sum = groups.reduce((so, group) => so + Number(group['requests']), Number(remainder['requests']));
    assert.equal(sum, totals['requests']);
  });

  test('takes the filters of listings and names of zones, and has every bucket', async () => {
    const query = 'start_date=2026-10-25&end_date=2026-10-25&granularity=hour&time_zone=Europe/Berlin&status=success';
    const { buckets, totals } = (await data(OF_ORGANIZATION, query)) as { buckets: string[]; totals: Json };
    assert.equal(buckets.length, 25);
    assert.equal(totals['errors'], 0);
  });

  test('as CSV has a row for each bucket of each series', async () => {
    const answer = await get(OF_ORGANIZATION, `${GENERATED_DAYS}&group_by=tag&top=2&format=csv`);
    assert.match(String(answer.headers['content-disposition']), /^attachment; filename="series-2026-09-24_2026-11-19/);
    const [head, ...lines] = answer.body.toString().trimEnd().split('\r\n');
    assert.equal(
      head,
      'bucket,tag,is_remainder,requests,errors,tokens_prompt,tokens_completion,cost,p50_latency_ms,p95_latency_ms,' +
        'p50_ttft_ms,p95_ttft_ms',
    );
    const { groups, remainder } = (await data(OF_ORGANIZATION, `${GENERATED_DAYS}&group_by=tag&top=2`)) as {
      groups: { tag: string | null; series: Json[] }[];
      remainder: { series: Json[] };
    };
    const expected = [
      ...groups.flatMap(({ tag, series }) => series.map((point) => `${String(point['bucket'])},${tag ?? ''},false,`)),
      ...remainder.series.map((point) => `${String(point['bucket'])},,true,`),
    ];
    assert.deepEqual(
      lines.map((line) => /^[^,]*,[^,]*,[^,]*,/.exec(line)?.[0]),
      expected,
    );
  });

  test('refuses what it does not have, and says so', async () => {
    assert.match(await refusal(OF_ORGANIZATION, 'group_by=model,team'), /group_by.*must be one of model, /);
    assert.match(await refusal(OF_ORGANIZATION, 'top=26'), /at most 25/);
    assert.match(await refusal(OF_ORGANIZATION, 'time_zone=Mars/Olympus'), /name of a time zone/);
    assert.match(await refusal(OF_ORGANIZATION, 'granularity=minute'), /hour or day/);
    // The member view sets nobody side by side.
    for (const dimension of ['user', 'api_key', 'tag'])
      assert.match(await refusal(MEMBER_VIEW, `group_by=${dimension}`), /must be one of model, organization, team, /);
    const manyPoints = 'start_date=2026-09-01&end_date=2026-11-19&granularity=hour&group_by=model&top=25';
    assert.match(await refusal(OF_ORGANIZATION, manyPoints), /too many buckets/);
  });
});
