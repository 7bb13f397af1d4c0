// The providers that refuse the service's key: counted, logged from time to time, and shown to the operator until some
// time after the last refusal.

import type { Provider } from '../../domain/models/provider.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import type { Counter, MetricsRegistry } from '../../platform/metrics.ts';

/** A provider is logged at most once in this time, because every request may be refused. */
const LOG_EVERY_MS = 60_000;
/** How long after its last refusal a provider is shown to the operator. */
const STATE_MS = 300_000;

interface RefusingProvider {
  readonly providerId: string;
  status: number;
  refusedAtMs: number;
  loggedAtMs: number;
}

export interface RefusingProvidersParts {
  readonly metrics: MetricsRegistry;
  readonly log: Log;
  readonly clock: Clock;
}

export class RefusingProviders {
  private readonly parts: RefusingProvidersParts;
  private readonly refusals: Counter<readonly ['provider', 'status']>;
  private readonly byProvider = new Map<string, RefusingProvider>();

  constructor(parts: RefusingProvidersParts) {
    this.parts = parts;
    this.refusals = parts.metrics.counter(
      'tollgate_provider_key_refusals_total',
      'Calls that a provider refused because of the key of the service; above zero is an alarm.',
      ['provider', 'status'],
    );
  }

  /** Neither the key nor the provider's answer is kept or logged. */
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

  /** One line for each provider that refuses the key. */
  list(): readonly string[] {
    const nowMs = this.parts.clock.monotonicMs();
    return [...this.byProvider.values()]
      .filter(({ refusedAtMs }) => nowMs - refusedAtMs < STATE_MS)
      .map(({ providerId, status }) => `provider ${providerId}: key_refused (${status})`);
  }
}
