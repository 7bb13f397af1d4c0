// Reports over generated facts: every figure equals an independent computation in TypeScript, for random scopes,
// filters, windows and time zones.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { DIMENSIONS, type Dimension, namingRows, OWNERS, SERIES_DIMENSIONS } from '../../src/domain/reports/owners.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { type ClickHouseReader, createClickHouse } from '../../src/storage/clickhouse/clickhouse.ts';
import { picoOf } from '../../src/storage/clickhouse/decimal-text.ts';
import { insertFacts, type RequestFact } from '../../src/storage/clickhouse/facts.ts';
import { InvalidStatement } from '../../src/storage/clickhouse/literals.ts';
import { exportFocus } from '../../src/storage/clickhouse/reports/export-focus.ts';
import { exportRequestsCsv } from '../../src/storage/clickhouse/reports/export-requests.ts';
import {
  listRequests,
  type RequestCursor,
  readRequestCursor,
} from '../../src/storage/clickhouse/reports/list-requests.ts';
import type { ReportParams } from '../../src/storage/clickhouse/reports/report-params.ts';
import type { RequestEntry } from '../../src/storage/clickhouse/reports/request-entry.ts';
import { routingReport } from '../../src/storage/clickhouse/reports/routing-report.ts';
import { ReportStoreUnavailable } from '../../src/storage/clickhouse/reports/select-report.ts';
import { GROUPS_MAX, usageDaily, usageSummary } from '../../src/storage/clickhouse/reports/usage.ts';
import { usageSeries } from '../../src/storage/clickhouse/reports/usage-series.ts';
import { assertFigures } from '../support/assert-figures.ts';
import { howMany, someOf } from '../support/at-length.ts';
import { openTestClickHouse, type TestClickHouse } from '../support/clickhouse.ts';
import { startClickHouseServer } from '../support/clickhouse-server.ts';
import { GENERATED_FROM_MS, GENERATED_UNTIL_MS, generateFacts } from '../support/fact-generator.ts';
import {
  expectedCharges,
  expectedDays,
  expectedEntry,
  expectedReport,
  expectedSummary,
  isCounted,
  latestVersions,
  matching,
} from '../support/report-oracle.ts';
import { reportQuestions, singleFilters } from '../support/report-questions.ts';
import { expectedSeries } from '../support/series-oracle.ts';
import { waitFor } from '../support/waiting.ts';

const FACTS = howMany({ short: 13_000, long: 20_000 });
const SEED = 20_261_120;
/** At length, on a machine with other work, the slowest of these took more than two minutes. */
const SLOWEST_MS = 600_000;
const HOUR_MS = 3_600_000;
const GENERATED_SPAN = { fromMs: GENERATED_FROM_MS, untilMs: GENERATED_UNTIL_MS };

const generated = generateFacts(SEED, FACTS);
const latest = latestVersions(generated.facts);

let clickhouse: TestClickHouse;
before(async () => {
  clickhouse = await openTestClickHouse();
  // Many parts that stay apart, so that versions of one execution lie in different ones.
  await clickhouse.client.command({ query: 'SYSTEM STOP MERGES request_facts' });
  for (let from = 0, batch = 0; from < generated.facts.length; from += 4_000, batch++) {
    await insertFacts(clickhouse.client, generated.facts.slice(from, from + 4_000), `batch-${batch}`);
  }
});
after(() => clickhouse.close());

/** Everything: the widest window of the platform. */
const ALL: ReportParams = {
  scope: { organizationId: null },
  filters: {},
  window: {
    fromMs: GENERATED_FROM_MS,
    untilMs: GENERATED_UNTIL_MS + 48 * HOUR_MS,
    granularity: 'day',
    timeZone: 'UTC',
  },
};

async function holds(runs: number, check: (question: ReportParams) => Promise<void>): Promise<void> {
  await fc.assert(fc.asyncProperty(reportQuestions(generated.pools, GENERATED_SPAN), check), {
    seed: SEED,
    numRuns: runs,
    examples: [[ALL]],
    endOnFailure: true,
    includeErrorInReport: true,
  });
}

