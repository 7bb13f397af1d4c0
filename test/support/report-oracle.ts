// Computes what reports must say from the facts in plain TypeScript, by the text of spec 2.4 and 2.5. It shares no
// definition with the SQL, only the shapes of the reports. Money is bigint pico-dollars.

import type { Dimension } from '../../src/domain/reports/owners.ts';
import type { RequestFact } from '../../src/storage/clickhouse/facts.ts';
import type { Metrics } from '../../src/storage/clickhouse/reports/metrics.ts';
import type { ReportFilters, ReportParams, ReportScope } from '../../src/storage/clickhouse/reports/report-params.ts';
import type { RequestEntry } from '../../src/storage/clickhouse/reports/request-entry.ts';
import type { RoutingParams, RoutingReport } from '../../src/storage/clickhouse/reports/routing-report.ts';
import type { UsageDay, UsageGroup, UsageParams, UsageSummary } from '../../src/storage/clickhouse/reports/usage.ts';

/** Returns each execution once, in its highest version. */
export function latestVersions(facts: readonly RequestFact[]): RequestFact[] {
  const latest = new Map<string, RequestFact>();
  for (const fact of facts) {
    const known = latest.get(fact.id);
    if (known === undefined || fact.version > known.version) latest.set(fact.id, fact);
  }
  return [...latest.values()];
}

/** Whether totals count the fact. */
export function isCounted({ outcome }: RequestFact): boolean {
  return outcome !== 'refused';
}

/** Only listings show refused requests; no total counts them, except the totals of classifiers. */
export function matching(
  facts: readonly RequestFact[],
  { scope, filters, window, showsRefused }: ReportParams,
): RequestFact[] {
  return facts.filter((fact) => {
    const isInWindow = fact.admittedAtMs >= window.fromMs && fact.admittedAtMs < window.untilMs;
    return (
      isInWindow && (showsRefused === true || isCounted(fact)) && inScope(fact, scope) && passesFilters(fact, filters)
    );
  });
}

function inScope(fact: RequestFact, scope: ReportScope): boolean {
  if (scope.organizationId !== null && fact.organizationId !== scope.organizationId) return false;
  if (scope.teamId !== undefined && fact.teamId !== scope.teamId) return false;
  return scope.userId === undefined || fact.userId === scope.userId;
}

function passesFilters(fact: RequestFact, filters: ReportFilters): boolean {
  const route = fact.route ?? null;
  const wanted: [unknown, unknown][] = [
    [filters.model, fact.model],
    [filters.provider, fact.provider],
    [filters.apiKeyId, fact.apiKeyId],
    [filters.userId, fact.userId],
    [filters.teamId, fact.teamId],
    [filters.organizationId, fact.organizationId],
    [filters.routed, route !== null],
    [filters.routeReason, route?.reason],
    [filters.credentialSource, fact.credentialId != null ? 'own' : fact.outcome === 'refused' ? null : 'service'],
    [filters.credentialId, fact.credentialId],
  ];
  if (wanted.some(([filter, value]) => filter !== undefined && filter !== value)) return false;
  if (filters.routeTier !== undefined && (route === null || (route.tier ?? '') !== filters.routeTier)) return false;
  if (filters.tag !== undefined && !fact.tags.includes(filters.tag)) return false;
  return filters.status === undefined || hasStatus(fact, filters.status);
}

function hasStatus(fact: RequestFact, status: string): boolean {
  if (status === 'error') return isError(fact);
  if (status === 'success') return !isError(fact);
  return status.endsWith('xx')
    ? String(fact.status ?? '').startsWith(status.slice(0, 1))
    : String(fact.status) === status;
}

const NO_ERRORS: ReadonlySet<string> = new Set([
  'completed',
  'completed_without_usage',
  'aborted_before_first_byte',
  'aborted_mid_stream',
  'usage_then_cut',
]);

/** True: the client got a refusal, or the provider or we failed the request. A client that left is no error. */
export function isError(fact: RequestFact): boolean {
  return (fact.status !== null && fact.status >= 400) || !NO_ERRORS.has(fact.outcome);
}

/**
 * The charge of a billed organization. For one that is not billed: the price of its usage, without the part in
 * suspense.
 */
