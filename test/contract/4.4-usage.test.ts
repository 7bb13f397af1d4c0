// Spec 4.4: the usage summary, its days and the recorded requests, over real facts: shapes, parameters right
// and wrong, pages, CSV.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { OwnerNames } from '../../src/domain/reports/owners.ts';
import type { TerminalRecord } from '../../src/records/execution-record.ts';
import { factOf, insertFacts } from '../../src/storage/clickhouse/facts.ts';
import { NOBODY, OWNER } from '../support/billing-front.ts';
import { openTestClickHouse, type TestClickHouse } from '../support/clickhouse.ts';
import { executionStart, terminalRecord } from '../support/execution-records.ts';
import { refusalBody } from '../support/refusal-body.ts';
import { type Json, type ReportsFront, startReportsFront } from '../support/reports-front.ts';

const NOW = Date.UTC(2026, 10, 20, 18);
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const organizationId = randomUUID();
const [ann, bob] = [randomUUID(), randomUUID()];
const [annsKey, annsOther, bobsKey, nobodysKey] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
const research = randomUUID();
/** What is left out has no name any more. */
const NAMES: OwnerNames = {
  organization: new Map([[organizationId, 'acme']]),
  team: new Map([[research, 'research']]),
  user: new Map([[ann, 'ann@acme.test']]),
  api_key: new Map([[annsKey, 'ci']]),
};

const PRINCIPALS = {
  ann: { ...NOBODY, organizationId, userId: ann, apiKeyId: annsKey },
  bob: { ...NOBODY, organizationId, userId: bob, apiKeyId: bobsKey },
  nobody: { ...NOBODY, organizationId, apiKeyId: nobodysKey },
  annAtHome: { ...OWNER, organizationId, userId: ann },
  nowhere: OWNER,
};

/** Newest first. */
const RECORDS: readonly TerminalRecord[] = [
  record({
    apiKeyId: annsKey,
    userId: ann,
    admittedAtMs: NOW - HOUR_MS,
    tags: ['ci', 'nightly'],
    clientRequestId: '=1+1',
    teamId: research,
  }),
  record({ apiKeyId: annsOther, userId: ann, admittedAtMs: NOW - DAY_MS, model: 'sim/large', provider: 'elsewhere' }),
  record({ apiKeyId: bobsKey, userId: bob, admittedAtMs: NOW - DAY_MS - HOUR_MS }),
  record({ apiKeyId: nobodysKey, admittedAtMs: NOW - 2 * DAY_MS }),
  record(
    { apiKeyId: annsKey, userId: ann, admittedAtMs: NOW - 3 * DAY_MS },
    {
      status: 500,
      outcome: 'provider_failed',
      errorCode: 'server_error',
      usage: null,
      usageSource: null,
      ratedCost: null,
    },
  ),
  record({ apiKeyId: annsKey, userId: ann, admittedAtMs: NOW - 40 * DAY_MS }),
];
const ANNS = RECORDS.filter(({ userId }) => userId === ann);

function record(
  start: Parameters<typeof executionStart>[0],
  end: Parameters<typeof terminalRecord>[1] = {},
): TerminalRecord {
  return terminalRecord(executionStart({ organizationId, model: 'sim/small', provider: 'sim', ...start }), end);
}

let clickhouse: TestClickHouse;
let front: ReportsFront;

before(async () => {
  clickhouse = await openTestClickHouse();
  await insertFacts(clickhouse.client, RECORDS.map(factOf), 'all');
  front = await startReportsFront({
    principals: PRINCIPALS,
    clickhouse: () => clickhouse.client,
    clock: { nowMs: () => NOW, monotonicMs: () => 0 },
    ownerNames: async () => NAMES,
  });
});
after(async () => {
  await front?.stop();
  await clickhouse?.close();
});

const data = async (as: string, path: string) => (await front.json(as, path))['data'] as Json;
const list = async (as: string, path: string) => (await data(as, path)) as unknown as readonly Json[];
const ids = (records: readonly TerminalRecord[]) => records.map(({ id }) => id);
const idsAt = async (as: string, path: string) => (await list(as, path)).map((entry) => entry['id']);