describe('the generated facts', () => {
  test('have something of everything a report shows', () => {
    const report = expectedReport(latest, { ...ALL, recentCorrections: true });
    const { totals } = report;
    for (const [name, value] of Object.entries(totals))
      assert.ok(value !== 0 && value !== '0' && value !== null, `totals.${name} is ${String(value)}`);
    for (const [name, value] of Object.entries(totals.sessions))
      assert.ok(value !== 0 && value !== null, `sessions.${name} is ${value}`);
    for (const [name, value] of Object.entries(report))
      assert.ok(!Array.isArray(value) || value.length > 1, `${name} is empty`);
    assert.ok(report.confidence.every(({ requests }) => requests > 0));
    assert.ok(
      report.model_remainder !== null && report.recent_corrections?.length === 20 && report.by_tier.length === 4,
    );
    // Savings compare fewer requests than there are, and some classifier has no price.
    assert.ok(totals.baseline_requests < totals.requests && totals.requests < totals.all_requests);
    assert.deepEqual(
      report.classifiers.map(({ cost_usd }) => cost_usd === null),
      [false, true],
    );
    assert.ok(generated.facts.length > latest.length + 500, 'some executions arrive twice');
  });
});

describe('the routing report', () => {
  test('is what the facts say, figure by figure', { timeout: SLOWEST_MS }, async () => {
    await holds(howMany({ short: 2, long: 60 }), async (question) => {
      const asked = { ...question, recentCorrections: question.window.granularity === 'day' };
      assertFigures(await routingReport(clickhouse.client, asked), expectedReport(latest, asked), 'report');
    });
  });

  test('of nothing is all zeros and nulls', async () => {
    const nothing = { ...ALL, filters: { model: 'no/such' }, recentCorrections: true };
    const report = await routingReport(clickhouse.client, nothing);
    assertFigures(report, expectedReport([], nothing), 'report');
    assert.equal(report.totals.requests, 0);
    assert.equal(report.totals.spend_usd, '0');
    assert.equal(report.totals.error_rate, null);
  });

  test('of a day whose clocks go back has the repeated hour twice', async () => {
    const berlin = {
      fromMs: Date.UTC(2026, 9, 24, 22),
      untilMs: Date.UTC(2026, 9, 25, 23),
      granularity: 'hour' as const,
      timeZone: 'Europe/Berlin',
    };
    const { series } = await routingReport(clickhouse.client, { ...ALL, window: berlin, recentCorrections: false });
    const hours = [...new Set(series.map(({ bucket }) => bucket))];
    assert.ok(
      hours.includes('2026-10-25T02:00:00+02:00') && hours.includes('2026-10-25T02:00:00+01:00'),
      hours.join(' '),
    );
    assert.ok(hours.length <= 25);
  });

  test('a later version of a fact changes the report, an earlier one and a repeated one do not', async () => {
    const moved = {
      ...(latest.find((fact) => fact.route != null && isCounted(fact)) as RequestFact),
      id: '01990000-0000-7000-9000-000000000001',
      admittedAtMs: Date.UTC(2028, 0, 5),
    };
    const window = { ...ALL.window, fromMs: Date.UTC(2028, 0, 1), untilMs: Date.UTC(2028, 1, 1) };
    const question = { ...ALL, window, recentCorrections: false };
    const spend = async (): Promise<string> => (await routingReport(clickhouse.client, question)).totals.spend_usd;
    const versions = [1, 2, 1, 2].map((version) => ({
      ...moved,
      version,
      walletId: moved.apiKeyId,
      charge: version === 1 ? null : '1000000000001',
    }));
    const seen: string[] = [];
    for (const [index, fact] of versions.entries()) {
      await insertFacts(clickhouse.client, [fact], `version-${index}`);
      seen.push(await spend());
    }
    assert.deepEqual(seen, ['0', '1.000000000001', '1.000000000001', '1.000000000001']);
  });
});

