// Measures reports over many facts on the embedded ClickHouse: a window of 92 days for one organization and for the platform, listings, how fast facts
// are inserted while reports run, and the memory of the process. `node benchmarks/micro/reports.bench.ts [millions of facts, 10]`; takes minutes.

import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../../src/platform/clock.ts';
import { type ClickHouseClient, createClickHouse, selectRows } from '../../src/storage/clickhouse/clickhouse.ts';
import { insertFacts } from '../../src/storage/clickhouse/facts.ts';
import { migrateClickHouse } from '../../src/storage/clickhouse/migrate.ts';
import { listRequests } from '../../src/storage/clickhouse/reports/list-requests.ts';
import type { ReportQuestion, ReportScope } from '../../src/storage/clickhouse/reports/report-question.ts';
import { routingReport } from '../../src/storage/clickhouse/reports/routing-report.ts';
import { usageDaily, usageSummary } from '../../src/storage/clickhouse/reports/usage.ts';
import { generateFacts } from '../../test/support/fact-generator.ts';

const FACTS = Number(process.argv[2] ?? 10) * 1_000_000;
const BATCH = 100_000;
const ORGANIZATIONS = 300;
const DAYS = 92;
const DAY_MS = 86_400_000;
const FROM_MS = Date.UTC(2026, 7, 1);
const ROUNDS = 3;
/** As shipping inserts when it has a backlog. */
const INSERTED_FACTS = 1_000;
const INSERTING_MS = 15_000;