async function refusal(path: string, as = 'ann'): Promise<string> {
  const answer = await front.get(as, path);
  const body = JSON.parse(answer.body.toString()) as Json;
  assert.equal(answer.status, 400, `${path}: ${answer.body.toString()}`);
  assert.match(String(body['code']), /^[0-9a-f]{8}$/);
  return String(body['error']);
}

describe('GET /v1/usage/me', () => {
  test('sums up the last thirty days, by model', async () => {
    assert.deepEqual(await data('ann', '/v1/usage/me'), {
      currency: 'USD',
      start_date: '2026-10-22',
      end_date: '2026-11-20',
      time_zone: 'UTC',
      organization_id: organizationId,
      organization: 'acme',
      team_id: null,
      team: null,
      user_id: ann,
      user: 'ann@acme.test',
      api_key_id: null,
      api_key: null,
      requests: 3,
      tokens_prompt: 240,
      tokens_completion: 60,
      cost: '0.000855',
      by_model: [
        { model: 'sim/small', requests: 2, tokens_prompt: 120, tokens_completion: 30, cost: '0.0004275' },
        { model: 'sim/large', requests: 1, tokens_prompt: 120, tokens_completion: 30, cost: '0.0004275' },
      ],
    });
  });

  test('is of all the caller’s credentials; of a key of nobody in particular, of that key (spec 5)', async () => {
    assert.deepEqual(await data('annAtHome', '/v1/usage/me'), await data('ann', '/v1/usage/me'));
    assert.equal((await data('bob', '/v1/usage/me'))['requests'], 1);
    assert.deepEqual(await idsAt('nobody', '/v1/usage/me/requests'), ids([RECORDS[3] as TerminalRecord]));
    assert.deepEqual(
      await idsAt('ann', `/v1/usage/me/requests?api_key_id=${annsOther}`),
      ids([RECORDS[1] as TerminalRecord]),
    );
  });

  test('says of nothing that it is nothing', async () => {
    const nothing = await data('ann', '/v1/usage/me?model=no/such');
    assert.deepEqual([nothing['requests'], nothing['cost'], nothing['by_model']], [0, '0', []]);
    assert.deepEqual(await data('ann', '/v1/usage/me/daily?model=no/such'), []);
    assert.deepEqual(await front.json('ann', '/v1/usage/me/requests?model=no/such'), { data: [], next_cursor: null });
  });

  test('without a credential, a permission or an active organization is refused in the gateway envelope', async () => {
    for (const path of [
      '/v1/usage/me',
      '/v1/usage/me/requests',
      '/v1/usage/me/daily',
      '/v1/usage/me/analytics/routing',
    ]) {
      const unknown = await front.get('no-such-credential', path);
      assert.deepEqual([unknown.status, refusalBody(unknown.body.toString())], [401, { error: 'unauthorized' }]);
      const nowhere = await front.get('nowhere', path);
      const unresolved = refusalBody(nowhere.body.toString());
      assert.deepEqual([nowhere.status, unresolved], [400, { error: 'authorization scope required' }]);
    }
  });
});

describe('GET /v1/usage/me/daily', () => {
  test('has the days with requests, first to last, as the time zone has them', async () => {
    const day = { requests: 1, errors: 0, tokens_prompt: 120, tokens_completion: 30, cost: '0.0004275' };
    const failed = { requests: 1, errors: 1, tokens_prompt: 0, tokens_completion: 0, cost: '0' };
    assert.deepEqual(await data('ann', '/v1/usage/me/daily'), [
      { date: '2026-11-17', ...failed },
      { date: '2026-11-19', ...day },
      { date: '2026-11-20', ...day },
    ]);
    const dates = (await list('ann', '/v1/usage/me/daily?time_zone=Pacific/Kiritimati')).map(({ date }) => date);
    assert.deepEqual(dates, ['2026-11-18', '2026-11-20', '2026-11-21']);
  });
});