export function spendOf(fact: RequestFact): bigint | null {
  const { walletId, charge, ratedCost, suspense } = fact;
  if (walletId !== null) return charge === null ? null : BigInt(charge);
  return ratedCost === null ? null : BigInt(ratedCost) - BigInt(suspense);
}

/** True: the payer is known and pays nothing. */
function isFree({ walletId, billingStatus }: RequestFact): boolean {
  return walletId !== null && billingStatus === 'not_billed';
}

export function sumOf<Item>(items: readonly Item[], amountOf: (item: Item) => bigint | null): bigint {
  let sum = 0n;
  for (const item of items) sum += amountOf(item) ?? 0n;
  return sum;
}

export function countWhere<Item>(items: readonly Item[], isCounted: (item: Item) => boolean): number {
  return items.filter(isCounted).length;
}

function usd(pico: bigint): string {
  const sign = pico < 0n ? '-' : '';
  const digits = (pico < 0n ? -pico : pico).toString().padStart(13, '0');
  return sign + `${digits.slice(0, -12)}.${digits.slice(-12)}`.replace(/\.?0+$/, '');
}

function over(part: number, whole: number): number | null {
  return whole === 0 ? null : part / whole;
}

/** The smallest value that at least this share of the values does not exceed. */
export function quantile(values: readonly (number | null)[], level: number): number | null {
  const known = values.filter((value) => value !== null).sort((a, b) => a - b);
  return known[Math.ceil(known.length * level) - 1] ?? null;
}

/**
 * The tokens of a fact. The answer of a token count is shown in its row and is part of no sum, because nobody used
 * those tokens.
 */
function tokensOf({ api, usage }: RequestFact): { readonly prompt: number; readonly completion: number } {
  return api === 'count_tokens'
    ? { prompt: 0, completion: 0 }
    : { prompt: usage?.inputTokens ?? 0, completion: usage?.outputTokens ?? 0 };
}

function roundedQuotient(dividend: bigint, divisor: bigint): bigint {
  const [quotient, remainder] = [dividend / divisor, dividend % divisor];
  return remainder * 2n >= divisor ? quotient + 1n : quotient;
}

function metricsOf(facts: readonly RequestFact[], whole: number): Metrics {
  const requests = facts.length;
  const comparable = facts.filter((fact) => fact.baselineCost != null && spendOf(fact) !== null);
  const spend = sumOf(facts, spendOf);
  const baselineSpend = sumOf(comparable, spendOf);
  const baselineCost = sumOf(comparable, (fact) => BigInt(fact.baselineCost ?? 0));
  const errors = countWhere(facts, isError);
  const truncated = countWhere(facts, (fact) => fact.truncated === true);
  const confidences = facts.flatMap(({ route }) => route?.confidence ?? []);
  const isFallback = (fact: RequestFact): boolean =>
    ['classifier_failed', 'no_request_text', 'classifier_skipped'].includes(fact.route?.reason ?? '');
  return {
    requests,
    tokens: facts.reduce((sum, fact) => sum + tokensOf(fact).prompt + tokensOf(fact).completion, 0),
    spend_usd: usd(spend),
    baseline_requests: comparable.length,
    baseline_spend_usd: usd(baselineSpend),
    baseline_cost_usd: usd(baselineCost),
    errors,
    truncated,
    cached: countWhere(facts, ({ route }) => route?.cached === true),
    escalated: countWhere(facts, ({ route }) => route?.escalated === true),
    fallbacks: countWhere(facts, isFallback),
    task_applied: countWhere(facts, ({ route }) => route?.picked_by === 'strength'),
    p50_latency_ms: quantile(facts.map(latencyOf), 0.5),
    p95_latency_ms: quantile(facts.map(latencyOf), 0.95),
    p50_ttft_ms: quantile(
      facts.map(({ ttftMs }) => ttftMs),
      0.5,
    ),
    avg_confidence: over(
      confidences.reduce((sum, confidence) => sum + confidence, 0),
      confidences.length,
    ),
    share: over(requests, whole),
    cost_per_request: requests === 0 ? null : usd(roundedQuotient(spend, BigInt(requests))),
    savings_usd: usd(baselineCost - baselineSpend),
    savings_pct: baselineCost === 0n ? null : 100 * (1 - Number(baselineSpend) / Number(baselineCost)),
    error_rate: over(errors, requests),
    truncation_rate: over(truncated, requests),
  };
}

