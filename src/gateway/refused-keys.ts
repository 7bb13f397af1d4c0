// The providers that do not accept the service's key: counted, logged now and then, and named to the operator until
// some time after the last refusal.

import type { Provider } from '../domain/models/catalog.ts';
import type { Clock } from '../platform/clock.ts';
import type { Log } from '../platform/log.ts';
import type { Counter, MetricsRegistry } from '../platform/metrics.ts';

/** A provider is logged once in this time: every request to it may meet the same refusal. */
const LOG_EVERY_MS = 60_000;
/** So long after the last one a refusal is the provider's state. */
const STATE_MS = 300_000;

interface RefusedKey {
  readonly providerId: string;
  status: number;
  refusedAtMs: number;
  loggedAtMs: number;
}

export interface RefusedKeysParts {
  readonly metrics: MetricsRegistry;
  readonly log: Log;
  readonly clock: Clock;
}

export class RefusedKeys {
  private readonly parts: RefusedKeysParts;
  private readonly refusals: Counter<readonly ['provider', 'status']>;
  private readonly byProvider = new Map<string, RefusedKey>();

  constructor(parts: RefusedKeysParts) {
    this.parts = parts;
    this.refusals = parts.metrics.counter(
      'tollgate_provider_key_refusals_total',
      'Calls that a provider refused because of the key of the service; above zero is an alarm.',
      ['provider', 'status'],
    );
  }

  /** Neither the key nor what the provider said of it is kept or logged. */
  add({ id: providerId }: Provider, status: number): void {
    const nowMs = this.parts.clock.monotonicMs();
    this.refusals.labels(providerId, String(status)).increment();
    const known = this.byProvider.get(providerId) ?? {
      providerId,
      status,
      refusedAtMs: nowMs,
      loggedAtMs: Number.NEGATIVE_INFINITY,
    };
    known.status = status;
    known.refusedAtMs = nowMs;
    if (nowMs - known.loggedAtMs >= LOG_EVERY_MS) {
      known.loggedAtMs = nowMs;
      this.parts.log.error(
        { provider: providerId, status },
        'a provider does not accept the key that the service has for it',
      );
    }
    this.byProvider.set(providerId, known);
  }

  /** A line for each provider in this state. */
  list(): readonly string[] {
    const nowMs = this.parts.clock.monotonicMs();
    return [...this.byProvider.values()]
      .filter(({ refusedAtMs }) => nowMs - refusedAtMs < STATE_MS)
      .map(({ providerId, status }) => `provider ${providerId}: key_refused (${status})`);
  }
}
