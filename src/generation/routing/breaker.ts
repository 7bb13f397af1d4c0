// Stops asking a classifier that fails time after time: every turn would wait for its deadline to learn the same again.
// Failures are counted by organization, since one organization's texts may be all that fails; who is paused for them is
// decided as it is for cooldowns (pauses.ts).

import { Pauses } from '../admission/pauses.ts';

/** So many failures in a row, and the organization asks nobody for a while. */
const FAILURES_MAX = 5;
const PAUSE_MS = 10_000;
/** Organizations and classifiers with failures that are kept at once. */
const ROWS_MAX = 10_000;

interface Row {
  failures: number;
  /** Somebody is finding out whether it answers again. */
  probing: boolean;
}

export class Breaker {
  /** Failures in a row, by classifier and organization; the one that began first is first. */
  private readonly rows = new Map<string, Row>();
  private readonly pauses = new Pauses(PAUSE_MS);

  /**
   * Whether to ask now. After a pause one caller of the organization may, and tells by its result whether the others
   * may too.
   */
  admits(name: string, organizationId: string, nowMs: number): boolean {
    if (this.pauses.leftMs(name, organizationId, nowMs) > 0) return false;
    const row = this.rows.get(keyOf(name, organizationId));
    if (row === undefined || row.failures < FAILURES_MAX) return true;
    if (row.probing) return false;
    row.probing = true;
    return true;
  }

  /** It answered, whatever it said: also a refusal of the one text (4xx) shows that nobody waits for it in vain. */
  answered(name: string, organizationId: string): void {
    this.rows.delete(keyOf(name, organizationId));
  }

  /** It could not be reached, did not answer in time, or failed (5xx). */
  failed(name: string, organizationId: string, nowMs: number): void {
    const key = keyOf(name, organizationId);
    const row = this.rows.get(key) ?? this.beginRow(key);
    row.failures += 1;
    row.probing = false;
    if (row.failures >= FAILURES_MAX) this.pauses.begin(name, organizationId, PAUSE_MS, nowMs);
  }

  private beginRow(key: string): Row {
    const oldest = this.rows.size >= ROWS_MAX ? this.rows.keys().next().value : undefined;
    if (oldest !== undefined) this.rows.delete(oldest);
    const row = { failures: 0, probing: false };
    this.rows.set(key, row);
    return row;
  }
}

/** Ids may not contain a line feed. */
function keyOf(name: string, organizationId: string): string {
  return `${name}\n${organizationId}`;
}
