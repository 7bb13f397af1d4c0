// Every figure of the console's report screens beside the API's answer, for the report generator's data, in time zones
// on the days on which their clocks change. The reports are the real ones; who is signed in is answered by the test.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Browser, Page, Route } from 'playwright-core';
import {
  bucketLabels,
  compact,
  dollars,
  duration,
  moment,
  percent,
  spaced,
  whole,
} from '../../src/console/logic/format.ts';
import { nameOfGroup } from '../../src/console/logic/series-chart.ts';
import type { ScreeningReport } from '../../src/domain/guardrails/screening-report.ts';
import { insertFacts, type RequestFact } from '../../src/storage/clickhouse/facts.ts';
import { NOBODY, OWNER, PLATFORM } from '../support/billing-front.ts';
import { openTestClickHouse, type TestClickHouse } from '../support/clickhouse.ts';
import {
  cellsOf,
  findChromium,
  openChromium,
  openPage,
  openScreen,
  type WatchedPage,
} from '../support/console-browser.ts';
import { skipWithoutConsole } from '../support/console-installation.ts';
import { generateFacts } from '../support/fact-generator.ts';
import { ANSWERS_OF_NOW, CHARTS_OF_NOW, STATS_OF_NOW, TABLES_OF_NOW } from '../support/figures-of-now.ts';
import {
  expectedChart,
  expectedRequest,
  expectedRouting,
  expectedRoutingTables,
  expectedUsage,
  type Json,
  sorted,
} from '../support/figures-on-screens.ts';
import { type ReportsFront, startReportsFront } from '../support/reports-front.ts';

const BUILT = join(import.meta.dirname, '../../src/console/built');
const TYPES: Readonly<Record<string, string>> = { '.js': 'text/javascript', '.css': 'text/css', '': 'text/html' };
const SITE = 'http://console.test';
const NOW = Date.UTC(2026, 10, 19, 4);
const PAGE_SIZE = 50;

interface Window {
  readonly zone: string;
  readonly from: string;
  readonly to: string;
  /** How many hours or days it has. */
  readonly buckets: number;
}

const WHOLE: Window = { zone: 'UTC', from: '2026-09-24', to: '2026-11-19', buckets: 57 };
const WINDOWS: readonly Window[] = [
  WHOLE,
  { zone: 'Europe/Berlin', from: '2026-10-25', to: '2026-10-25', buckets: 25 },
  { zone: 'America/New_York', from: '2026-10-30', to: '2026-11-02', buckets: 4 },
  { zone: 'Australia/Lord_Howe', from: '2026-10-03', to: '2026-10-05', buckets: 72 },
  // The clocks change at a quarter to three: the hour before it and the one after it are in parts.
  { zone: 'Pacific/Chatham', from: '2026-09-26', to: '2026-09-28', buckets: 72 },
];

const { facts: unscreened } = generateFacts(4_27, 6_000);
const sample = busiest(unscreened);
/** Few enough to be in one table. */
const facts = unscreened.map((fact, index) =>
  index % (fact.organizationId === sample.organizationId ? 3 : 200) === 0
    ? { ...fact, screening: screeningOf(index) }
    : fact,
);
const { organizationId, userId } = sample;
const permissions = ['inference', 'usage.read', 'team.usage.read', 'org.usage.read', 'org.admin', 'platform.admin'];
const organization = { id: organizationId, slug: 'generated', display_name: 'Generated', role: 'owner' };
/** What is no report: who is signed in, and what stands in the ledger. */
const ANSWERS: Readonly<Record<string, unknown>> = {
  '/v1/console/session': {
    data: {
      user: { id: userId, email: 'owner@generated.test' },
      organization,
      permissions,
      teams: [],
      platform_admin: true,
      brand: 'Service',
      auto_model: 'service/auto',
    },
  },
  '/v1/me/organizations': { data: [organization], next_cursor: null },
  '/v1/billing/credits': { data: { balance: null, available: null } },
  '/v1/usage/limits/current': { data: [] },
  ...ANSWERS_OF_NOW,
};

