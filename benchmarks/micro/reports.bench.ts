// Measures reports over many facts on the embedded ClickHouse: 92 days of one organization and of the platform, with
// filters; listings; how fast facts are inserted while reports run or days are sealed; how long reports take beside
// inserts, sealing and merging; and the memory of the process. `node benchmarks/micro/reports.bench.ts [millions of
// facts, 10] [directory]` takes minutes. A directory is kept, and facts that it already has are used.

import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { DEFAULT_LIMITS } from '../../jobs/shipping/shipping-limits.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { type ClickHouseReader, createClickHouse, selectRows } from '../../src/storage/clickhouse/clickhouse.ts';
import { insertFacts, type RequestFact } from '../../src/storage/clickhouse/facts.ts';
import { migrateClickHouse } from '../../src/storage/clickhouse/migrate.ts';
import { listRequests } from '../../src/storage/clickhouse/reports/list-requests.ts';
import type { ReportParams, ReportScope } from '../../src/storage/clickhouse/reports/report-params.ts';
import {
  selectRecentCorrections,
  selectRoutingConversations,
} from '../../src/storage/clickhouse/reports/routing-conversations.ts';
import { selectRoutingFacets } from '../../src/storage/clickhouse/reports/routing-facets.ts';
import { selectRoutingGroups } from '../../src/storage/clickhouse/reports/routing-groups.ts';
import { selectRejections } from '../../src/storage/clickhouse/reports/routing-rejections.ts';
import { routingReport } from '../../src/storage/clickhouse/reports/routing-report.ts';
import { selectRoutingSeries } from '../../src/storage/clickhouse/reports/routing-series.ts';
import { usageDaily, usageSummary } from '../../src/storage/clickhouse/reports/usage.ts';
import { usageSeries } from '../../src/storage/clickhouse/reports/usage-series.ts';
import { daysOf, SealedDays } from '../../src/storage/clickhouse/sealed-days.ts';
import { generateFacts } from '../../test/support/fact-generator.ts';
import { FACTS_WINDOW, fillFacts, fillPresentDay } from '../harness/fill-facts.ts';
import { median } from '../harness/median.ts';

const FACTS = Number(process.argv[2] ?? 10) * 1_000_000;
/** The months that are over. The last month of the facts is the present one, in which facts still arrive. */
const PAST_MONTHS = ['202608', '202609'];
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const ROUNDS = 3;
/** The sizes of inserts: of shipping when facts arrive now and then, and when it has a backlog. */
const INSERTED_FACTS = [1_000, DEFAULT_LIMITS.factsMax];
const INSERTING_MS = 15_000;