/** Facts have whole milliseconds. */
export function latencyOf({ latencyMs }: RequestFact): number | null {
  return latencyMs === null ? null : Math.round(latencyMs);
}

export function grouped<Item>(items: readonly Item[], nameOf: (item: Item) => string): [string, Item[]][] {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const name = nameOf(item);
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [item]);
    else group.push(item);
  }
  return [...groups];
}

/** Most requests first, then by name. */
function largestFirst<Item>(groups: [string, Item[]][]): [string, Item[]][] {
  return groups.sort(([nameA, a], [nameB, b]) => b.length - a.length || (nameA < nameB ? -1 : 1));
}

export function expectedReport(facts: readonly RequestFact[], params: RoutingParams): RoutingReport {
  const all = matching(facts, params);
  const routed = all.filter(({ route }) => route != null);
  // A request that was refused after its route was decided has still called a classifier and used a policy.
  const decided = matching(facts, { ...params, showsRefused: true }).filter(({ route }) => route != null);
  const whole = routed.length;
  const models = largestFirst(grouped(routed, ({ model }) => model));
  const tasks = largestFirst(grouped(routed, ({ route }) => route?.task ?? ''));
  const conversations = conversationsOf(routed);
  return {
    totals: {
      ...metricsOf(routed, whole),
      all_requests: all.length,
      routed_share: over(whole, all.length),
      classifier: {
        ...classifierOf(decided),
        fallback_rate: over(metricsOf(routed, whole).fallbacks, whole),
        cached_share: over(
          countWhere(routed, ({ route }) => route?.cached === true),
          whole,
        ),
        escalated_share: over(
          countWhere(routed, ({ route }) => route?.escalated === true),
          whole,
        ),
      },
      sessions: conversations.sessions,
    },
    series: seriesOf(routed, params),
    series_totals: seriesTotalsOf(routed, params),
    by_tier: grouped(routed, ({ route }) => route?.tier ?? '')
      .map(([tier, group]) => ({ tier, rank: latestRank(group), ...metricsOf(group, whole) }))
      .sort((a, b) => (a.rank ?? 999) - (b.rank ?? 999) || (a.tier < b.tier ? -1 : 1)),
    by_model: models.slice(0, 25).map(([model, group]) => ({ model, ...metricsOf(group, whole) })),
    model_remainder:
      models.length <= 25
        ? null
        : metricsOf(
            models.slice(25).flatMap(([, group]) => group),
            whole,
          ),
    by_task: tasks.map(([task, group]) => ({ task, ...metricsOf(group, whole) })),
    task_models: tasks.flatMap(([task, group]) =>
      largestFirst(grouped(group, ({ model }) => model)).map(([model, served]) => ({
        task,
        model,
        ...metricsOf(served, group.length),
      })),
    ),
    picked_by: largestFirst(grouped(routed, ({ route }) => route?.picked_by ?? '')).map(([picked_by, group]) => ({
      picked_by,
      requests: group.length,
    })),
    reasons: largestFirst(grouped(routed, ({ route }) => route?.reason ?? '')).map(([reason, group]) => ({
      reason,
      requests: group.length,
    })),
    confidence: Array.from({ length: 10 }, (_, index) => ({
      from: index / 10,
      to: (index + 1) / 10,
      requests: countWhere(routed, ({ route }) => {
        const confidence = route?.confidence;
        return confidence !== undefined && confidence >= index / 10 && (index === 9 || confidence < (index + 1) / 10);
      }),
    })),
    rejections: rejectionsOf(routed),
    classifiers: largestFirst(grouped(withCalls(decided), ({ route }) => route?.classifier?.model ?? '')).map(
      ([model, group]) => ({
        model,
        ...classifierOf(group),
      }),
    ),
    policies: policiesOf(decided),
    by_previous_tier: conversations.by_previous_tier,
    by_previous_model: conversations.by_previous_model,
    recent_corrections: params.recentCorrections ? recentCorrections(routed) : null,
  };
}