describe('sums of tokens', () => {
  test('are exact beyond 2^53, wherever they stand', async () => {
    const most = Number.MAX_SAFE_INTEGER;
    const [own] = latest.filter(({ route, usage }) => route?.classifier !== undefined && usage !== null);
    const { route, usage } = own as RequestFact & Required<Pick<RequestFact, 'route' | 'usage'>>;
    const facts = [0, 1, 2].map((index) => ({
      ...(own as RequestFact),
      id: `01990000-0000-7000-9000-00000000010${index}`,
      admittedAtMs: Date.UTC(2029, 0, 5) + index,
      api: 'responses' as const,
      usage: usage === null ? null : { ...usage, inputTokens: most, outputTokens: most - index },
      route:
        route === null
          ? null
          : { ...route, classifier: { model: 'm', input_tokens: most, cost_usd: null, latency_ms: 1 } },
    }));
    await insertFacts(clickhouse.client, facts, 'most-tokens');
    const window = { ...ALL.window, fromMs: Date.UTC(2029, 0, 1), untilMs: Date.UTC(2029, 1, 1) };
    const question = { ...ALL, window, recentCorrections: false };
    const [prompt, completion] = [27_021_597_764_222_973n, 27_021_597_764_222_970n];
    const { totals, classifiers } = await routingReport(clickhouse.client, question);
    assert.deepEqual([totals.tokens, totals.classifier.input_tokens], [prompt + completion, prompt]);
    assert.equal(classifiers[0]?.input_tokens, prompt);
    const summary = await usageSummary(clickhouse.client, question);
    const [day] = (await usageDaily(clickhouse.client, question)) ?? [];
    const series = await usageSeries(clickhouse.client, { ...question, groupBy: 'model', top: 1 });
    for (const found of [summary, summary?.by_model[0], day, series?.totals, series?.groups[0]?.series[0]])
      assert.deepEqual([found?.tokens_prompt, found?.tokens_completion], [prompt, completion]);
    const [charge] = readCsv(await gather(exportFocus(clickhouse.client, { ...question, issuer: 'us' }, nameRows)));
    assert.deepEqual(
      [charge?.['ConsumedQuantity'], charge?.['x_TokensPrompt'], charge?.['x_TokensCompletion']],
      [String(prompt + completion), String(prompt), String(completion)],
    );
  });
});

describe('usage', () => {
  test('the summary and the days are what the facts say', { timeout: SLOWEST_MS }, async () => {
    await holds(howMany({ short: 2, long: 40 }), async (question) => {
      assert.deepEqual(await usageSummary(clickhouse.client, question), expectedSummary(latest, question));
      assert.deepEqual(await usageDaily(clickhouse.client, question), expectedDays(latest, question));
    });
  });

  const GROUPINGS: readonly (readonly Dimension[])[] = [
    ...DIMENSIONS.map((dimension) => [dimension]),
    ['user', 'team'],
    ['api_key', 'model'],
    DIMENSIONS,
  ];

  test('by organization, team, user, key and model, alone and together', { timeout: SLOWEST_MS }, async () => {
    let round = 0;
    await holds(howMany({ short: 2, long: 20 }), async (question) => {
      for (const groupBy of someOf(GROUPINGS, 2, round++)) {
        const asked = { ...question, groupBy };
        const summary = await usageSummary(clickhouse.client, asked);
        assert.deepEqual(summary, expectedSummary(latest, asked), groupBy.join());
        assert.deepEqual(await usageDaily(clickhouse.client, asked), expectedDays(latest, asked), groupBy.join());
        // Nothing is in two groups, or in none.
        const groups = summary?.groups ?? [];
        assert.equal(
          groups.reduce((sum, { requests }) => sum + requests, 0),
          summary?.requests,
        );
        assert.equal(
          groups.reduce((sum, { cost }) => sum + picoOf(cost), 0n),
          picoOf(summary?.cost ?? ''),
        );
      }
    });
  });

  test('of more groups than anybody reads is none', async () => {
    const manyRows = { query: async () => ({ json: async () => Array.from({ length: GROUPS_MAX + 1 }, () => ({})) }) };
    const client = manyRows as unknown as TestClickHouse['client'];
    const asked = { ...ALL, groupBy: ['api_key'] } as const;
    assert.equal(await usageSummary(client, asked), null);
    assert.equal(await usageDaily(client, asked), null);
  });
});