describe('figures on the screens are the API’s', { skip: skipWithoutConsole }, () => {
  let clickhouse: TestClickHouse;
  let front: ReportsFront;
  let browser: Browser;
  let watched: WatchedPage;
  let page: Page;

  before(async () => {
    clickhouse = await openTestClickHouse();
    await insertFacts(clickhouse.client, facts, 'all');
    front = await startReportsFront({
      principals: {
        caller: { ...NOBODY, organizationId, userId, apiKeyId: sample.apiKeyId },
        owner: { ...OWNER, organizationId },
        platform: PLATFORM,
      },
      clickhouse: () => clickhouse.client,
      clock: { nowMs: () => NOW, monotonicMs: () => 0 },
    });
    browser = await openChromium(findChromium() ?? '');
    watched = await openPage(browser, { width: 1440 });
    ({ page } = watched);
    // So high that all rows of a long table are near it.
    await page.setViewportSize({ width: 1440, height: 8000 });
    await page.route('**/*', answer);
  });
  after(async () => {
    await browser?.close();
    await front?.stop();
    await clickhouse?.close();
  });

  const callerOf = (path: string): string =>
    path.startsWith('/v1/usage/me') ? 'caller' : path.includes('/active-org/') ? 'owner' : 'platform';

  async function answer(route: Route): Promise<void> {
    const { pathname, search } = new URL(route.request().url());
    if (pathname.startsWith('/console')) {
      const name = pathname.slice('/console/'.length);
      const type = TYPES[extname(name)] ?? 'text/html';
      return route.fulfill({
        body: readFileSync(join(BUILT, extname(name) === '' ? 'index.html' : name)),
        contentType: type,
      });
    }
    const known = ANSWERS[pathname];
    if (known !== undefined) return route.fulfill({ json: known });
    if (pathname.startsWith('/v1/admin/routing/')) return route.fulfill({ status: 404, json: { error: 'no policy' } });
    const { status, body } = await front.get(callerOf(pathname), pathname + search);
    return route.fulfill({ status, body, contentType: 'application/json' });
  }

  async function report(path: string, { zone, from, to }: Window, query = ''): Promise<Json> {
    const asked = `${path}?start_date=${from}&end_date=${to}&time_zone=${zone}${query}`;
    return (await front.json(callerOf(path), asked)) as Json;
  }

  const open = (screen: string, { zone, from, to }: Window, more = '') =>
    openScreen(watched, SITE, `${screen}?zone=${zone}&from=${from}&to=${to}${more}`);

  const rowsOf = (name: string) => cellsOf(watched, name);

  const firstLines = (rows: readonly (readonly string[])[]) =>
    rows.map((row) => row.map((text) => (text.split('\n')[0] ?? '').trim()));

  async function statsOf(): Promise<Record<string, string>> {
    const pairs = await page
      .locator('.stat')
      .evaluateAll((all) => all.map((one) => [...one.children].map((part) => part.textContent ?? '')));
    return Object.fromEntries(pairs.map(([name = '', value = '']) => [name, value]));
  }

  /** A chart as a table, cell by cell. */
  async function chartRows(title: string): Promise<string[][]> {
    const figure = page.locator('figure', { has: page.getByRole('heading', { name: title, exact: true }) });
    await figure.getByRole('button', { name: 'As a table' }).click();
    return rowsOf(title);
  }

  const series = (audience: 'organization' | 'platform') =>
    audience === 'platform' ? '/v1/admin/analytics/series' : '/v1/admin/active-org/usage/analytics/series';

  for (const window of WINDOWS) {
    const name = `${window.from} to ${window.to} in ${window.zone}`;

    test(`overview: ${name}`, async () => {
      await open('overview', window);
      const { data } = await report('/v1/admin/active-org/usage', window);
      const all = (await report(series('organization'), window))['data'];
      const routing = await report('/v1/admin/active-org/usage/analytics/routing', window);
      assert.equal(all.buckets.length, window.buckets);
      const shown = await statsOf();
      assert.equal(shown['Spend'], dollars(data.cost));
      assert.equal(shown['Requests'], compact(data.requests));
      assert.equal(shown['Errors'], percent(all.totals.errors / all.totals.requests));
      assert.equal(shown['Latency'], duration(all.totals.p95_latency_ms));
      assert.equal(shown['Saved by routing'], dollars(routing['totals'].savings_usd));
      assert.deepEqual(
        (await rowsOf('Spend by model')).map((row) => row.slice(0, 3)),
        data.by_model
          .toSorted((one: Json, other: Json) => Number(other['cost']) - Number(one['cost']))
          .slice(0, 8)
          .map((model: Json) => [model['model'], whole(model['requests']), dollars(model['cost'])]),
      );
      const byModel = (await report(series('organization'), window, '&group_by=model&top=7'))['data'];
      assert.deepEqual(
        await chartRows('Spend by model'),
        expectedChart(byModel, ({ cost }) => cost, '0'),
      );
      assert.deepEqual(await watched.complaints(), []);
    });

    test(`usage and spend: ${name}`, async () => {
      const groups = window === WHOLE ? ['model', 'provider', 'api_key', 'user', 'team', 'tag', 'status'] : ['tag'];
      for (const by of groups) {
        await open('usage', window, `&by=${by}&measure=tokens`);
        const { data } = await report(series('organization'), window, `&group_by=${by}&top=25`);
        assert.deepEqual(firstLines(await usageRows()), expectedUsage(data), by);
        const chart = (await report(series('organization'), window, `&group_by=${by}&top=7`))['data'];
        const tokens = ({ tokens_prompt: one, tokens_completion: other }: Json) => String(one + other);
        const [title] = await page.locator('figure h2').allInnerTexts();
        assert.deepEqual(await chartRows(title ?? ''), expectedChart(chart, tokens, '0'), by);
      }
      assert.deepEqual(await watched.complaints(), []);
    });

    test(`requests: ${name}`, async () => {
      await open('requests', window);
      const { data } = await report('/v1/admin/active-org/usage/requests', window, `&limit=${PAGE_SIZE}`);
      assert.deepEqual(
        firstLines(await rowsOf('Requests')),
        data.map((row: Json) => expectedRequest(row, window.zone)),
      );
      const byStatus = (await report(series('organization'), window, '&group_by=status&top=6'))['data'];
      assert.deepEqual(
        await chartRows('Requests by status'),
        expectedChart(byStatus, ({ requests }) => String(requests), '0'),
      );
      const { id } = data[0];
      await open('requests', window, `&request=${id}`);
      const facts = await page.getByRole('dialog').locator('dl').first().innerText();
      const cost = data[0].cost === null ? 'none' : dollars(data[0].cost, { exact: true });
      assert.ok(facts.includes(`Cost\n${cost}`), facts);
      assert.ok(facts.includes(`When\n${moment(data[0].created_at, window.zone)}`), facts);
      // Nobody here knows its details but the ledger, which this front has not.
      await watched.complaints();
    });

    test(`routing: ${name}`, async () => {
      await open('routing', window);
      const granularity = window.buckets > 24 && window !== WHOLE ? 'hour' : 'day';
      const path = '/v1/admin/active-org/usage/analytics/routing';
      const data = await report(path, window, `&granularity=${granularity}`);
      await checkRouting(data, window);
      assert.deepEqual(await watched.complaints(), []);
    });
  }

  test('the platform by organization, and one’s own', async () => {
    await open('usage', WHOLE, '&whose=platform&by=organization');
    const { data } = await report(series('platform'), WHOLE, '&group_by=organization&top=25');
    assert.deepEqual(firstLines(await usageRows()), expectedUsage(data));
    await open('usage', WHOLE, '&whose=me');
    const own = (await report('/v1/usage/me/analytics/series', WHOLE, '&group_by=model&top=25'))['data'];
    assert.deepEqual(firstLines(await usageRows()), expectedUsage(own));
  });

  for (const screen of ['guardrails', 'platform-guardrails'])
    test(`${screen}: what was found`, async () => {
      const path = screen === 'guardrails' ? '/v1/admin/active-org/guardrails/report' : '/v1/admin/guardrails/report';
      // Of all weeks and organizations there are more than stand near a window.
      for (const window of screen === 'guardrails' ? WINDOWS : WINDOWS.slice(1)) {
        await open(screen, window);
        const { data } = await report(path, window);
        assert.ok(data.screened > 0 && data.rows.length > 1 && data.not_scanned.length > 1, window.zone);
        assert.deepEqual(await figuresOf(), [
          `Screened: ${whole(data.screened)}`,
          `Blocked: ${whole(data.blocked)}`,
          ...data.not_scanned.map(
            ({ reason, requests }: Json) => `Not scanned: ${whole(requests)} / ${spaced(reason)}`,
          ),
        ]);
        assert.deepEqual(
          await rowsOf('Found'),
          data.rows.map((row: Json) => [
            `${row['policy']} / ${row['rule']}`,
            row['entity'],
            `${row['action']} ${row['stage']}`,
            row['model'],
            row['api_key'] ?? row['api_key_id'],
            whole(row['requests']),
            whole(row['findings']),
          ]),
        );
      }
      assert.deepEqual(await watched.complaints(), []);
    });

  test('live, media and own keys: every digit of what is said now', async () => {
    for (const [screen, tables] of Object.entries(TABLES_OF_NOW)) {
      await open(screen, WHOLE);
      const stats = Object.entries(STATS_OF_NOW[screen] ?? {}).map(([name, said]) => `${name}: ${said}`);
      assert.deepEqual(await figuresOf(), stats, screen);
      for (const [caption, rows] of Object.entries(tables))
        assert.deepEqual(firstLines(await rowsOf(caption)), rows, `${screen}, ${caption}`);
    }
    await open('live', WHOLE);
    for (const [title, rows] of Object.entries(CHARTS_OF_NOW)) assert.deepEqual(await chartRows(title), rows, title);
    assert.deepEqual(await watched.complaints(), []);
  });

  /** Each with its note. */
  async function figuresOf(): Promise<string[]> {
    const all = await page
      .locator('.stat')
      .evaluateAll((stats) => stats.map((one) => [...one.children].map((part) => part.textContent ?? '')));
    return all.map(([name, ...said]) => `${name}: ${said.join(' / ')}`);
  }

  test('a chart’s CSV has the digits of the answer, and its command asks for the same', async () => {
    await open('usage', WHOLE, '&by=tag');
    const { data } = await report(series('organization'), WHOLE, '&group_by=tag&top=7');
    const coming = page.waitForEvent('download');
    await page.getByRole('button', { name: 'CSV of Spend by tag' }).click();
    const [head = '', ...lines] = readFileSync(await (await coming).path(), 'utf8')
      .trimEnd()
      .split('\r\n');
    assert.deepEqual(head.split(','), ['Day', ...data.groups.map(nameOfGroup)]);
    assert.deepEqual(
      lines.map((line) => line.split(',')),
      expectedChart(data, ({ cost }) => cost, '0').map(([, ...rest], index) => [data.buckets[index], ...rest]),
    );
    const chart = page.getByRole('figure', { name: 'Spend by tag' });
    await chart.getByRole('button', { name: 'As a command' }).click();
    const [, address = ''] = /^curl 'http:\/\/[^/]+([^']+)'/.exec(await chart.locator('pre').innerText()) ?? [];
    assert.deepEqual(((await front.json(callerOf(address), address)) as Json).data, data);
  });

  async function usageRows(): Promise<string[][]> {
    const caption = (await page.locator('caption').last().textContent()) ?? '';
    assert.match(caption, /^Usage by /);
    return (await rowsOf(caption)).map((row) => row.slice(0, 7));
  }

  async function checkRouting(data: Json, { zone }: Window): Promise<void> {
    assert.deepEqual(await statsOf(), expectedRouting(data));
    for (const [caption, rows] of Object.entries(expectedRoutingTables(data, zone))) {
      if (rows.length === 0) continue;
      const shown = (await rowsOf(caption)).map((row) => row.filter((text) => text !== ''));
      assert.deepEqual(sorted(firstLines(shown)), sorted(rows), caption);
    }
    assert.deepEqual(
      await chartRows('Confidence of the classifier'),
      data['confidence'].map(({ from, to, requests }: Json) => [String(from), String(to), whole(requests)]),
    );
    await checkRoutingCharts(data);
  }

  /** Buckets without requests are between those that have some, and are empty. */
  async function checkRoutingCharts(data: Json): Promise<void> {
    const { granularity } = data as { granularity: 'hour' | 'day' };
    const labelsOf = (points: readonly Json[]) => [...new Set(points.map(({ bucket }) => bucket as string))];
    const tiers: string[] = data['by_tier'].map(({ tier }: Json) => tier);
    const points = data['series'] as Json[];
    const shown = await chartRows('Requests by tier');
    const labels = bucketLabels(labelsOf(points), granularity);
    const expected = labelsOf(points).map((bucket, index) => [
      labels[index] ?? '',
      ...tiers.map((tier) => {
        const found = points.find((point) => point['bucket'] === bucket && point['tier'] === tier);
        return found === undefined ? '0' : whole(found['requests']);
      }),
    ]);
    const sumOf = (rows: readonly (readonly string[])[]) =>
      rows.flatMap((row) => row.slice(1)).reduce((sum, text) => sum + Number(text.replaceAll(',', '')), 0);
    assert.equal(sumOf(shown), totalOf(points));
    for (const row of expected) {
      const offsetless = row[0]?.replace(/ ([+-]\d\d:\d\d|Z)$/, '');
      const found = shown.filter(([label]) => label?.replace(/ ([+-]\d\d:\d\d|Z)$/, '') === offsetless);
      assert.ok(
        found.some((one) => one.slice(1).join() === row.slice(1).join()),
        `${row.join(' ')} is not in ${found.map((one) => one.join(' ')).join(' | ')}`,
      );
    }
    const spend = await chartRows('Spend against the baseline');
    const money = (data['series_totals'] as Json[]).map(({ baseline_spend_usd: one, baseline_cost_usd: other }) =>
      [one, other].join(),
    );
    const drawn = spend.map((row) => row.slice(1).join());
    for (const amounts of money) assert.ok(drawn.includes(amounts), `${amounts} is not in the chart`);
  }
});