function withCalls(facts: readonly RequestFact[]): RequestFact[] {
  return facts.filter(({ route }) => route?.classifier !== undefined);
}

function classifierOf(
  facts: readonly RequestFact[],
): RoutingReport['classifiers'][number] extends infer Row ? Omit<Row, 'model'> : never {
  const calls = facts.flatMap(({ route }) => route?.classifier ?? []);
  const isUnpriced = calls.some((call) => call.input_tokens !== null && call.cost_usd === null);
  const priced = calls.filter((call) => call.cost_usd !== null);
  return {
    calls: calls.length,
    input_tokens: calls.reduce((sum, call) => sum + (call.input_tokens ?? 0), 0),
    p50_ms: quantile(
      calls.map((call) => call.latency_ms),
      0.5,
    ),
    p95_ms: quantile(
      calls.map((call) => call.latency_ms),
      0.95,
    ),
    cost_usd:
      isUnpriced || priced.length === 0
        ? null
        : usd(sumOf(priced, (call) => BigInt((call.cost_usd ?? '').replace('.', '')))),
  };
}

/** The rank of the latest request; of several at one instant, the highest. */
function latestRank(facts: readonly RequestFact[]): number | null {
  const ranked = facts.filter(({ route }) => route?.tier_rank !== undefined);
  const latestMs = Math.max(...ranked.map(({ admittedAtMs }) => admittedAtMs));
  const ranks = ranked
    .filter(({ admittedAtMs }) => admittedAtMs === latestMs)
    .map(({ route }) => route?.tier_rank ?? 0);
  return ranks.length === 0 ? null : Math.max(...ranks);
}

function rejectionsOf(facts: readonly RequestFact[]): RoutingReport['rejections'] {
  const passedOver = facts.flatMap(({ route }) => route?.rejected ?? []);
  return grouped(passedOver, ({ model, tier, reason }) => JSON.stringify([model, tier, reason]))
    .map(([name, group]) => {
      const [model, tier, reason] = JSON.parse(name) as [string, string, string];
      return { model, tier, reason, count: group.length };
    })
    .sort(
      (a, b) =>
        b.count - a.count || compare(a.model, b.model) || compare(a.tier, b.tier) || compare(a.reason, b.reason),
    );
}

function compare(one: string, other: string): number {
  return one === other ? 0 : one < other ? -1 : 1;
}

function policiesOf(facts: readonly RequestFact[]): RoutingReport['policies'] {
  return grouped(facts, ({ route }) => JSON.stringify([route?.policy, route?.policy_version]))
    .map(([name, group]) => {
      const [policy, version] = JSON.parse(name) as [string, number];
      const instants = group.map(({ admittedAtMs }) => admittedAtMs);
      const [first, last] = [Math.min(...instants), Math.max(...instants)];
      return {
        policy,
        version,
        requests: countWhere(group, isCounted),
        first_used_at: new Date(first).toISOString(),
        last_used_at: new Date(last).toISOString(),
      };
    })
    .sort((a, b) => compare(a.policy, b.policy) || a.version - b.version);
}

/** The name of a turn; a request without a conversation is a turn of its own. */
function turnOf({ id, route }: RequestFact): string {
  return route?.turn === undefined ? id : `${route.session} ${route.turn}`;
}

function turnsWhere(facts: readonly RequestFact[], isCounted: (fact: RequestFact) => boolean): number {
  return new Set(facts.filter(isCounted).map(turnOf)).size;
}

/** True: the classifier judged the turn as a follow-up, or a person continued a response. */
function isFollowUp({ route }: RequestFact): boolean {
  const continues = route?.reason === 'continuation' && route.previous_model !== undefined;
  return route?.correction_probability !== undefined || continues;
}

type Conversations = Pick<RoutingReport, 'by_previous_tier' | 'by_previous_model'> & {
  readonly sessions: RoutingReport['totals']['sessions'];
};