describe('the series of usage', () => {
  test('are what the facts say, in all and by each dimension, with the rest summed up', {
    timeout: SLOWEST_MS,
  }, async () => {
    let asked = 0;
    let round = 0;
    await holds(howMany({ short: 2, long: 40 }), async (question) => {
      for (const groupBy of someOf([null, ...SERIES_DIMENSIONS], 2, round++)) {
        const params = { ...question, groupBy, top: [3, 1, 25][asked++ % 3] ?? 3 };
        // Long windows by hour are more points than an answer has.
        const found = await usageSeries(clickhouse.client, params);
        if (found !== null) assertFigures(found, expectedSeries(latest, params), groupBy ?? 'all');
      }
    });
  });

  test('are the same in every way in which facts are read', async () => {
    const [every, many] = [Number.POSITIVE_INFINITY, 20_000];
    const ways = [
      ['ranked while facts are read', { everyValueMax: every, rankedRowsMax: many }, { groups: 2, tags: 4 }],
      ['ranked first', { everyValueMax: every, rankedRowsMax: 0 }, { groups: 3, tags: 4 }],
      ['ranked first, of different values', { everyValueMax: 0, rankedRowsMax: many }, { groups: 3, tags: 4 }],
    ] as const;
    const window = { fromMs: Date.UTC(2026, 8, 1), untilMs: Date.UTC(2026, 11, 1), timeZone: 'UTC' };
    for (const groupBy of ['model', 'team', 'status', 'tag'] as const) {
      const params = { ...ALL, window: { ...window, granularity: 'day' as const }, groupBy, top: 2 };
      const expected = expectedSeries(latest, params);
      assert.ok((expected.remainder?.groups ?? 0) > 0, groupBy);
      for (const [way, limits, statements] of ways) {
        const { client, asked } = countingQueries(clickhouse.client);
        assertFigures(await usageSeries(client, params, limits), expected, `${groupBy}, ${way}`);
        assert.equal(asked(), groupBy === 'tag' ? statements.tags : statements.groups, `${groupBy}, ${way}`);
      }
    }
  });

  test('rank a hundred groups that tie while they are read, and more of them first', async () => {
    const fromMs = Date.UTC(2030, 0, 5);
    const names = ['', '\0', "'", '%s?$1', '\n', ...Array.from({ length: 96 }, (_, index) => `made/${index}`)];
    const facts = names.map((model, index) => ({
      ...(latest.find(isCounted) as RequestFact),
      id: `01990000-0000-7000-9000-000000002${String(index).padStart(3, '0')}`,
      admittedAtMs: fromMs + index,
      model,
    }));
    await insertFacts(clickhouse.client, facts, 'many-models');
    for (const [models, statements] of [
      [100, 2],
      [101, 3],
    ] as const) {
      const window = { ...ALL.window, fromMs, untilMs: fromMs + models };
      const params = { ...ALL, window, groupBy: 'model' as const, top: 4 };
      const { client, asked } = countingQueries(clickhouse.client);
      assertFigures(await usageSeries(client, params), expectedSeries(facts, params), `${models} models`);
      assert.equal(asked(), statements);
    }
  });

  test('have days of 23 and of 25 hours, and hours that come twice, where clocks change', async () => {
    for (const [timeZone, date, hours, buckets, name] of [
      ['Europe/Berlin', Date.UTC(2026, 9, 24, 22), 25, 25, '2026-10-25T02:00:00+01:00'],
      ['America/New_York', Date.UTC(2026, 10, 1, 4), 25, 25, '2026-11-01T01:00:00-05:00'],
      // From 02:45 to 03:45: two hours are shorter.
      ['Pacific/Chatham', Date.UTC(2026, 8, 26, 11, 15), 23, 24, '2026-09-27T03:45:00+13:45'],
    ] as const) {
      const window = { fromMs: date, untilMs: date + hours * HOUR_MS, granularity: 'hour' as const, timeZone };
      const params = { ...ALL, window, groupBy: 'model' as const, top: 3 };
      const found = await usageSeries(clickhouse.client, params);
      assertFigures(found, expectedSeries(latest, params), timeZone);
      assert.equal(found?.buckets.length, buckets);
      assert.ok(found?.buckets.includes(name), found?.buckets.join(' '));
      const day = { ...params, window: { ...window, granularity: 'day' as const } };
      const days = await usageSeries(clickhouse.client, day);
      assert.equal(days?.buckets.length, 1);
      assertFigures(days, expectedSeries(latest, day), timeZone);
      const [ofDay] = (await usageDaily(clickhouse.client, { ...ALL, window: day.window })) ?? [];
      assert.equal(ofDay?.requests, found?.totals.requests);
    }
  });
});

