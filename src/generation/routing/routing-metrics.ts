// Owns the counters of auto routing (labels come from closed sets only).

import type { RouteReason } from '../../domain/routing/decide-route.ts';
import type { MetricsRegistry } from '../../platform/metrics.ts';
import type { ClassifierMetrics, ClassifierResult } from './classifier.ts';

const CLASSIFIER_BUCKETS_SECONDS = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.5, 2, 5];

export class RoutingMetrics implements ClassifierMetrics {
  private readonly routes;
  private readonly results;
  private readonly seconds;
  private readonly away;

  constructor(registry: MetricsRegistry) {
    this.routes = registry.counter(
      'tollgate_routes_total',
      'Auto-routed requests, by reason and whether the turn had its route already',
      ['reason', 'cached'],
    );
    this.results = registry.counter(
      'tollgate_classifier_calls_total',
      'Classifications by routing classifiers, by result',
      ['result'],
    );
    this.seconds = registry
      .histogram('tollgate_classifier_seconds', 'Time of a classifier call', CLASSIFIER_BUCKETS_SECONDS)
      .labels();
    this.away = registry
      .counter(
        'tollgate_routing_store_faults_total',
        'Turns that were routed without the remembered turns, since the store could not be asked',
      )
      .labels();
  }

  routed(reason: RouteReason, cached: boolean): void {
    this.routes.labels(reason, String(cached)).increment();
  }

  classified(result: ClassifierResult, latencyMs: number | null): void {
    this.results.labels(result).increment();
    if (latencyMs !== null) this.seconds.observe(latencyMs / 1_000);
  }

  storeFault(): void {
    this.away.increment();
  }
}
