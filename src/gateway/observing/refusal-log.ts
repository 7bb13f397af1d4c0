// Logs why requests are refused for a reason of this service: the failure of a store, and each kind of refusal. At most
// one line a second for each, which says how many more there were.

import type { RefusalKind } from '../../domain/refusals/refusal.ts';
import { REFUSAL_RULES } from '../../domain/refusals/refusal-rules.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import { StoreAway } from '../../platform/store-away.ts';

/** What a gateway asks Postgres for on behalf of a request. */
export type AskedStore = 'identity' | 'leases' | 'saved_responses' | 'own_keys' | 'control_plane';

const INTERVAL_MS = 1_000;
/**
 * These are logged elsewhere, since they are about a provider, a store or a fault, or they are part of a wanted end.
 */
const LOGGED_ELSEWHERE: ReadonlySet<RefusalKind> = new Set<RefusalKind>([
  'upstream_unreachable',
  'upstream_timeout',
  'provider_unavailable',
  'byok_key_unavailable',
  'internal_error',
  'store_unavailable',
  'draining',
]);

export class RefusalLog {
  private readonly log: Log;
  private readonly clock: Clock;
  private readonly lines = new Map<string, { atMs: number; more: number }>();

  constructor(log: Log, clock: Clock) {
    this.log = log;
    this.clock = clock;
  }

  storeFailed(store: AskedStore, fault: unknown): void {
    const more = this.nextLine(store);
    if (more !== null) this.log.warn({ err: fault, store, more }, 'a store could not be asked');
  }

  /**
   * A fault has ended a request. Faults because Postgres is away share one line a second; any other fault is logged
   * each time.
   */
  requestFailed(fault: unknown, request: { readonly method: string; readonly path: string }): void {
    if (fault instanceof StoreAway) this.storeFailed('control_plane', fault);
    else this.log.error({ err: fault, ...request }, 'fault while serving a request');
  }

  /** `notReady`: what keeps this process from admitting requests. */
  refused(kind: RefusalKind, notReady: () => readonly string[]): void {
    if (REFUSAL_RULES[kind].status < 500 || LOGGED_ELSEWHERE.has(kind)) return;
    const more = this.nextLine(kind);
    if (more === null) return;
    this.log.warn({ code: kind, notReady: notReady(), more }, 'a request was refused for a reason of this service');
  }

  /** How many lines about this were left out since the last one; null: leave this one out. */
  private nextLine(about: string): number | null {
    const nowMs = this.clock.monotonicMs();
    const line = this.lines.get(about);
    if (line !== undefined && nowMs - line.atMs < INTERVAL_MS) {
      line.more += 1;
      return null;
    }
    this.lines.set(about, { atMs: nowMs, more: 0 });
    return line?.more ?? 0;
  }
}