describe('group_by', () => {
  const usage = { requests: 1, tokens_prompt: 120, tokens_completion: 30, cost: '0.0004275' };
  const ofKey = { api_key_id: annsKey, api_key: 'ci' };
  const two = { ...usage, requests: 2 };

  test('the summary also sums up each group, and names it', async () => {
    const groupsBy = async (names: string) => (await data('ann', `/v1/usage/me?group_by=${names}`))['groups'];
    assert.deepEqual(await groupsBy('api_key'), [
      { ...ofKey, ...two },
      { api_key_id: annsOther, api_key: null, ...usage },
    ]);
    assert.deepEqual(await groupsBy('team'), [
      { team_id: null, team: null, requests: 2, tokens_prompt: 120, tokens_completion: 30, cost: '0.0004275' },
      { team_id: research, team: 'research', ...usage },
    ]);
    const annAtAcme = { organization_id: organizationId, organization: 'acme', user_id: ann, user: 'ann@acme.test' };
    assert.deepEqual(await groupsBy('user,organization'), [
      { ...annAtAcme, requests: 3, tokens_prompt: 240, tokens_completion: 60, cost: '0.000855' },
    ]);
    assert.deepEqual(await groupsBy('model'), (await data('ann', '/v1/usage/me'))['by_model']);
    assert.equal((await data('ann', '/v1/usage/me'))['groups'], undefined);
  });

  test('the days are each group’s', async () => {
    const days = await list('ann', '/v1/usage/me/daily?group_by=team&start_date=2026-11-20');
    assert.deepEqual(days, [{ date: '2026-11-20', team_id: research, team: 'research', errors: 0, ...usage }]);
  });

  test('as CSV they are the rows', async () => {
    const csv = async (path: string) => (await front.get('ann', path)).body.toString();
    assert.equal(
      await csv('/v1/usage/me?group_by=api_key&format=csv&start_date=2026-11-20'),
      'api_key_id,api_key,requests,tokens_prompt,tokens_completion,cost,currency\r\n' +
        `${annsKey},ci,1,120,30,0.0004275,USD\r\n`,
    );
    assert.equal(
      await csv('/v1/usage/me/daily?group_by=team,model,team&format=csv&start_date=2026-11-20'),
      'date,team_id,team,model,requests,errors,tokens_prompt,tokens_completion,cost\r\n' +
        `2026-11-20,${research},research,sim/small,1,0,120,30,0.0004275\r\n`,
    );
  });
});