/** Counts the statements that are asked through it. */
function countingQueries(client: ClickHouseReader): { client: ClickHouseReader; asked: () => number } {
  let asked = 0;
  return {
    client: {
      query: (statement) => {
        asked += 1;
        return client.query(statement);
      },
    },
    asked: () => asked,
  };
}

async function listAll(question: ReportParams, limit: number): Promise<RequestEntry[]> {
  const entries: RequestEntry[] = [];
  let cursor: RequestCursor | null = null;
  do {
    const page = await listRequests(clickhouse.client, { ...question, limit, cursor });
    entries.push(...page.data);
    assert.ok(page.data.length === limit || page.nextCursor === null);
    cursor = page.nextCursor === null ? null : readRequestCursor(page.nextCursor);
  } while (cursor !== null);
  return entries;
}

describe('filters', () => {
  test('each lets through what it says', { timeout: SLOWEST_MS }, async () => {
    for (const filter of singleFilters(generated.pools)) {
      const question = { ...ALL, filters: filter };
      assert.deepEqual(
        await usageSummary(clickhouse.client, question),
        expectedSummary(latest, question),
        JSON.stringify(filter),
      );
    }
  });
});

describe('listings', () => {
  test('requests of one instant are all listed, whatever the page', async () => {
    const atMs = Date.UTC(2028, 5, 5);
    const twins = latest.slice(0, 7).map((fact, index) => ({
      ...fact,
      id: `0198000${index}-0000-7000-9000-00000000000${index}`,
      admittedAtMs: atMs,
    }));
    await insertFacts(clickhouse.client, twins, 'twins');
    const question = { ...ALL, window: { ...ALL.window, fromMs: atMs - HOUR_MS, untilMs: atMs + HOUR_MS } };
    for (const limit of [1, 2, 3, 6, 7, 8])
      assert.deepEqual((await listAll(question, limit)).map(({ id }) => id).sort(), twins.map(({ id }) => id).sort());
  });

  test('page by page they show every request once, the latest first, as it was recorded', {
    timeout: SLOWEST_MS,
  }, async () => {
    const expected = new Map(latest.map((fact) => [fact.id, fact]));
    await holds(howMany({ short: 1, long: 20 }), async (question) => {
      const found = matching(latest, { ...question, showsRefused: true });
      const limit = Math.max(1, Math.ceil(found.length / 3.5));
      const entries = await listAll(question, limit);
      for (const [index, entry] of entries.entries()) {
        assert.deepEqual(entry, expectedEntry(expected.get(entry.id) as RequestFact));
        assert.ok(index === 0 || entry.created_at <= (entries[index - 1]?.created_at ?? ''));
      }
      assert.deepEqual(entries.map(({ id }) => id).sort(), found.map(({ id }) => id).sort());
    });
  });

  test('a cursor that is not ours is none', () => {
    for (const text of [
      '',
      'x',
      'MTIz',
      Buffer.from('1.2').toString('base64url'),
      Buffer.from("1.'; DROP").toString('base64url'),
    ]) {
      assert.equal(readRequestCursor(text), null, text);
    }
  });
});

