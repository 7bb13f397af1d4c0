// Measures reports over many facts on the embedded ClickHouse: a window of 92 days for one organization and for the
// platform, listings, how fast facts are inserted while reports run, and the memory of the process. `node
// benchmarks/micro/reports.bench.ts [millions of facts, 10] [directory]`; takes minutes. A directory is kept, and one
// that has facts already is asked as it is.

import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { DEFAULT_LIMITS } from '../../jobs/shipping/shipping-limits.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { createClickHouse, selectRows } from '../../src/storage/clickhouse/clickhouse.ts';
import { insertFacts, type RequestFact } from '../../src/storage/clickhouse/facts.ts';
import { migrateClickHouse } from '../../src/storage/clickhouse/migrate.ts';
import { listRequests } from '../../src/storage/clickhouse/reports/list-requests.ts';
import type { ReportParams, ReportScope } from '../../src/storage/clickhouse/reports/report-params.ts';
import { selectRoutingConversations } from '../../src/storage/clickhouse/reports/routing-conversations.ts';
import { selectRoutingFacets } from '../../src/storage/clickhouse/reports/routing-facets.ts';
import { selectRoutingGroups } from '../../src/storage/clickhouse/reports/routing-groups.ts';
import { selectRejections } from '../../src/storage/clickhouse/reports/routing-rejections.ts';
import { routingReport } from '../../src/storage/clickhouse/reports/routing-report.ts';
import { selectRoutingSeries } from '../../src/storage/clickhouse/reports/routing-series.ts';
import { usageDaily, usageSummary } from '../../src/storage/clickhouse/reports/usage.ts';
import { usageSeries } from '../../src/storage/clickhouse/reports/usage-series.ts';
import { daysOf, SealedDays } from '../../src/storage/clickhouse/sealed-days.ts';
import { generateFacts } from '../../test/support/fact-generator.ts';
import { FACTS_WINDOW, fillFacts } from '../harness/fill-facts.ts';

const FACTS = Number(process.argv[2] ?? 10) * 1_000_000;
/** The last month of the facts is the present one, to which facts still come. */
const PAST_MONTHS = ['202608', '202609'];
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const ROUNDS = 3;
/** As shipping inserts when facts come now and then, and when it has a backlog. */
const INSERTED_FACTS = [1_000, DEFAULT_LIMITS.factsMax];
const INSERTING_MS = 15_000;

const WINDOW = { ...FACTS_WINDOW, granularity: 'day' as const, timeZone: 'Europe/Berlin' };
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

/** Reports one after the other while facts are inserted: how many of them, and how often the event loop was held. */
async function insertBeside(
  insert: (facts: readonly RequestFact[]) => Promise<void>,
  atOnce: number,
  report: (() => Promise<unknown>) | null,
): Promise<string> {
  const untilMs = performance.now() + INSERTING_MS;
  const isOver = (): boolean => performance.now() >= untilMs;
  // Of the present day, as they come, whose facts reports read as they are.
  const facts = generateFacts(7, atOnce).facts.map((fact, index) => ({
    ...fact,
    admittedAtMs: FACTS_WINDOW.untilMs + index,
  }));
  let inserted = 0;
  let reports = 0;
  let longestMs = 0;
  const inserting = (async () => {
    while (!isOver()) {
      const startMs = performance.now();
      await insert(facts);
      longestMs = Math.max(longestMs, performance.now() - startMs);
      inserted += facts.length;
    }
  })();
  while (report !== null && !isOver()) {
    await report();
    reports++;
  }
  await inserting;
  return (
    `${Math.round(inserted / (INSERTING_MS / 1000))} rows/s inserted, longest ` +
    `insert ${longestMs.toFixed(0)} ms, ${reports} reports`
  );
}

const kept = process.argv[3];
const isFilled = kept !== undefined && existsSync(kept);
const directory = kept ?? mkdtempSync(join(tmpdir(), 'tollgate-bench-clickhouse-'));
const client = await createClickHouse({ directory }, systemClock);
/** Reports have a connection of their own (jobs/clickhouse-link.ts). */
const reading = await createClickHouse({ directory }, systemClock);
/** The statements of a routing report. */
const PARTS = {
  series: (question) => selectRoutingSeries(client, question),
  groups: (question) => selectRoutingGroups(client, question, 'every value'),
  facets: (question) => selectRoutingFacets(client, question),
  conversations: (question) => selectRoutingConversations(client, question),
  rejections: (question) => selectRejections(client, question),
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
    // Background merges go on for a while.
    await sleep(20_000);
  }
  // What the engine does itself once no fact has come to a month for a day (deploy/clickhouse/0004).
  for (const month of PAST_MONTHS)
    await client.command({ query: `OPTIMIZE TABLE request_facts PARTITION ID '${month}' FINAL` });
  const parts = await selectRows(
    client,
    `SELECT partition, count() AS parts, sum(rows) AS rows, formatReadableSize(sum(bytes_on_disk)) AS size
      FROM system.parts
     WHERE table = 'request_facts' AND active GROUP BY partition ORDER BY partition`,
  );
  console.log(JSON.stringify(parts));
  const [largest] = await selectRows<{ facts: string }>(
    client,
    `SELECT count() AS facts FROM request_facts WHERE organization_id = '${organization(0).organizationId}'`,
  );
  console.log(`largest organization: ${largest?.facts} facts; ${residentMb()} MB resident`);
  const sealedDays = await SealedDays.load({ facts: client, reports: reading });
  const sealStartMs = performance.now();
  const sealStart = process.cpuUsage();
  const sealed = await sealedDays.sealBefore(FACTS_WINDOW.untilMs);
  const sealing = process.cpuUsage(sealStart);
  console.log(
    `${sealed} days sealed in ${((performance.now() - sealStartMs) / 1000).toFixed(1)} s, ` +
      `CPU ${((sealing.user + sealing.system) / 1e6).toFixed(1)} s`,
  );
  const ofCells = (question: ReportParams, recentCorrections: boolean): Promise<unknown> =>
    sealedDays.reading(question, (params) => routingReport(client, { ...params, recentCorrections }));
  mostMb = 0;
  const lastDay = { ...WINDOW, fromMs: WINDOW.untilMs - DAY_MS, granularity: 'hour' } as const;
  const threeDays = { ...WINDOW, fromMs: WINDOW.untilMs - 3 * DAY_MS, granularity: 'hour' } as const;
  // As an administrator in Berlin asks: two hours at one end, and most of a day at the other, are in no whole day.
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
  console.log(`${residentMb()} MB resident now, ${mostMb} MB at most while reading`);
  const insert = (facts: readonly RequestFact[]): Promise<void> =>
    sealedDays.whileOpen(daysOf(facts), () => insertFacts(client, facts, `bench-${randomUUID()}`));
  for (const atOnce of INSERTED_FACTS) {
    console.log(`${atOnce} at once, alone: ${await insertBeside(insert, atOnce, null)}`);
    const beside = await insertBeside(insert, atOnce, () =>
      sealedDays.reading(questionOf(organization(0)), (params) =>
        routingReport(reading, { ...params, recentCorrections: false }),
      ),
    );
    console.log(`${atOnce} at once, beside reports of the largest organization: ${beside}`);
  }
  console.log(`${residentMb()} MB resident now, ${mostMb} MB at most`);
} finally {
  clearInterval(watch);
  await reading.close();
  await client.close();
  if (kept === undefined) rmSync(directory, { recursive: true, force: true });
}