describe('GET /v1/usage/me/requests', () => {
  test('lists them, the latest first', async () => {
    const { data: entries, next_cursor } = await front.json('ann', '/v1/usage/me/requests');
    const [first] = entries as Json[];
    assert.deepEqual(first, {
      id: RECORDS[0]?.id,
      created_at: '2026-11-20T17:00:00.000Z',
      organization_id: organizationId,
      organization: 'acme',
      team_id: research,
      team: 'research',
      user_id: ann,
      user: 'ann@acme.test',
      model: 'sim/small',
      requested_model: 'gpt-x',
      provider: 'sim',
      api: 'chat_completions',
      streamed: false,
      status: 200,
      error: null,
      tokens_prompt: 120,
      tokens_completion: 30,
      tokens_cached: 20,
      cost: '0.0004275',
      currency: 'USD',
      billing_status: 'not_billed',
      latency_ms: 250,
      ttft_ms: 40,
      tags: ['ci', 'nightly'],
      client_request_id: '=1+1',
      api_key_id: annsKey,
      api_key: 'ci',
      guardrail: null,
      credential_source: 'service',
      credential_id: null,
      model_route: null,
    });
    assert.deepEqual(
      (entries as Json[]).map(({ id }) => id),
      ids(ANNS.slice(0, 3)),
    );
    assert.equal(next_cursor, null);
    const failed = (entries as Json[])[2];
    assert.deepEqual([failed?.['error'], failed?.['tokens_prompt'], failed?.['cost']], ['server_error', null, null]);
  });

  test('a filter lets through what it names', async () => {
    for (const [query, expected] of [
      ['model=sim/large', [1]],
      ['provider=elsewhere', [1]],
      ['tag=CI', [0]],
      ['tag=none', []],
      ['status=500', [2]],
      ['status=5xx', [2]],
      ['status=error', [2]],
      ['status=success', [0, 1]],
      ['status=2xx', [0, 1]],
      ['routed=true', []],
      ['routed=false', [0, 1, 2]],
      ['route_tier=light', []],
      ['route_reason=classified', []],
      ['credential_source=service', [0, 1, 2]],
      ['credential_source=own', []],
      [`credential_id=${annsKey}`, []],
      [`api_key_id=${annsKey.toUpperCase()}`, [0, 2]],
      ['start_date=2026-11-20', [0]],
      ['end_date=2026-11-19', [1, 2]],
      ['start_date=2026-11-19T18:00:00Z&end_date=2026-11-20T17:00:00Z', [1]],
      ['start_date=2026-10-01&end_date=2026-10-31', [3]],
      ['model=sim/small&status=success', [0]],
    ] as const) {
      const found = await idsAt('ann', `/v1/usage/me/requests?${query}`);
      assert.deepEqual(found, ids(expected.map((index) => ANNS[index] as TerminalRecord)), query);
    }
  });

  test('page by page, every entry once', async () => {
    const seen: unknown[] = [];
    let cursor: string | null = '';
    for (let pages = 0; cursor !== null; pages += 1) {
      assert.ok(pages < 5);
      const page: Json = await front.json(
        'ann',
        `/v1/usage/me/requests?limit=1&start_date=2026-10-01&end_date=2026-11-20${cursor === '' ? '' : `&cursor=${cursor}`}`,
      );
      seen.push(...(page['data'] as Json[]).map(({ id }) => id));
      cursor = page['next_cursor'] as string | null;
    }
    assert.deepEqual(seen, ids(ANNS));
  });

  test('a cursor that was changed, or is another’s, is refused', async () => {
    const { next_cursor } = await front.json('ann', '/v1/usage/me/requests?limit=1');
    const cursor = String(next_cursor);
    const words = 'The field "cursor" is not valid: it must be the next_cursor of an earlier page.';
    for (const changed of [
      `A${cursor.slice(1)}`,
      `${cursor}A`,
      cursor.slice(0, -1),
      cursor.slice(4),
      'x',
      Buffer.from(`${NOW}.${randomUUID()}`).toString('base64url'),
      '%C3%A9',
      ' ',
      'a'.repeat(201),
    ]) {
      assert.equal(await refusal(`/v1/usage/me/requests?cursor=${changed}`), words, changed);
    }
    assert.equal(await refusal(`/v1/usage/me/requests?cursor=${cursor}`, 'bob'), words);
    assert.equal((await list('ann', `/v1/usage/me/requests?cursor=${cursor}`)).length, 2);
  });

  test('as CSV, whole, without formulas', async () => {
    for (const [path, headers] of [
      ['/v1/usage/me/requests?format=csv', {}],
      ['/v1/usage/me/requests', { accept: 'text/csv' }],
    ] as const) {
      const answer = await front.get('ann', path, headers);
      assert.deepEqual(
        [answer.status, answer.headers['content-type'], answer.complete],
        [200, 'text/csv; charset=utf-8', true],
      );
      assert.equal(answer.headers['content-disposition'], 'attachment; filename="requests-2026-10-22_2026-11-20.csv"');
      const [head = '', ...lines] = answer.body.toString().trimEnd().split('\r\n');
      assert.ok(head.startsWith('id,created_at,organization_id,organization,team_id,team,user_id,user,model,'), head);
      assert.deepEqual(
        lines.map((line) => line.split(',')[0]),
        ids(ANNS.slice(0, 3)),
      );
      assert.ok(lines[0]?.includes(",'=1+1,"), lines[0]);
    }
    assert.match(
      (await front.get('ann', '/v1/usage/me/requests?format=json', { accept: 'text/csv' })).headers['content-type'] ??
        '',
      /json/,
    );
  });

  test('the summary and the days as CSV', async () => {
    const summary = await front.get('ann', '/v1/usage/me?format=csv');
    assert.equal(
      summary.body.toString(),
      'model,requests,tokens_prompt,tokens_completion,cost,currency\r\nsim/small,2,120,30,0.0004275,' +
        'USD\r\nsim/large,1,120,30,0.0004275,USD\r\n',
    );
    const days = await front.get('ann', '/v1/usage/me/daily?format=csv');
    assert.equal(days.body.toString().split('\r\n')[1], '2026-11-17,1,1,0,0,0');
  });
});

