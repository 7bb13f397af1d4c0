// Prints on the terminal what an installation waits for, if its start or its stop takes longer than a second: which
// processes, for which store, and how many open requests.

import type { MetricsSnapshot } from '../platform/metrics.ts';
import type { ProcessRole, ProcessSlot } from './process-slot.ts';

export type Stage = 'preparing' | 'starting' | 'stopping';

const FIRST_MS = 1_000;
const AGAIN_MS = 5_000;
/** The time limit for a gateway to say how many requests it has open. */
const ANSWER_LIMIT_MS = 500;

/** What a process that is not ready yet waits for. */
const STARTS: Readonly<Record<ProcessRole, string>> = {
  postgres: 'the embedded Postgres',
  'simulated-provider': 'the simulated provider',
  jobs: 'jobs (Postgres and ClickHouse)',
  gateway: '(Postgres)',
};

const ENDS: Readonly<Record<Exclude<ProcessRole, 'gateway'>, string>> = {
  jobs: 'jobs to post what was recorded and to close ClickHouse',
  'simulated-provider': 'the simulated provider to end',
  postgres: 'the embedded Postgres to end',
};

/** Begins to print, and returns a function that ends it. A text is not printed twice in a row. */
export function tellWaiting(print: (text: string) => void, describe: () => Promise<string | null>): () => void {
  let isOver = false;
  let last: string | null = null;
  const tell = async (): Promise<void> => {
    const text = await describe();
    if (!isOver && text !== null && text !== last) print(text);
    last = text;
    if (!isOver) timer = setTimeout(() => void tell(), AGAIN_MS).unref();
  };
  let timer = setTimeout(() => void tell(), FIRST_MS).unref();
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}

/** null: there is nothing to name. */
export async function describeWaiting(
  stage: Stage,
  slots: readonly ProcessSlot[],
  drainLimitMs: number,
): Promise<string | null> {
  if (stage === 'stopping') return describeStop(slots, drainLimitMs);
  const starting = slots.filter((slot) => !slot.isReady);
  if (starting.length > 0) return `Starting: waiting for ${starting.map(nameStarting).join(', ')}.`;
  return stage === 'preparing' ? 'Starting: waiting for Postgres (migrations and configuration).' : null;
}

function nameStarting({ role, name }: ProcessSlot): string {
  return role === 'gateway' ? `${name} ${STARTS.gateway}` : STARTS[role];
}

/** The roles end one after the other (supervisor.ts), so the first that still runs is named. */
async function describeStop(slots: readonly ProcessSlot[], drainLimitMs: number): Promise<string | null> {
  const running = slots.filter((slot) => slot.lives.length > 0);
  const gateways = running.filter(({ role }) => role === 'gateway');
  if (gateways.length > 0) {
    const open = await countOpenRequests(gateways);
    const requests = open === 1 ? '1 open request' : `${open} open requests`;
    const names = gateways.map(({ name }) => name).join(', ');
    const limit = `for at most ${Math.round(drainLimitMs / 1_000)} s`;
    return `Stopping: waiting for ${names} to finish ${requests}, ${limit}; a second Ctrl-C cuts what is open.`;
  }
  for (const role of ['jobs', 'simulated-provider', 'postgres'] as const)
    if (running.some((slot) => slot.role === role)) return `Stopping: waiting for ${ENDS[role]}.`;
  return null;
}

async function countOpenRequests(gateways: readonly ProcessSlot[]): Promise<number> {
  const lives = gateways.flatMap((slot) => slot.lives);
  const snapshots = await Promise.all(lives.map((life) => life.metrics(ANSWER_LIMIT_MS)));
  return snapshots.reduce((sum, snapshot) => sum + openRequestsOf(snapshot ?? []), 0);
}

function openRequestsOf(snapshot: MetricsSnapshot): number {
  const family = snapshot.find(({ name }) => name === 'tollgate_inflight');
  return family?.series.reduce((sum, { values }) => sum + (values[0] ?? 0), 0) ?? 0;
}
