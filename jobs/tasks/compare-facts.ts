// Job: compares the facts in ClickHouse with the ledger in Postgres, hour by hour, and inserts missing or different
// facts from the ledger.
//
// The counts of executions, the counts of pending ones and the charges are compared for each hour. Only an hour that
// differs is read execution by execution, a minute at a time. A fact without a ledger row cannot be repaired by an
// insert: the hour stays different, which is an alarm.

import { HOUR_MS, MINUTE_MS } from '../../src/platform/durations.ts';
import {
  countFactsPerHour,
  type ExecutionHour,
  type FactWindow,
  factOf,
  readFactStates,
} from '../../src/storage/clickhouse/facts.ts';
import {
  countGenerationsPerHour,
  findFirstAdmission,
  readEndedExecutions,
} from '../../src/storage/postgres/ledger/generation-facts.ts';
import type { JobContext, JobResult } from '../scheduling/job.ts';

/** An execution that ended later than this may not have reached ClickHouse yet. */
const SETTLING_MS = 60_000;

export interface Comparison {
  /** How many hours back, by admission. */
  readonly hours: number;
  readonly settlingMs?: number;
}

export async function compareFacts(
  context: JobContext,
  { hours, settlingMs = SETTLING_MS }: Comparison,
): Promise<JobResult> {
  const nowMs = context.clock.nowMs();
  const firstHourMs = Math.floor(nowMs / HOUR_MS) * HOUR_MS - hours * HOUR_MS;
  const window = { fromMs: firstHourMs, untilMs: nowMs + HOUR_MS, endedBeforeMs: nowMs - settlingMs };
  const differing = await findDifferingHours(context, window);
  let repaired = 0;
  for (const hourMs of differing)
    repaired += await repairHour(context, { ...window, fromMs: hourMs, untilMs: hourMs + HOUR_MS });
  const remaining = differing.length === 0 ? [] : await findDifferingHours(context, window);
  if (differing.length > 0) {
    context.log.warn(
      { hours: differing.map(isoHour), repaired, stillDiffering: remaining.map(isoHour) },
      'facts differed from the ledger',
    );
  }
  return {
    differing: differing.map(isoHour),
    repaired,
    stillDiffering: remaining.map(isoHour),
    drift: remaining.length,
  };
}

/** Compares all hours of the ledger: for a ClickHouse that has just become the home of the facts. */
export async function rebuildFacts(context: JobContext): Promise<JobResult> {
  const first = await findFirstAdmission(context.postgres);
  if (first === null) return {};
  const hours = Math.ceil((context.clock.nowMs() - first.getTime()) / HOUR_MS);
  return compareFacts(context, { hours, settlingMs: 0 });
}

async function findDifferingHours({ postgres, clickhouse }: JobContext, window: FactWindow): Promise<number[]> {
  const [ledger, facts] = await Promise.all([
    countGenerationsPerHour(postgres, window),
    countFactsPerHour(clickhouse(), window),
  ]);
  const ofLedger = new Map(ledger.map((hour) => [hour.hourMs, hour]));
  const ofFacts = new Map(facts.map((hour) => [hour.hourMs, hour]));
  const hours = new Set([...ofLedger.keys(), ...ofFacts.keys()]);
  return [...hours].filter((hourMs) => !sameHour(ofLedger.get(hourMs), ofFacts.get(hourMs))).sort((a, b) => a - b);
}

function sameHour(one: ExecutionHour | undefined, other: ExecutionHour | undefined): boolean {
  return one?.executions === other?.executions && one?.pending === other?.pending && one?.charged === other?.charged;
}

async function repairHour(context: JobContext, hour: FactWindow): Promise<number> {
  let repaired = 0;
  for (let fromMs = hour.fromMs; fromMs < hour.untilMs; fromMs += MINUTE_MS) {
    repaired += await repairMinute(context, { ...hour, fromMs, untilMs: fromMs + MINUTE_MS });
  }
  return repaired;
}

async function repairMinute({ postgres, clickhouse, facts: sink }: JobContext, minute: FactWindow): Promise<number> {
  const [records, facts] = await Promise.all([
    readEndedExecutions(postgres, minute),
    readFactStates(clickhouse(), minute),
  ]);
  const wrong = records.filter((record) => {
    const fact = facts.get(record.id);
    const charge = record.charge === null ? null : BigInt(record.charge);
    return fact === undefined || fact.billingStatus !== record.billingStatus || fact.charge !== charge;
  });
  const [first] = wrong;
  // The name includes the number of facts found, because another difference of the same executions is another insert.
  if (first !== undefined)
    await sink.insert(wrong.map(factOf), `repair:${first.id}:${wrong.length}:${facts.size}:${minute.endedBeforeMs}`);
  return wrong.length;
}

function isoHour(hourMs: number): string {
  return new Date(hourMs).toISOString();
}