/** RFC 4180. */
function readCsv(text: string): Record<string, string>[] {
  const rows: string[][] = [];
  let row: string[] = [];
  for (const [, quoted, plain = '', end = ''] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    row.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    if (end === ',') continue;
    rows.push(row);
    row = [];
  }
  const [header = [], ...lines] = rows;
  return lines.map((line) => Object.fromEntries(header.map((name, index) => [name, line[index] ?? ''])));
}

async function gather(parts: AsyncIterable<string>): Promise<string> {
  let text = '';
  for await (const part of parts) text += part;
  return text;
}

/** Everybody is named after their id. */
const nameRows = namingRows(async (_, ids) => {
  const named = (of: readonly string[]) => new Map(of.map((id) => [id, `name of ${id}`]));
  return {
    organization: named(ids.organization),
    team: named(ids.team),
    user: named(ids.user),
    api_key: named(ids.api_key),
  };
}, null);
const nameOf = (id: string | null | undefined) => (id == null || id === '' ? '' : `name of ${id}`);

describe('exports', () => {
  const organizationId = generated.pools.organizations[0] as string;
  const question: ReportParams = { ...ALL, scope: { organizationId } };

  test('CSV has every request of the listing, its fields, and no formula', async () => {
    const rows = readCsv(await gather(exportRequestsCsv(clickhouse.client, question, nameRows)));
    const found = matching(latest, { ...question, showsRefused: true });
    assert.ok(found.length > 5_000, `${found.length} are one page`);
    assert.equal(rows.length, found.length);
    const byId = new Map(rows.map((row) => [row['id'], row]));
    for (const fact of found) {
      const entry = expectedEntry(fact);
      const row = byId.get(fact.id);
      assert.ok(row !== undefined, fact.id);
      const { cost, client_request_id: label, tags, route_tier: tier, route_baseline_cost_usd: baseline } = row;
      assert.deepEqual(
        { cost, tags, tier, baseline },
        {
          cost: entry.cost ?? '',
          tags: entry.tags.join(' '),
          tier: entry.model_route?.tier ?? '',
          baseline: entry.model_route?.baseline_cost_usd ?? '',
        },
      );
      for (const owner of OWNERS) {
        assert.equal(row[`${owner}_id`], entry[`${owner}_id`] ?? '', owner);
        assert.equal(row[owner], nameOf(entry[`${owner}_id`]), owner);
      }
      assert.equal(label, entry.client_request_id === '=1+1' ? "'=1+1" : (entry.client_request_id ?? ''));
    }
  });

  test('a server gives the same listing as the engine, however long: what is asked fits its requests', async () => {
    // Several pages in any case.
    const fromMs = howMany({ short: (GENERATED_FROM_MS + GENERATED_UNTIL_MS) / 2, long: GENERATED_FROM_MS });
    const long = { ...ALL, window: { ...ALL.window, fromMs } };
    const server = await startClickHouseServer(clickhouse.client);
    const client = await createClickHouse({ url: server.url }, systemClock);
    try {
      assert.equal(
        await gather(exportRequestsCsv(client, long, nameRows)),
        await gather(exportRequestsCsv(clickhouse.client, long, nameRows)),
      );
    } finally {
      await client.close();
      await server.close();
    }
  });

  test('FOCUS has the charges of each day in columns that its readers know', async () => {
    const rows = readCsv(await gather(exportFocus(clickhouse.client, { ...question, issuer: 'Tollgate' }, nameRows)));
    const expected = expectedCharges(latest, question);
    const days = new Map<string, { billed: bigint; rated: bigint }>();
    for (const row of rows) {
      const date = (row['ChargePeriodStart'] ?? '').slice(0, 10);
      const day = days.get(date) ?? { billed: 0n, rated: 0n };
      days.set(date, {
        billed: day.billed + picoOf(row['BilledCost'] ?? ''),
        rated: day.rated + picoOf(row['ListCost'] ?? ''),
      });
      assert.equal(row['ChargePeriodStart'], `${date}T00:00:00Z`);
      assert.equal(Date.parse(row['ChargePeriodEnd'] ?? '') - Date.parse(row['ChargePeriodStart'] ?? ''), 24 * HOUR_MS);
      assert.equal(row['BillingPeriodStart'], `${date.slice(0, 7)}-01T00:00:00Z`);
    }
    assert.deepEqual(days, expected);
    for (const row of rows) {
      assert.equal(row['BillingAccountName'], nameOf(organizationId));
      assert.equal(row['SubAccountName'], nameOf(row['SubAccountId']));
      assert.equal(row['ResourceName'], nameOf(row['ResourceId']));
      assert.equal(row['x_UserName'], nameOf(row['x_UserId']));
    }
    assert.ok(rows.some((row) => row['x_UserId'] !== ''));
    const sources = rows.map((row) => `${row['x_CredentialSource']} ${row['x_CredentialId'] === '' ? 'none' : 'one'}`);
    assert.deepEqual([...new Set(sources)].toSorted(), ['own one', 'service none']);
    assert.deepEqual(Object.keys(rows[0] ?? {}).slice(0, FOCUS_MANDATORY.length), FOCUS_MANDATORY);
  });
});