function conversationsOf(facts: readonly RequestFact[]): Conversations {
  const answered = (group: readonly RequestFact[]) => {
    const follow_ups = turnsWhere(group, isFollowUp);
    const corrections = turnsWhere(group, ({ route }) => route?.correction === true);
    return { follow_ups, corrections, correction_rate: over(corrections, follow_ups) };
  };
  const remembered = facts.filter(({ route }) => route?.previous_model !== undefined);
  const after = (nameOf: (fact: RequestFact) => string) =>
    grouped(remembered, nameOf)
      .map(([name, group]) => ({ name, ...answered(group) }))
      .filter(({ follow_ups }) => follow_ups > 0)
      .sort((a, b) => b.follow_ups - a.follow_ups || compare(a.name, b.name));
  const sticky = countWhere(facts, ({ route }) => route?.sticky === true);
  return {
    sessions: {
      ...answered(facts),
      remembered: remembered.length,
      escalated: turnsWhere(facts, ({ route }) => route?.reason === 'correction_escalated'),
      sticky,
      sticky_share: over(sticky, remembered.length),
    },
    by_previous_tier: after(({ route }) => route?.previous_tier ?? '').map(({ name, ...rest }) => ({
      previous_tier: name,
      ...rest,
    })),
    by_previous_model: after(({ route }) => route?.previous_model ?? '').map(({ name, ...rest }) => ({
      previous_model: name,
      ...rest,
    })),
  };
}

function recentCorrections(facts: readonly RequestFact[]): NonNullable<RoutingReport['recent_corrections']> {
  const corrected = facts
    .filter(({ route }) => route?.correction === true)
    .sort((a, b) => a.admittedAtMs - b.admittedAtMs || compareIds(a.id, b.id));
  const firsts = grouped(corrected, turnOf).flatMap(([, [first]]) => (first === undefined ? [] : [first]));
  return firsts
    .sort((a, b) => b.admittedAtMs - a.admittedAtMs || compareIds(b.id, a.id))
    .slice(0, 20)
    .map(({ admittedAtMs, id, model, route }) => ({
      at: new Date(admittedAtMs).toISOString(),
      request_id: id,
      previous_model: route?.previous_model ?? null,
      previous_tier: route?.previous_tier ?? null,
      model,
      tier: route?.tier ?? null,
      task: route?.task ?? null,
      probability: route?.correction_probability ?? null,
      escalated: route?.reason === 'correction_escalated',
    }));
}

/** The server's order of UUIDs begins with their second half. */
function compareIds(one: string, other: string): number {
  const turned = (id: string): string => id.slice(18) + id.slice(0, 18);
  return compare(turned(one), turned(other));
}

/** The local time at an instant: date, hour and offset from UTC. Taken from the runtime's formatting, not computed. */
function wallAt(
  instantMs: number,
  format: Intl.DateTimeFormat,
): { readonly date: string; readonly hour: string; readonly minute: string; readonly offset: string } {
  const part = new Map(format.formatToParts(instantMs).map(({ type, value }) => [type, value]));
  const offset = (part.get('timeZoneName') ?? '').replace('GMT', '').replace(/^(\+00:00)?$/, 'Z');
  return {
    date: `${part.get('year')}-${part.get('month')}-${part.get('day')}`,
    hour: part.get('hour') ?? '',
    minute: part.get('minute') ?? '',
    offset,
  };
}

function wallClock(timeZone: string): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat('en-GB', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    timeZoneName: 'longOffset',
  });
}

/** Time zones differ by quarters of an hour, and change at them. */
const STEP_MS = 900_000;

/**
 * Names the bucket of an instant by the local time at which its hour or day begins, which is found by going back in
 * steps of a quarter of an hour.
 */
export class ExpectedBuckets {
  static readonly #made = new Map<string, ExpectedBuckets>();
  readonly #starts = new Map<string, string>();
  readonly #keys = new Map<number, string>();
  readonly #format: Intl.DateTimeFormat;
  readonly #granularity: 'hour' | 'day';

  /** Each time zone has one, so that later reports reuse its results. */
  static of(timeZone: string, granularity: 'hour' | 'day'): ExpectedBuckets {
    const name = `${timeZone} ${granularity}`;
    const made = ExpectedBuckets.#made.get(name) ?? new ExpectedBuckets(timeZone, granularity);
    ExpectedBuckets.#made.set(name, made);
    return made;
  }

