// Stops calling what fails repeatedly: a classifier, or an address of providers. Failures are counted by organization,
// because the texts of one organization may cause them. A pause for all is decided as for cooldowns (pauses.ts).
//
//   closed --failures enough--> paused --its time is over--> probed --failure--> paused, twice as long
//     ^                                                         |
//     +-------------------------- an answer --------------------+

import { BoundedMap } from '../../platform/bounded-map.ts';
import { Pauses, type PresentPause } from './pauses.ts';

export interface BreakerRules {
  /** After this many failures, with no answer between, the organization stops calling for a while. */
  readonly failuresMax: number;
  /** The first of these failures is not older than this. A probe that lasts longer counts as none. */
  readonly withinMs: number;
  /** The first pause; each one after a probe that failed is twice as long, up to `pauseMsMax`. */
  readonly pauseMs: number;
  readonly pauseMsMax: number;
}

/** How many rows (pairs of organization and subject) are kept. */
const ROWS_MAX = 10_000;

interface Row {
  /** When the last failures were, oldest first, up to `failuresMax`. */
  failedAtMs: number[];
  /** Pauses in a row; 0: closed. */
  pauses: number;
  pausedUntilMs: number;
  /** A request is testing whether the subject answers again. */
  probing: boolean;
}

export class Breaker {
  private readonly rules: BreakerRules;
  /** By subject and organization; the oldest row is first. */
  private readonly rows = new BoundedMap<string, Row>(ROWS_MAX);
  private readonly pauses: Pauses;

  constructor(rules: BreakerRules) {
    this.rules = rules;
    this.pauses = new Pauses(rules.pauseMsMax);
  }

  /** How long the organization still must not call; 0: it may. */
  leftMs(subject: string, organizationId: string, nowMs: number): number {
    return this.pauses.size === 0 ? 0 : this.pauses.leftMs(subject, organizationId, nowMs);
  }

  /**
   * Whether to call now. After a pause one request of the organization may call, and its result decides for the others.
   * So an admitted caller must report the result (`answered` or `failed`).
   */
  admits(subject: string, organizationId: string, nowMs: number): boolean {
    if (this.leftMs(subject, organizationId, nowMs) > 0) return false;
    const row = this.rows.get(keyOf(subject, organizationId));
    if (row === undefined || row.pauses === 0) return true;
    if (row.probing) return false;
    row.probing = true;
    return true;
  }

  /** The subject answered. A refusal of one request (4xx) counts as an answer. */
  answered(subject: string, organizationId: string): void {
    if (this.rows.size === 0) return;
    if (this.rows.delete(keyOf(subject, organizationId))) this.pauses.end(subject, organizationId);
  }

  /** The subject could not be reached, did not answer in time, or failed (5xx). */
  failed(subject: string, organizationId: string, nowMs: number): void {
    const { failuresMax, withinMs, pauseMs, pauseMsMax } = this.rules;
    const key = keyOf(subject, organizationId);
    const row = this.rows.get(key) ?? this.beginRow(key);
    row.probing = false;
    // Calls that were under way when the pause began say nothing new.
    if (nowMs < row.pausedUntilMs) return;
    if (row.pauses > 0 && nowMs - row.pausedUntilMs > withinMs) row.pauses = 0;
    row.failedAtMs.push(nowMs);
    if (row.failedAtMs.length > failuresMax) row.failedAtMs.shift();
    const [firstAtMs = nowMs] = row.failedAtMs;
    const isMany = row.failedAtMs.length === failuresMax && nowMs - firstAtMs <= withinMs;
    if (row.pauses === 0 && !isMany) return;
    const forMs = Math.min(pauseMs * 2 ** row.pauses, pauseMsMax);
    row.pauses += 1;
    row.pausedUntilMs = nowMs + forMs;
    row.failedAtMs = [];
    this.pauses.begin(subject, organizationId, forMs, nowMs);
  }

  /** The pauses that are not over. */
  list(nowMs: number): readonly PresentPause[] {
    return this.pauses.list(nowMs);
  }

  /** Called from the coarse clock: forgets pauses that are over. */
  forgetEnded(nowMs: number): void {
    this.pauses.forgetEnded(nowMs);
  }

  private beginRow(key: string): Row {
    const row = { failedAtMs: [], pauses: 0, pausedUntilMs: Number.NEGATIVE_INFINITY, probing: false };
    this.rows.set(key, row);
    return row;
  }
}

/** A line feed separates the two, because ids cannot contain one. */
function keyOf(subject: string, organizationId: string): string {
  return `${subject}\n${organizationId}`;
}
