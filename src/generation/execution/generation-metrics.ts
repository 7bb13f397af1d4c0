// Owns the data plane's counters. Labels are resolved to cells once, so that a request only adds to fields; they come
// from closed sets.

import type { ApiName } from '../../domain/models/apis.ts';
import type { Outcome } from '../../domain/settlement/outcome.ts';
import type { Settlement } from '../../domain/settlement/settle.ts';
import type { CounterCell, HistogramCell, MetricsRegistry } from '../../platform/metrics.ts';
import type { ObservedEnd } from './observed-end.ts';

const STATUS_CLASSES = ['none', '1xx', '2xx', '3xx', '4xx', '5xx', 'left'] as const;
const LEFT = STATUS_CLASSES.indexOf('left');
/** Outcomes that are failures even when the client left. */
const FAILURES: ReadonlySet<Outcome> = new Set([
  'connect_failed',
  'provider_failed',
  'no_reply',
  'cut_mid_stream',
  'process_killed',
]);
const DURATION_BUCKETS_SECONDS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];
/** The gateway's own part takes far less than a provider's, unless it waits for a lease or a classifier. */
const OVERHEAD_BUCKETS_SECONDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5];
const PICO_USD_PER_USD = 1e12;

interface ApiCells {
  readonly byStatusClass: readonly CounterCell[];
  readonly duration: HistogramCell;
  readonly firstByte: HistogramCell;
  readonly overhead: HistogramCell;
}

export class GenerationMetrics {
  private readonly cells = new Map<ApiName, ApiCells>();
  private readonly providers = new Map<string, HistogramCell>();
  private readonly requests;
  private readonly duration;
  private readonly firstByte;
  private readonly overhead;
  private readonly provider;
  private readonly inputTokens: CounterCell;
  private readonly outputTokens: CounterCell;
  private readonly counted: CounterCell;
  private readonly distrusted: CounterCell;
  private readonly unpriced: CounterCell;
  private readonly suspended: CounterCell;
  private readonly charged: CounterCell;
  private readonly ownKeys;
  private readonly ownKeyFailures;

  constructor(registry: MetricsRegistry) {
    this.requests = registry.counter(
      'tollgate_requests_total',
      'Admitted executions that ended, by API and status class; left: the client left before it was answered',
      ['api', 'status_class'],
    );
    this.duration = registry.histogram(
      'tollgate_request_duration_seconds',
      'From the request received to its end',
      DURATION_BUCKETS_SECONDS,
      ['api'],
    );
    this.firstByte = registry.histogram(
      'tollgate_ttft_seconds',
      'From the request received to the first reply byte',
      DURATION_BUCKETS_SECONDS,
      ['api'],
    );
    this.overhead = registry.histogram(
      'tollgate_overhead_seconds',
      'From the complete request received to the first call of a provider',
      OVERHEAD_BUCKETS_SECONDS,
      ['api'],
    );
    this.provider = registry.histogram(
      'tollgate_provider_latency_seconds',
      'From the call of a provider with a key of this service to the first byte of its reply',
      DURATION_BUCKETS_SECONDS,
      ['provider'],
    );
    const tokens = registry.counter('tollgate_tokens_total', 'Tokens metered', ['direction']);
    this.inputTokens = tokens.labels('input');
    this.outputTokens = tokens.labels('output');
    this.counted = registry
      .counter('tollgate_usage_counted_total', 'Executions whose usage was counted by the gateway, not reported')
      .labels();
    this.distrusted = registry
      .counter('tollgate_usage_distrusted_total', 'Executions whose reported usage was set aside: an alarm')
      .labels();
    this.unpriced = registry
      .counter(
        'tollgate_usage_unpriced_total',
        'Billed executions whose reply names something without a price, charged as held: an alarm',
      )
      .labels();
    this.suspended = registry
      .counter(
        'tollgate_suspense_usd_total',
        'US dollars beyond the hold, and charges that no price accounts for, posted to suspense: an alarm',
      )
      .labels();
    this.charged = registry.counter('tollgate_charged_usd_total', 'Charges recorded, in US dollars').labels();
    this.ownKeys = registry.counter(
      'tollgate_own_key_requests_total',
      'Admitted executions that ended on a provider key of the organization, by status class',
      ['status_class'],
    );
    // Every series begins at 0: TollgateErrorBudget subtracts them, and a rate does not see the first value of a
    // series.
    for (const statusClass of STATUS_CLASSES) this.ownKeys.labels(statusClass);
    this.ownKeyFailures = registry.counter(
      'tollgate_own_key_failures_total',
      'Provider keys of organizations that could not serve an execution, by reason',
      ['reason'],
    );
  }

  private cellsOf(api: ApiName): ApiCells {
    let cells = this.cells.get(api);
    if (cells === undefined) {
      cells = {
        byStatusClass: STATUS_CLASSES.map((statusClass) => this.requests.labels(api, statusClass)),
        duration: this.duration.labels(api),
        firstByte: this.firstByte.labels(api),
        overhead: this.overhead.labels(api),
      };
      this.cells.set(api, cells);
    }
    return cells;
  }

  observeOverhead(api: ApiName, overheadMs: number): void {
    this.cellsOf(api).overhead.observe(overheadMs / 1_000);
  }

  observeProvider(provider: string, latencyMs: number): void {
    let cell = this.providers.get(provider);
    if (cell === undefined) {
      cell = this.provider.labels(provider);
      this.providers.set(provider, cell);
    }
    cell.observe(latencyMs / 1_000);
  }

  countUnpriced(): void {
    this.unpriced.increment();
  }

  /** `failures`: of own keys that were tried before the deployment that served. */
  endedWithKeys(isOwn: boolean, seen: ObservedEnd, failures: readonly { readonly reason: string }[]): void {
    const statusClass = STATUS_CLASSES[classOf(seen)];
    if (isOwn && statusClass !== undefined) this.ownKeys.labels(statusClass).increment();
    for (const { reason } of failures) this.ownKeyFailures.labels(reason).increment();
  }

  ended(api: ApiName, seen: ObservedEnd, settlement: Settlement, latencyMs: number, ttftMs: number | null): void {
    const cells = this.cellsOf(api);
    cells.byStatusClass[classOf(seen)]?.increment();
    cells.duration.observe(latencyMs / 1_000);
    if (ttftMs !== null) cells.firstByte.observe(ttftMs / 1_000);
    const { usage, source, distrust } = seen.measured;
    this.inputTokens.increment(usage?.inputTokens ?? 0);
    this.outputTokens.increment(usage?.outputTokens ?? 0);
    if (source === 'counted') this.counted.increment();
    if (distrust !== null) this.distrusted.increment();
    // Rounded, for people and alarms; the ledger has the exact sums.
    if (settlement.suspense > 0n) this.suspended.increment(Number(settlement.suspense) / PICO_USD_PER_USD);
    if (settlement.charge !== null) this.charged.increment(Number(settlement.charge) / PICO_USD_PER_USD);
  }
}

/** The index in STATUS_CLASSES. A client that leaves by itself is no failure of ours. */
function classOf({ status, outcome }: ObservedEnd): number {
  if (status !== null) return Math.floor(status / 100);
  return FAILURES.has(outcome) ? 0 : LEFT;
}