/** In order of time, as facts arrive. A third of them is of one organization, the rest ever smaller; a few are corrected versions. */
const INSERT_BATCH = `
  INSERT INTO request_facts (id, version, organization_id, team_id, user_id, api_key_id, wallet_id, api, requested_model, model, provider, provider_model, price_version,
    streamed, tags, admitted_at, ended_at, latency_ms, ttft_ms, request_bytes, response_bytes, outcome, status, error_code, tokens_prompt, tokens_cached, tokens_completion,
    usage_source, billing_status, authorized_amount, rated_cost, total_cost, suspense, routed, route_tier, route_tier_rank, route_classified_tier, route_reason,
    route_confidence, route_cached, route_task, route_picked_by, route_escalated, route_correction, route_correction_probability, route_previous_model,
    route_previous_tier, route_sticky, route_baseline_model, route_baseline_cost, route_policy, route_policy_version, route_session, route_turn,
    route_rejected_models, route_rejected_tiers, route_rejected_reasons, classifier_model, classifier_input_tokens, classifier_cost, classifier_latency_ms)
  WITH
    pow(randCanonical(1), 3.5) AS skew,
    toUInt32(floor(skew * ${ORGANIZATIONS})) AS organization,
    toUInt32(floor(pow(randCanonical(2), 2) * 30)) AS at_model,
    randCanonical(3) AS luck,
    randCanonical(4) < 0.7 AS is_routed,
    intDiv(number, 4) AS turn,
    number % 4 != 0 AS is_repeated,
    ['light', 'medium', 'strong'] AS tiers,
    toUInt64(20 + pow(randCanonical(5), 4) * 60000) AS prompt,
    toUInt64(pow(randCanonical(6), 2) * 3000) AS completion,
    toDecimal128(prompt + completion * 4, 12) * toDecimal128(0.000001, 12) AS cost
  SELECT generateUUIDv4(), 2, toUUID(concat('00000000-0000-4000-8000-', leftPad(toString(organization), 12, '0'))),
    if(organization % 3 = 0, NULL, toUUID(concat('00000000-0000-4000-9000-', leftPad(toString(number % 7), 12, '0')))),
    toUUID(concat('00000000-0000-4000-a000-', leftPad(toString(number % 50), 12, '0'))), toUUID(concat('00000000-0000-4000-b000-', leftPad(toString(number % 20), 12, '0'))),
    if(organization % 5 = 0, NULL, toUUID('00000000-0000-4000-c000-000000000000')), 'chat_completions', 'service/auto', concat('maker/model-', toString(at_model)),
    concat('provider-', toString(at_model % 4)), 'x', '1', number % 2, if(number % 9 = 0, ['ci'], []),
    fromUnixTimestamp64Milli(toInt64({from_ms:Int64} + (number - {first:UInt64}) * {step_us:UInt64} / 1000), 'UTC') AS at, at, toUInt32(80 + pow(luck, 3) * 20000), toUInt32(40 + luck * 900),
    800, 3000, if(luck < 0.03, 'provider_failed', 'completed'), if(luck < 0.03, 500, 200), NULL, prompt, NULL, completion, 'reported', 'final', 1, cost, cost, 0,
    is_routed, if(is_routed, tiers[at_model % 3 + 1], ''), if(is_routed, at_model % 3, NULL), if(is_routed, tiers[turn % 3 + 1], ''),
    if(is_routed, ['classified', 'classified', 'classified', 'low_confidence_escalated', 'classifier_failed', 'correction_escalated'][turn % 6 + 1], ''),
    if(is_routed, randCanonical(7), NULL), is_routed AND is_repeated, if(is_routed, ['code', 'prose', '', 'analysis'][turn % 4 + 1], ''),
    if(is_routed, ['', '', 'strength', 'native_api'][at_model % 4 + 1], ''), is_routed AND turn % 6 = 3, is_routed AND turn % 12 = 5,
    if(is_routed AND turn % 3 = 2, randCanonical(8), NULL), if(is_routed AND turn % 3 != 0, concat('maker/model-', toString(turn % 9)), ''),
    if(is_routed AND turn % 3 != 0, tiers[turn % 3 + 1], ''), is_routed AND turn % 10 = 1, 'maker/model-0', if(is_routed AND luck > 0.1, cost * 3, NULL), 'default',
    toUInt32(1 + (number - {first:UInt64}) * 0 + {version:UInt32}), if(is_routed, hex(sipHash64(turn, 1)), ''), if(is_routed, hex(sipHash64(turn, 2)), ''),
    if(is_routed AND luck > 0.95, ['maker/model-9'], []), if(is_routed AND luck > 0.95, ['strong'], []), if(is_routed AND luck > 0.95, ['unavailable'], []),
    if(is_routed AND NOT is_repeated, 'sim/judge', ''), if(is_routed AND NOT is_repeated, 500, NULL), if(is_routed AND NOT is_repeated, toDecimal128('0.00005', 12), NULL),
    if(is_routed AND NOT is_repeated, toUInt32(30 + luck * 300), NULL)
  FROM numbers({first:UInt64}, {count:UInt64})
  SETTINGS max_insert_threads = 1`;

async function fill(client: ClickHouseClient): Promise<void> {
  const stepUs = Math.floor((DAYS * DAY_MS * 1000) / FACTS);
  for (let first = 0; first < FACTS; first += BATCH) {
    await client.command({
      query: INSERT_BATCH,
      query_params: { first, count: BATCH, from_ms: FROM_MS + (first * stepUs) / 1000, step_us: stepUs, version: Math.floor((first / FACTS) * 5) },
    });
  }
}

const WINDOW = { fromMs: FROM_MS, untilMs: FROM_MS + DAYS * DAY_MS, granularity: 'day' as const, timeZone: 'Europe/Berlin' };
const organization = (index: number): ReportScope => ({ organizationId: `00000000-0000-4000-8000-${String(index).padStart(12, '0')}` });

function questionOf(scope: ReportScope, window: ReportQuestion['window'] = WINDOW): ReportQuestion {
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
  console.log(`${name.padEnd(62)} ${list(taken.map(({ ms }) => ms))} ms, CPU ${list(taken.map(({ cpuMs }) => cpuMs))} ms`);
}