/** FOCUS 1.2, feature level Mandatory. */
const FOCUS_MANDATORY = [
  'BilledCost',
  'BillingAccountId',
  'BillingAccountName',
  'BillingCurrency',
  'BillingPeriodEnd',
  'BillingPeriodStart',
  'ChargeCategory',
  'ChargeClass',
  'ChargeDescription',
  'ChargePeriodEnd',
  'ChargePeriodStart',
  'ContractedCost',
  'EffectiveCost',
  'InvoiceIssuerName',
  'ListCost',
  'PricingQuantity',
  'PricingUnit',
  'ProviderName',
  'PublisherName',
  'ServiceCategory',
  'ServiceName',
];

describe('a store that cannot answer', () => {
  test('away is one fault; a statement that is wrong is another', async () => {
    const refused = {
      query: async () => Promise.reject(new Error('connect ECONNREFUSED 127.0.0.1:1')),
    } as unknown as TestClickHouse['client'];
    await assert.rejects(usageSummary(refused, ALL), ReportStoreUnavailable);
    const busy = {
      query: async () => Promise.reject(Object.assign(new Error('too slow'), { code: '159' })),
    } as unknown as TestClickHouse['client'];
    await assert.rejects(usageSummary(busy, ALL), ReportStoreUnavailable);
    await assert.rejects(
      usageSummary(clickhouse.client, { ...ALL, scope: { organizationId: 'no uuid' } }),
      (error) => !(error instanceof ReportStoreUnavailable),
    );
    // A value that its type does not have is found before the engine is asked.
    const window = { ...ALL.window, fromMs: 0.5 };
    await assert.rejects(usageSummary(clickhouse.client, { ...ALL, window }), InvalidStatement);
  });

  test('of a report that fails nothing goes on once it has', async () => {
    const gate = Promise.withResolvers<void>();
    const begun: string[] = [];
    const half = (isFailing: (query: string) => boolean): Pick<ClickHouseReader, 'query'> =>
      ({
        query: async (statement: { query: string }) => {
          begun.push(statement.query);
          if (isFailing(statement.query)) throw Object.assign(new Error('too slow'), { code: '159' });
          if (statement.query.includes('is_remembered')) await gate.promise;
          return clickhouse.client.query(statement);
        },
      }) as unknown as ClickHouseReader;
    const reader = { ...half((query) => query.includes('ranked_model')), secondConnection: half(() => false) };
    let isOver = false;
    const report = assert.rejects(routingReport(reader, { ...ALL, recentCorrections: false }), ReportStoreUnavailable);
    const over = report.finally(() => {
      isOver = true;
    });
    await waitFor(
      'both to have begun',
      () => begun.length,
      (count) => count === 4,
    );
    assert.equal(isOver, false);
    gate.resolve();
    await over;
    assert.equal(begun.length, 5);
  });
});
