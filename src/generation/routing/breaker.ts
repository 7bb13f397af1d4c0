// Stops asking a classifier that fails repeatedly, since every turn would wait for its deadline. Failures are counted
// by organization, because the texts of one organization may cause them. A pause for all is decided as for cooldowns
// (pauses.ts).

import { BoundedMap } from '../../platform/bounded-map.ts';
import { Pauses } from '../admission/pauses.ts';

/** After this many failures in a row, the organization stops asking for a while. */
const FAILURES_MAX = 5;
const PAUSE_MS = 10_000;
/** The number of rows (organization and classifier) that are kept. */
const ROWS_MAX = 10_000;

interface Row {
  failures: number;
  /** A request is testing whether the classifier answers again. */
  probing: boolean;
}

export class Breaker {
  /** Failures in a row, by classifier and organization; the oldest row is first. */
  private readonly rows = new BoundedMap<string, Row>(ROWS_MAX);
  private readonly pauses = new Pauses(PAUSE_MS);

  /**
   * Whether to ask now. After a pause one request of the organization may ask, and its result decides for the others.
   */
  admits(name: string, organizationId: string, nowMs: number): boolean {
    if (this.pauses.leftMs(name, organizationId, nowMs) > 0) return false;
    const row = this.rows.get(keyOf(name, organizationId));
    if (row === undefined || row.failures < FAILURES_MAX) return true;
    if (row.probing) return false;
    row.probing = true;
    return true;
  }

  /** The classifier answered. A refusal of one text (4xx) counts as an answer. */
  answered(name: string, organizationId: string): void {
    this.rows.delete(keyOf(name, organizationId));
  }

  /** The classifier could not be reached, did not answer in time, or failed (5xx). */
  failed(name: string, organizationId: string, nowMs: number): void {
    const key = keyOf(name, organizationId);
    const row = this.rows.get(key) ?? this.beginRow(key);
    row.failures += 1;
    row.probing = false;
    if (row.failures >= FAILURES_MAX) this.pauses.begin(name, organizationId, PAUSE_MS, nowMs);
  }

  private beginRow(key: string): Row {
    const row = { failures: 0, probing: false };
    this.rows.set(key, row);
    return row;
  }
}

/** A line feed separates the two, because ids cannot contain one. */
function keyOf(name: string, organizationId: string): string {
  return `${name}\n${organizationId}`;
}