/** Reports one after the other while facts are inserted: how many of them, and how often the event loop was held. */
async function insertBeside(client: ClickHouseClient, report: (() => Promise<unknown>) | null): Promise<string> {
  const untilMs = performance.now() + INSERTING_MS;
  const isOver = (): boolean => performance.now() >= untilMs;
  const { facts } = generateFacts(7, INSERTED_FACTS);
  let inserted = 0;
  let reports = 0;
  let longestMs = 0;
  const inserting = (async () => {
    while (!isOver()) {
      const startMs = performance.now();
      await insertFacts(client, facts, `bench-${randomUUID()}`);
      longestMs = Math.max(longestMs, performance.now() - startMs);
      inserted += facts.length;
    }
  })();
  while (report !== null && !isOver()) {
    await report();
    reports++;
  }
  await inserting;
  return `${Math.round(inserted / (INSERTING_MS / 1000))} rows/s inserted, longest insert ${longestMs.toFixed(0)} ms, ${reports} reports`;
}

const directory = mkdtempSync(join(tmpdir(), 'tollgate-bench-clickhouse-'));
const client = await createClickHouse({ directory }, systemClock);
const watch = setInterval(() => {
  mostMb = Math.max(mostMb, residentMb());
}, 100);
try {
  await migrateClickHouse(client, join(import.meta.dirname, '../../deploy/clickhouse'));
  const startMs = performance.now();
  await fill(client);
  console.log(`${FACTS} facts made in ${((performance.now() - startMs) / 1000).toFixed(0)} s; ${residentMb()} MB resident`);
  // Background merges go on for a while.
  await sleep(20_000);
  const parts = await selectRows(
    client,
    `SELECT partition, count() AS parts, sum(rows) AS rows, formatReadableSize(sum(bytes_on_disk)) AS size FROM system.parts
     WHERE table = 'request_facts' AND active GROUP BY partition ORDER BY partition`,
  );
  console.log(JSON.stringify(parts));
  const [largest] = await selectRows<{ facts: string }>(
    client,
    `SELECT count() AS facts FROM request_facts WHERE organization_id = '${organization(0).organizationId}'`,
  );
  console.log(`largest organization: ${largest?.facts} facts; ${residentMb()} MB resident`);
  mostMb = 0;
  const noCorrections = { recentCorrections: false };
  await timed('routing report, 92 days, largest organization', () => routingReport(client, { ...questionOf(organization(0)), recentCorrections: true }));
  await timed('routing report, 92 days, middling organization', () => routingReport(client, { ...questionOf(organization(30)), recentCorrections: true }));
  await timed('routing report, 3 days by hour, largest organization', () =>
    routingReport(client, { ...questionOf(organization(0), { ...WINDOW, fromMs: WINDOW.untilMs - 3 * DAY_MS, granularity: 'hour' }), ...noCorrections }),
  );
  await timed('routing report, 92 days, platform', () => routingReport(client, { ...questionOf({ organizationId: null }), ...noCorrections }));
  await timed('usage summary, 30 days, largest organization', () =>
    usageSummary(client, questionOf(organization(0), { ...WINDOW, fromMs: WINDOW.untilMs - 30 * DAY_MS })),
  );
  await timed('usage by day, 92 days, largest organization', () => usageDaily(client, questionOf(organization(0))));
  await timed('listing, first page of 50, largest organization', () => listRequests(client, { ...questionOf(organization(0)), limit: 50, cursor: null }));
  await timed('listing, first page of 50, platform', () => listRequests(client, { ...questionOf({ organizationId: null }), limit: 50, cursor: null }));
  await timed('listing, tag that few have, page of 50, small organization', () =>
    listRequests(client, { ...questionOf(organization(250)), filters: { tag: 'ci', status: 'error' }, limit: 50, cursor: null }),
  );
  console.log(`${residentMb()} MB resident now, ${mostMb} MB at most while reading`);
  console.log(`alone: ${await insertBeside(client, null)}`);
  console.log(
    `beside reports of the largest organization: ${await insertBeside(client, () => routingReport(client, { ...questionOf(organization(0)), ...noCorrections }))}`,
  );
  console.log(`${residentMb()} MB resident now, ${mostMb} MB at most`);
} finally {
  clearInterval(watch);
  await client.close();
  rmSync(directory, { recursive: true, force: true });
}