describe('parameters that mean nothing are refused by name', () => {
  const MOMENT =
    'it must be a date, such as 2026-01-31, or a date and time with a time zone, such as 2026-01-31T12:00:00Z';
  const ZONE = 'it must be the name of a time zone, such as Europe/Berlin';
  for (const [query, reason] of [
    ['start_date=yesterday', MOMENT],
    ['start_date=2026-02-30', MOMENT],
    ['end_date=2026-11-01T10:00:00', MOMENT],
    ['end_date=', MOMENT],
    ['start_date=2026-11-02&end_date=2026-11-01', 'it must not be before start_date'],
    ['start_date=2026-08-20&end_date=2026-11-20', 'it must be at most 92 days before end_date'],
    ['time_zone=Mars/Olympus', ZONE],
    ['time_zone=%2B05:30', ZONE],
    ["time_zone=UTC');DROP TABLE request_facts--", ZONE],
    ['limit=0', 'it must be at least 1'],
    ['limit=101', 'it must be at most 100'],
    ['limit=1.5', 'it must be a whole number'],
    ['limit=many', 'it must be a whole number'],
    ['status=teapot', 'it must be an HTTP status such as 429, a class such as 4xx, error or success'],
    ['status=600', 'it must be an HTTP status such as 429, a class such as 4xx, error or success'],
    ['routed=yes', 'it must be true or false'],
    ['credential_source=mine', 'it must be service or own'],
    ['credential_id=mine', 'it must be a UUID'],
    ['route_reason=because', 'it must be one of the reasons of auto routing, such as classified or classifier_failed'],
    ['route_tier=%27', 'it must be 1 to 63 lower-case letters, digits, hyphens or underscores'],
    ['tag=%20', 'it must be a tag: 1 to 64 letters, digits or any of ._:/@-'],
    ['model=', 'it must be 1 to 200 visible ASCII characters without spaces'],
    ['api_key_id=mine', 'it must be a UUID'],
    ['format=xml', 'it must be json or csv'],
    ['limit=5&limit=6', 'it appears more than once'],
    ['granularity=hour', 'it is not a parameter of this endpoint'],
    ['group_by=team', 'it is not a parameter of this endpoint'],
    ['utm_source=elsewhere', 'it is not a parameter of this endpoint'],
    [`user_id=${bob}`, 'it is not a parameter of this endpoint'],
    [`organization_id=${organizationId}`, 'it is not a parameter of this endpoint'],
    ['format=csv&limit=5', 'CSV is the whole listing and has no pages'],
  ] as const) {
    test(query, async () => {
      const named = reason.includes('start_date')
        ? 'end_date'
        : reason.includes('92')
          ? 'start_date'
          : reason.includes('CSV')
            ? 'limit'
            : query.split('=')[0];
      assert.equal(await refusal(`/v1/usage/me/requests?${query}`), `The field "${named}" is not valid: ${reason}.`);
    });
  }

  test('a group that there is not', async () => {
    for (const groups of ['', 'teams', 'team,', 'team,key'])
      assert.equal(
        await refusal(`/v1/usage/me?group_by=${groups}`),
        'The field "group_by" is not valid: it must be one or more of model, organization, team, user, api_key, with ' +
          'commas between them.',
      );
  });

  test('a listing’s own parameters are no others’', async () => {
    for (const path of ['/v1/usage/me?limit=5', '/v1/usage/me/daily?cursor=x', '/v1/usage/me?granularity=day']) {
      assert.match(await refusal(path), /it is not a parameter of this endpoint/);
    }
  });
});