  private constructor(timeZone: string, granularity: 'hour' | 'day') {
    this.#format = wallClock(timeZone);
    this.#granularity = granularity;
  }

  at(instantMs: number): string {
    const key = this.#keyAt(instantMs);
    const known = this.#starts.get(key);
    if (known !== undefined) return known;
    let startMs = Math.floor(instantMs / STEP_MS) * STEP_MS;
    while (this.#keyAt(startMs - STEP_MS) === key) startMs -= STEP_MS;
    const { date, hour, minute, offset } = wallAt(startMs, this.#format);
    const name = `${date}T${hour}:${minute}:00${offset}`;
    this.#starts.set(key, name);
    return name;
  }

  #keyAt(instantMs: number): string {
    const stepMs = Math.floor(instantMs / STEP_MS) * STEP_MS;
    let key = this.#keys.get(stepMs);
    if (key === undefined) {
      const { date, hour, offset } = wallAt(stepMs, this.#format);
      key = this.#granularity === 'day' ? date : `${date} ${hour} ${offset}`;
      this.#keys.set(stepMs, key);
    }
    return key;
  }
}

function seriesOf(facts: readonly RequestFact[], { window }: RoutingParams): RoutingReport['series'] {
  const buckets = ExpectedBuckets.of(window.timeZone, window.granularity);
  return grouped(facts, (fact) => `${buckets.at(fact.admittedAtMs)} ${fact.route?.tier ?? ''}`)
    .map(([name, group]) => {
      const [bucket = '', tier = ''] = name.split(' ');
      const { requests, spend_usd, baseline_cost_usd, baseline_spend_usd } = metricsOf(group, 1);
      return { bucket, tier, requests, spend_usd, baseline_cost_usd, baseline_spend_usd };
    })
    .sort((a, b) => Date.parse(a.bucket) - Date.parse(b.bucket) || compare(a.tier, b.tier));
}

function seriesTotalsOf(facts: readonly RequestFact[], { window }: RoutingParams): RoutingReport['series_totals'] {
  const buckets = ExpectedBuckets.of(window.timeZone, window.granularity);
  return grouped(facts, (fact) => buckets.at(fact.admittedAtMs))
    .map(([bucket, group]) => {
      const { requests, spend_usd, baseline_cost_usd, baseline_spend_usd } = metricsOf(group, 1);
      return { bucket, requests, spend_usd, baseline_cost_usd, baseline_spend_usd };
    })
    .sort((a, b) => Date.parse(a.bucket) - Date.parse(b.bucket));
}

export function usageOf(facts: readonly RequestFact[]): Omit<UsageSummary, 'currency' | 'by_model' | 'groups'> {
  return {
    requests: facts.length,
    tokens_prompt: facts.reduce((sum, fact) => sum + tokensOf(fact).prompt, 0),
    tokens_completion: facts.reduce((sum, fact) => sum + tokensOf(fact).completion, 0),
    cost: usd(sumOf(facts, spendOf)),
  };
}

/** The value of each dimension in a fact, in the order of an answer. */
const DIMENSIONS: readonly (readonly [Dimension, string, (fact: RequestFact) => string | null])[] = [
  ['model', 'model', ({ model }) => model],
  ['organization', 'organization_id', ({ organizationId }) => organizationId],
  ['team', 'team_id', ({ teamId }) => teamId],
  ['user', 'user_id', ({ userId }) => userId],
  ['api_key', 'api_key_id', ({ apiKeyId }) => apiKeyId],
];

/** The facts of each group, with the values that they share: most requests first, then by their values. */
function byDimensions(
  facts: readonly RequestFact[],
  groupBy: readonly Dimension[],
): [Partial<UsageGroup>, RequestFact[]][] {
  const asked = DIMENSIONS.filter(([dimension]) => groupBy.includes(dimension));
  const valuesOf = (fact: RequestFact) => asked.map(([, , read]) => read(fact));
  const groups = largestFirst(
    grouped(facts, (fact) =>
      valuesOf(fact)
        .map((value) => value ?? '')
        .join('\n'),
    ),
  );
  return groups.map(([, group]) => {
    const values = valuesOf(group[0] as RequestFact);
    return [Object.fromEntries(asked.map(([, member], index) => [member, values[index]])), group];
  });
}

export function expectedSummary(facts: readonly RequestFact[], params: UsageParams): UsageSummary {
  const { groupBy = [] } = params;
  const found = matching(facts, params);
  const models = largestFirst(grouped(found, ({ model }) => model));
  const groups = byDimensions(found, groupBy).map(([key, group]) => ({ ...key, ...usageOf(group) }));
  return {
    currency: 'USD',
    ...usageOf(found),
    by_model: models.map(([model, group]) => ({ model, ...usageOf(group) })),
    ...(groupBy.length === 0 ? {} : { groups }),
  };
}

export function expectedDays(facts: readonly RequestFact[], params: UsageParams): UsageDay[] {
  const days = ExpectedBuckets.of(params.window.timeZone, 'day');
  return grouped(matching(facts, params), ({ admittedAtMs }) => days.at(admittedAtMs).slice(0, 10))
    .sort(([a], [b]) => compare(a, b))
    .flatMap(([date, ofDay]) =>
      byDimensions(ofDay, params.groupBy ?? []).map(([key, group]) => ({
        date,
        ...key,
        errors: countWhere(group, isError),
        ...usageOf(group),
      })),
    );
}

export function expectedEntry(fact: RequestFact): RequestEntry {
  const route = fact.route ?? null;
  const spend = spendOf(fact);
  const shown = [
    'tier',
    'classified_tier',
    'confidence',
    'task',
    'picked_by',
    'previous_model',
    'previous_tier',
    'baseline_model',
  ] as const;
  return {
    id: fact.id,
    created_at: new Date(fact.admittedAtMs).toISOString(),
    organization_id: fact.organizationId,
    team_id: fact.teamId,
    user_id: fact.userId,
    model: fact.model === '' ? null : fact.model,
    requested_model: fact.requestedModel === '' ? null : fact.requestedModel,
    provider: fact.outcome === 'refused' ? null : fact.provider,
    api: fact.api,
    streamed: fact.streamed,
    status: fact.status,
    error: fact.errorCode ?? (isError(fact) ? fact.outcome : null),
    tokens_prompt: fact.usage?.inputTokens ?? null,
    tokens_completion: fact.usage?.outputTokens ?? null,
    tokens_cached: fact.usage?.cachedInputTokens ?? null,
    cost: isFree(fact) ? '0' : spend === null ? null : usd(spend),
    currency: 'USD',
    billing_status: fact.billingStatus,
    latency_ms: latencyOf(fact),
    ttft_ms: fact.ttftMs,
    tags: fact.tags,
    client_request_id: fact.clientRequestId,
    api_key_id: fact.apiKeyId,
    guardrail: fact.guardrail ?? null,
    credential_source: fact.credentialId != null ? 'own' : fact.outcome === 'refused' ? null : 'service',
    credential_id: fact.credentialId ?? null,
    model_route:
      route === null
        ? null
        : {
            requested: 'service/auto',
            reason: route.reason,
            cached: route.cached,
            correction: route.correction,
            sticky: route.sticky,
            ...Object.fromEntries(shown.filter((name) => route[name] !== undefined).map((name) => [name, route[name]])),
            ...(fact.baselineCost == null ? {} : { baseline_cost_usd: usd(BigInt(fact.baselineCost)) }),
          },
  };
}

/** The charges of each UTC day, and the price by the catalog. */
export function expectedCharges(
  facts: readonly RequestFact[],
  params: ReportParams,
): Map<string, { readonly billed: bigint; readonly rated: bigint }> {
  return new Map(
    grouped(matching(facts, params), ({ admittedAtMs }) => new Date(admittedAtMs).toISOString().slice(0, 10)).map(
      ([date, group]) => [
        date,
        {
          billed: sumOf(group, ({ charge }) => BigInt(charge ?? 0)),
          rated: sumOf(group, ({ ratedCost }) => BigInt(ratedCost ?? 0)),
        },
      ],
    ),
  );
}
