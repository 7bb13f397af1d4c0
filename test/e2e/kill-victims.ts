// Who is killed in a kill run, when and how: drawn from a seed before the run begins, so that a run can be repeated.

import { seededRandom } from '../support/byte-splits.ts';
import type { Tollgate } from '../support/gateway.ts';

export const VICTIMS = ['gateway', 'jobs', 'postgres'] as const;
export type Victim = (typeof VICTIMS)[number];

export interface PlannedKill {
  readonly victim: Victim;
  /** Once so many requests were served, and then a moment more. */
  readonly afterRequests: number;
  readonly delayMs: number;
  /** Chooses among several victims, or ways to kill one. */
  readonly choice: number;
}

const WEIGHTS: Readonly<Record<Victim, number>> = { gateway: 6, jobs: 2, postgres: 2 };
const DELAY_MS_MAX = 300;
/** So that what the last kill left behind meets load as well. */
const LAST_KILL_SHARE = 0.97;

export function planKills(options: {
  seed: number;
  requests: number;
  kills: number;
  victims: readonly Victim[];
}): readonly PlannedKill[] {
  const random = seededRandom(options.seed ^ 0x5eed);
  const bag = options.victims.flatMap((victim) => Array.from({ length: WEIGHTS[victim] }, () => victim));
  const kills = Array.from({ length: options.kills }, () => ({
    victim: bag[Math.floor(random() * bag.length)] ?? 'gateway',
    afterRequests: Math.floor(random() * LAST_KILL_SHARE * options.requests),
    delayMs: random() * DELAY_MS_MAX,
    choice: random(),
  }));
  return kills.sort((one, other) => one.afterRequests - other.afterRequests);
}

/** Which process, and how; null while none of them runs. */
export function findVictim(
  tollgate: Tollgate,
  { victim, choice }: PlannedKill,
): { pid: number; signal: NodeJS.Signals; how: string } | null {
  if (victim === 'gateway') {
    const pids = tollgate.gatewayPids();
    const pid = pids[Math.floor(choice * pids.length)];
    return pid === undefined ? null : { pid, signal: 'SIGKILL', how: 'kill -9' };
  }
  if (victim === 'jobs') {
    const pid = tollgate.jobsPid();
    return pid === 0 ? null : { pid, signal: 'SIGKILL', how: 'kill -9' };
  }
  const { postmaster, owner } = tollgate.postgresPids();
  if (postmaster === 0 || owner === 0) return null;
  // SIGQUIT is what `pg_ctl stop -m immediate` sends.
  if (choice < 0.6) return { pid: postmaster, signal: 'SIGQUIT', how: 'immediate stop' };
  return choice < 0.85
    ? { pid: postmaster, signal: 'SIGKILL', how: 'kill -9' }
    : { pid: owner, signal: 'SIGKILL', how: 'kill -9 of its owner' };
}