const WINDOW = { ...FACTS_WINDOW, granularity: 'day' as const, timeZone: 'Europe/Berlin' };
const PRESENT_DAY = {
  ...WINDOW,
  fromMs: WINDOW.untilMs,
  untilMs: WINDOW.untilMs + DAY_MS,
  granularity: 'hour',
} as const;
const organization = (index: number): ReportScope => ({
  organizationId: `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
});

function questionOf(scope: ReportScope, window: ReportParams['window'] = WINDOW): ReportParams {
  return { scope, filters: {}, window };
}

function residentMb(): number {
  return Math.round(process.memoryUsage().rss / 1e6);
}

let mostMb = 0;

async function timed(name: string, run: () => Promise<unknown>): Promise<void> {
  const taken: { readonly ms: number; readonly cpuMs: number }[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const startMs = performance.now();
    const before = process.cpuUsage();
    await run();
    const { user, system } = process.cpuUsage(before);
    taken.push({ ms: performance.now() - startMs, cpuMs: (user + system) / 1000 });
  }
  const list = (values: readonly number[]): string => values.map((value) => value.toFixed(0).padStart(6)).join('');
  // On a busy machine the CPU says more than the clock.
  console.log(
    `${name.padEnd(62)} ${list(taken.map(({ ms }) => ms))} ms, CPU ${list(taken.map(({ cpuMs }) => cpuMs))} ms`,
  );
}

async function timedOnce<Result>(name: string, run: () => Promise<Result>): Promise<Result> {
  const startMs = performance.now();
  const before = process.cpuUsage();
  const result = await run();
  const { user, system } = process.cpuUsage(before);
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
  console.log(`${name}: ${seconds} s, CPU ${((user + system) / 1e6).toFixed(1)} s`);
  return result;
}

/** Inserts facts for a while, beside other work that is repeated, and prints how many. */
async function insertBeside(
  insert: (facts: readonly RequestFact[]) => Promise<void>,
  atOnce: number,
  other: (() => Promise<unknown>) | null,
): Promise<string> {
  const untilMs = performance.now() + INSERTING_MS;
  const isOver = (): boolean => performance.now() >= untilMs;
  // The facts are of a day that is not sealed, as they arrive.
  const facts = generateFacts(7, atOnce).facts.map((fact, index) => ({
    ...fact,
    admittedAtMs: PRESENT_DAY.untilMs + index,
  }));
  let inserted = 0;
  let longestMs = 0;
  const inserting = (async () => {
    while (!isOver()) {
      const startMs = performance.now();
      await insert(facts);
      longestMs = Math.max(longestMs, performance.now() - startMs);
      inserted += facts.length;
    }
  })();
  const taken = other === null ? 'nothing else' : await timesWhile(other, () => !isOver());
  await inserting;
  return (
    `${Math.round(inserted / (INSERTING_MS / 1000))} rows/s inserted, longest insert ${longestMs.toFixed(0)} ms; ` +
    `beside: ${taken}`
  );
}

/** Repeats the work; returns how often it ran and how long each run took. */
async function timesWhile(work: () => Promise<unknown>, goesOn: () => boolean): Promise<string> {
  const takenMs: number[] = [];
  while (goesOn()) {
    const startMs = performance.now();
    await work();
    takenMs.push(performance.now() - startMs);
  }
  if (takenMs.length === 0) return 'not once';
  const longestMs = Math.max(...takenMs);
  return `${takenMs.length} times, median ${median(takenMs).toFixed(0)} ms, longest ${longestMs.toFixed(0)} ms`;
}

/** Runs reports one after the other while the other work runs once. */
async function reportsBeside(work: () => Promise<unknown>, report: () => Promise<unknown>): Promise<string> {
  let isOver = false;
  const working = work().finally(() => {
    isOver = true;
  });
  const taken = await timesWhile(report, () => !isOver);
  await working;
  return taken;
}

const kept = process.argv[3];
const isFilled = kept !== undefined && existsSync(kept);
const directory = kept ?? mkdtempSync(join(tmpdir(), 'tollgate-bench-clickhouse-'));
const client = await createClickHouse({ directory }, systemClock);
/** Reports have two connections of their own (jobs/clickhouse-link.ts). */
const sealing = await createClickHouse({ directory }, systemClock);
const beside = await createClickHouse({ directory }, systemClock);
const reading: ClickHouseReader = { query: (statement) => sealing.query(statement), secondConnection: beside };
/** Filters, from one that nearly all requests pass to one that few pass. */
const FILTERS = {
  'successes alone': { status: 'success' },
  'errors alone': { status: 'error' },
  'one provider of four': { provider: 'provider-1' },
  'a tag of a ninth': { tag: 'ci' },
  'one key of twenty': { apiKeyId: '00000000-0000-4000-b000-000000000003' },
  'the most used model': { model: 'maker/model-0' },
} as const satisfies Record<string, ReportParams['filters']>;
/** The statements of a routing report. */
const PARTS = {
  series: (question) => selectRoutingSeries(client, question),
  groups: (question) => selectRoutingGroups(client, question, 'every value'),
  facets: (question) => selectRoutingFacets(client, question),
  conversations: (question) => selectRoutingConversations(client, question, 'positions'),
  rejections: (question) => selectRejections(client, question),
  'recent corrections': (question) => selectRecentCorrections(client, question),
} as const satisfies Record<string, (question: ReportParams) => Promise<unknown>>;
const watch = setInterval(() => {
  mostMb = Math.max(mostMb, residentMb());
}, 100);
try {
  await migrateClickHouse(client, join(import.meta.dirname, '../../deploy/clickhouse'));
  const startMs = performance.now();
  if (!isFilled) {
    await fillFacts(client, FACTS);
    const tookS = ((performance.now() - startMs) / 1000).toFixed(0);
    console.log(`${FACTS} facts made in ${tookS} s; ${residentMb()} MB resident`);
    // Waits until background merges have settled.
    await sleep(20_000);
  }
  // Merges past months as the engine does by itself once a month has had no new fact for a day
  // (deploy/clickhouse/0004).
  for (const month of PAST_MONTHS)
    await client.command({ query: `OPTIMIZE TABLE request_facts PARTITION ID '${month}' FINAL` });
  const parts = await selectRows(
    client,
    `SELECT partition, count() AS parts, sum(rows) AS rows, formatReadableSize(sum(bytes_on_disk)) AS size
      FROM system.parts
     WHERE table = 'request_facts' AND active GROUP BY partition ORDER BY partition`,
  );
  console.log(JSON.stringify(parts));
  const [present] = await selectRows<{ is_filled: number }>(
    client,
    `SELECT count() > 0 AS is_filled FROM request_facts WHERE admitted_at >= fromUnixTimestamp64Milli({from_ms:Int64})`,
    { from_ms: PRESENT_DAY.fromMs },
  );
  if (present?.is_filled !== 1) await fillPresentDay(client, FACTS / ((WINDOW.untilMs - WINDOW.fromMs) / DAY_MS));
  const [largest] = await selectRows<{ facts: string }>(
    client,
    `SELECT count() AS facts FROM request_facts WHERE organization_id = '${organization(0).organizationId}'`,
  );
  console.log(`largest organization: ${largest?.facts} facts; ${residentMb()} MB resident`);
  const sealedDays = await SealedDays.load({ facts: client, reports: sealing });
  const sealed = await timedOnce('sealing the days', () => sealedDays.sealBefore(FACTS_WINDOW.untilMs));
  console.log(`${sealed} days sealed`);
  await timedOnce('sealing 23 hours of the present day', () => sealedDays.sealBefore(PRESENT_DAY.untilMs - HOUR_MS));
  const { compared, damaged } = await timedOnce('comparing all of it with the facts', () =>
    sealedDays.compare(() => true),
  );
  console.log(`${compared} days compared, ${damaged.length} differ`);
  const ofCells = (question: ReportParams, recentCorrections: boolean): Promise<unknown> =>
    sealedDays.reading(question, (params) => routingReport(reading, { ...params, recentCorrections }));
  mostMb = 0;
  const lastDay = { ...WINDOW, fromMs: WINDOW.untilMs - DAY_MS, granularity: 'hour' } as const;
  const threeDays = { ...WINDOW, fromMs: WINDOW.untilMs - 3 * DAY_MS, granularity: 'hour' } as const;
  // The window of an administrator in Berlin: its two hours at one end and most of a day at the other are not whole
  // days in UTC.
  const shifted = { ...WINDOW, fromMs: WINDOW.fromMs - 2 * HOUR_MS, untilMs: WINDOW.untilMs - 2 * HOUR_MS };
  const platform: ReportScope = { organizationId: null };
  for (const [name, question, recentCorrections] of [
    ['92 days, largest organization', questionOf(organization(0)), true],
    ['92 days, middling organization', questionOf(organization(30)), true],
    ['3 days by hour, largest organization', questionOf(organization(0), threeDays), false],
    ['92 days, platform', questionOf(platform), false],
    ['92 days of Berlin, platform', questionOf(platform, shifted), false],
    ['a day by hour, largest organization', questionOf(organization(0), lastDay), false],
    ['a day by hour, platform', questionOf(platform, lastDay), false],
    ['the present day by hour, largest organization', questionOf(organization(0), PRESENT_DAY), false],
    ['the present day by hour, platform', questionOf(platform, PRESENT_DAY), false],
  ] as const) {
    await timed(`routing report, ${name}`, () => ofCells(question, recentCorrections));
    await timed(`  the same of the facts alone`, () => routingReport(client, { ...question, recentCorrections }));
  }
  for (const [part, select] of Object.entries(PARTS)) {
    await timed(`of it: ${part}`, () => select(questionOf({ organizationId: null })));
  }
  await timed('usage summary, 30 days, largest organization', () =>
    usageSummary(client, questionOf(organization(0), { ...WINDOW, fromMs: WINDOW.untilMs - 30 * DAY_MS })),
  );
  await timed('usage by day, 92 days, largest organization', () => usageDaily(client, questionOf(organization(0))));
  const ofModels = { groupBy: 'model', top: 10 } as const;
  await timed('series by model, 92 days, largest organization', () =>
    usageSeries(client, { ...questionOf(organization(0)), ...ofModels }),
  );
  await timed('series by model, 92 days, platform', () =>
    usageSeries(client, { ...questionOf({ organizationId: null }), ...ofModels }),
  );
  await timed('series by model, a day by hour, platform', () =>
    usageSeries(client, { ...questionOf({ organizationId: null }, lastDay), ...ofModels }),
  );
  await timed('listing, first page of 50, largest organization', () =>
    listRequests(client, { ...questionOf(organization(0)), limit: 50, cursor: null }),
  );
  await timed('listing, first page of 50, platform', () =>
    listRequests(client, { ...questionOf({ organizationId: null }), limit: 50, cursor: null }),
  );
  await timed('listing, tag that few have, page of 50, small organization', () =>
    listRequests(client, {
      ...questionOf(organization(250)),
      filters: { tag: 'ci', status: 'error' },
      limit: 50,
      cursor: null,
    }),
  );
  for (const [name, filters] of Object.entries(FILTERS)) {
    for (const [whose, scope] of [
      ['largest organization', organization(0)],
      ['platform', platform],
    ] as const) {
      await timed(`routing report, 92 days, ${name}, ${whose}`, () =>
        ofCells({ ...questionOf(scope), filters }, whose !== 'platform'),
      );
    }
  }
  console.log(`${residentMb()} MB resident now, ${mostMb} MB at most while reading`);
  const insert = (facts: readonly RequestFact[]): Promise<void> =>
    sealedDays.whileOpen(daysOf(facts), () => insertFacts(client, facts, `bench-${randomUUID()}`));
  const report = (): Promise<unknown> => ofCells(questionOf(organization(0)), true);
  const firstDay = FACTS_WINDOW.fromMs / DAY_MS;
  const august = new Map(Array.from({ length: 31 }, (_, index) => [firstDay + index, (firstDay + index) * DAY_MS]));
  const sealAugust = async (): Promise<void> => {
    await sealedDays.whileOpen(august, async () => {});
    await sealedDays.sealBefore(FACTS_WINDOW.untilMs);
  };
  for (const atOnce of INSERTED_FACTS) {
    console.log(`${atOnce} at once: ${await insertBeside(insert, atOnce, null)}`);
    console.log(
      `${atOnce} at once, reports of the largest organization: ${await insertBeside(insert, atOnce, report)}`,
    );
  }
  const besideSealing = await insertBeside(insert, DEFAULT_LIMITS.factsMax, sealAugust);
  console.log(`${DEFAULT_LIMITS.factsMax} at once, sealing a month: ${besideSealing}`);
  // The window leaves out the days that are being sealed.
  const others = questionOf(organization(0), { ...WINDOW, fromMs: WINDOW.untilMs - 61 * DAY_MS });
  const ofOthers = (): Promise<unknown> => ofCells(others, true);
  await timed('routing report, 61 days, largest organization, alone', ofOthers);
  console.log(`the same beside sealing a month: ${await reportsBeside(sealAugust, ofOthers)}`);
  const merging = (): Promise<unknown> =>
    client.command({ query: `OPTIMIZE TABLE request_facts PARTITION ID '${PAST_MONTHS[0]}' FINAL` });
  console.log(`the same beside merging a month: ${await reportsBeside(merging, ofOthers)}`);
  console.log(`${residentMb()} MB resident now, ${mostMb} MB at most`);
} finally {
  clearInterval(watch);
  await beside.close();
  await sealing.close();
  await client.close();
  if (kept === undefined) rmSync(directory, { recursive: true, force: true });
}