/** What guardrails found in a request, and what they did not look at: every mixture. */
function screeningOf(index: number): ScreeningReport {
  const found = (rule: string, entity: string, action: 'flag' | 'mask' | 'block') =>
    ({ policy: `policy-${index % 2}`, version: 1, rule, entity, action, count: 1 + (index % 1_000) }) as const;
  return {
    input: {
      action: index % 4 === 0 ? 'blocked' : 'flagged',
      findings: [found('mail', 'email', 'flag'), ...(index % 4 === 0 ? [found('keys', 'api_key', 'block')] : [])],
      ...(index % 5 === 0 ? { not_scanned: ['too_large', 'timeout'] } : {}),
    },
    ...(index % 7 === 0 ? { output: { action: 'masked', findings: [found('names', 'person', 'mask')] } } : {}),
  };
}

/** A request of the organization with the most, by a person of a team. */
function busiest(all: readonly RequestFact[]): RequestFact {
  const counts = new Map<string, number>();
  for (const { organizationId: id } of all) counts.set(id, (counts.get(id) ?? 0) + 1);
  const [most] = [...counts].toSorted(([, one], [, other]) => other - one)[0] ?? [];
  const found = all.find((fact) => fact.organizationId === most && fact.userId !== null);
  return found ?? assert.fail('nobody asked anything');
}

function totalOf(points: readonly Json[]): number {
  return points.reduce((sum, { requests }) => sum + requests, 0);
}
