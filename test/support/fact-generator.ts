// Generates realistic request facts from a seed: a few large organizations and many small requests, conversations of
// turns with tool loops, corrections and escalations, errors, own keys, unpriced models, late and corrected versions.
// The facts are uneven on purpose, so that every figure of a report has a value that can be wrong.

import type { RouteReason } from '../../src/domain/routing/decide-route.ts';
import type { ModelRoute } from '../../src/domain/routing/model-route.ts';
import type { Outcome } from '../../src/domain/settlement/outcome.ts';
import type { TerminalRecord } from '../../src/records/execution-record.ts';
import { factOf, type RequestFact } from '../../src/storage/clickhouse/facts.ts';
import { seededRandom } from './byte-splits.ts';

/** Autumn 2026 in both hemispheres: clocks change in Chatham, Lord Howe, Europe and America. */
export const GENERATED_FROM_MS = Date.UTC(2026, 8, 24, 7);
export const GENERATED_UNTIL_MS = Date.UTC(2026, 10, 19, 5);
/** The whole days that contain all facts, as the parameters of a report and of the oracle. */
export const GENERATED_DAYS = 'start_date=2026-09-24&end_date=2026-11-19';
export const GENERATED_WINDOW = {
  fromMs: Date.UTC(2026, 8, 24),
  untilMs: Date.UTC(2026, 10, 20),
  granularity: 'day',
  timeZone: 'UTC',
} as const;

const MINUTE_MS = 60_000;

export interface GeneratedFacts {
  /**
   * The facts in the order of their arrival: an execution may be there twice, and its earlier version after its later
   * one.
   */
  readonly facts: readonly RequestFact[];
  /** Values to filter by. */
  readonly pools: FactPools;
}

export interface FactPools {
  readonly organizations: readonly string[];
  readonly teams: readonly string[];
  readonly users: readonly string[];
  readonly apiKeys: readonly string[];
  readonly models: readonly string[];
  readonly tags: readonly string[];
  /** Ids of organizations' own provider keys. */
  readonly credentials: readonly string[];
}

interface Caller {
  readonly organizationId: string;
  readonly teamId: string | null;
  readonly userId: string | null;
  readonly apiKeyId: string;
  readonly walletId: string | null;
}

interface Model {
  readonly id: string;
  readonly provider: string;
  /** Pico-dollars per token; null: unpriced. */
  readonly price: bigint | null;
  readonly tier: string;
}

const TIERS = ['light', 'medium', 'strong'];
const TASKS = ['code', 'prose', 'analysis', 'translation'];
const TAGS = ['ci', 'nightly', 'team:a', 'env/prod', 'agent'];
const BASELINE_PRICE = 15_000_000n;

class Generator {
  readonly #random: () => number;
  readonly callers: Caller[] = [];
  readonly models: Model[] = [];
  readonly facts: RequestFact[] = [];

  constructor(seed: number) {
    this.#random = seededRandom(seed);
    for (let organization = 0; organization < 7; organization++) this.#addOrganization(organization);
    for (let model = 0; model < 34; model++) this.#addModel(model);
  }

  #addOrganization(index: number): void {
    const organizationId = this.#uuid();
    const walletId = index % 3 === 2 ? null : this.#uuid();
    const teams = Array.from({ length: index % 4 }, () => this.#uuid());
    const users = Array.from({ length: 1 + (index % 3) }, () => this.#uuid());
    for (let key = 0; key < 4; key++) {
      const userId = this.chance(0.8) ? this.pick(users) : null;
      const teamId = teams.length > 0 && this.chance(0.6) ? this.pick(teams) : null;
      this.callers.push({ organizationId, teamId, userId, apiKeyId: this.#uuid(), walletId });
    }
  }

  #addModel(index: number): void {
    const tier = TIERS[index % TIERS.length] ?? 'light';
    const price = index % 11 === 7 ? null : BigInt(50_000 + index * 333_333);
    this.models.push({ id: `maker-${index % 4}/model-${index}`, provider: `provider-${index % 4}`, price, tier });
  }

  /**
   * Adds the requests of turns, and single requests that name their model, at one instant or shortly after one another.
   */
  addTurns(count: number): void {
    while (this.facts.length < count) {
      const caller = this.skewed(this.callers);
      const atMs = this.#instant();
      if (this.chance(0.35)) this.#add(caller, this.skewed(this.models), atMs, null);
      else this.#addConversation(caller, atMs);
    }
  }

  #addConversation(caller: Caller, atMs: number): void {
    const session = this.chance(0.85) ? this.#hex(16) : null;
    const turns = session === null ? 1 : 1 + Math.floor(this.#random() ** 3 * 7);
    let previous: { readonly model: Model; readonly tier: string } | null = null;
    for (let turn = 0, startMs = atMs; turn < turns; turn++, startMs += Math.floor(this.#random() * 40 * MINUTE_MS)) {
      const model = this.skewed(this.models);
      const route = this.#route(model, startMs, session, turn === 0 ? null : previous);
      const requests = 1 + Math.floor(this.#random() ** 2 * 6);
      for (let request = 0; request < requests; request++) {
        const { classifier: _, rejected: __, ...repeated } = route;
        const served = this.chance(0.03) ? this.skewed(this.models) : model;
        const own: ModelRoute =
          request === 0 ? route : { ...repeated, cached: true, rejected: served === model ? [] : [this.#rejection()] };
        this.#add(caller, served, startMs + request * 1_700, own);
      }
      previous = { model, tier: route.tier ?? '' };
    }
  }

  #route(
    model: Model,
    atMs: number,
    session: string | null,
    previous: { readonly model: Model; readonly tier: string } | null,
  ): ModelRoute {
    const version = 1 + Math.floor((atMs - GENERATED_FROM_MS) / (13 * 24 * 60 * MINUTE_MS));
    const reason = this.#reason(previous !== null);
    const isJudged =
      reason === 'classified' || reason === 'low_confidence_escalated' || reason === 'correction_escalated';
    const isAsked = isJudged && session !== null && (previous === null ? this.chance(0.05) : this.chance(0.9));
    const isCorrection = reason === 'correction_escalated' || (isAsked && this.chance(0.15));
    const hasTier = reason !== 'continuation' || this.chance(0.5);
    // From the third version of the policy on there is a cheaper tier below.
    const rank = TIERS.indexOf(model.tier) + (version >= 3 ? 1 : 0);
    return {
      requested: 'service/auto',
      ...(hasTier ? { tier: model.tier, tier_rank: rank } : {}),
      ...(isJudged ? { classified_tier: this.pick(TIERS), confidence: this.#confidence() } : {}),
      reason,
      cached: reason === 'continuation' ? false : this.chance(0.02),
      ...(isJudged && this.chance(0.7) ? { task: this.skewed(TASKS) } : {}),
      ...(this.chance(0.25) ? { picked_by: this.chance(0.6) ? ('strength' as const) : ('native_api' as const) } : {}),
      correction: isCorrection,
      ...(previous === null
        ? {}
        : { previous_model: previous.model.id, ...(previous.tier === '' ? {} : { previous_tier: previous.tier }) }),
      sticky: previous !== null && this.chance(0.2),
      ...(this.chance(0.9) ? { baseline_model: 'maker-0/model-0' } : {}),
      policy: this.chance(0.8) ? 'default' : 'own',
      policy_version: version,
      escalated: reason === 'low_confidence_escalated' || (reason === 'correction_escalated' && this.chance(0.9)),
      rejected: this.chance(0.1)
        ? Array.from({ length: 1 + Math.floor(this.#random() * 3) }, () => this.#rejection())
        : [],
      ...(isAsked || isCorrection
        ? { correction_probability: isCorrection ? 0.7 + this.#random() * 0.3 : this.#random() * 0.7 }
        : {}),
      ...(reason === 'continuation' || reason === 'no_request_text' || reason === 'classifier_skipped'
        ? {}
        : { classifier: this.#call(reason) }),
      ...(session === null ? {} : { session, conversation: session, turn: this.#hex(12) }),
    };
  }

  #reason(isLater: boolean): RouteReason {
    const at = this.#random();
    if (at < 0.6) return 'classified';
    if (at < 0.75) return 'low_confidence_escalated';
    if (at < 0.82) return isLater ? 'correction_escalated' : 'classified';
    if (at < 0.88) return 'classifier_failed';
    if (at < 0.92) return 'no_request_text';
    return at < 0.94 ? 'classifier_skipped' : 'continuation';
  }

  /** Some values are exactly on the edges of the buckets. */
  #confidence(): number {
    return this.chance(0.1) ? Math.floor(this.#random() * 11) / 10 : this.#random();
  }

  #call(reason: RouteReason): NonNullable<ModelRoute['classifier']> {
    const model = this.chance(0.9) ? 'sim/judge-latest' : 'sim/judge-free';
    const tokens = reason === 'classifier_failed' ? null : 200 + Math.floor(this.#random() * 900);
    const cost =
      tokens === null || model === 'sim/judge-free' ? null : `0.${String(tokens * 100_000).padStart(12, '0')}`;
    return { model, input_tokens: tokens, cost_usd: cost, latency_ms: Math.floor(20 + this.#random() ** 4 * 900) };
  }

  #rejection(): ModelRoute['rejected'][number] {
    const { id, tier } = this.skewed(this.models);
    return {
      model: id,
      tier,
      reason: this.pick([
        'unavailable',
        'not_permitted',
        'no_price',
        'credential_unavailable',
        'context_too_small',
      ] as const),
    };
  }

  #add(caller: Caller, model: Model, atMs: number, route: ModelRoute | null): void {
    const made = this.#record(caller, model, atMs, route);
    // A request that we refused has no provider and no usage; some were refused after their route was decided.
    const isRefused = route === null ? this.chance(0.04) : Math.floor(made.latencyMs) % 25 === 0;
    const record = isRefused ? refused(made) : made;
    const settled = factOf(record);
    // Some executions are first known as pending, and their two versions arrive in any order.
    if (!this.chance(0.06)) this.facts.push(settled);
    else {
      const pending = factOf({
        ...record,
        billingStatus: 'pending',
        charge: null,
        ratedCost: null,
        usage: null,
        usageSource: null,
        baselineCost: null,
      });
      this.facts.push(...(this.chance(0.3) ? [settled, pending] : [pending, settled]));
    }
    if (this.chance(0.01)) this.facts.push(settled);
    if (this.chance(0.005))
      this.facts.push({ ...settled, version: settled.version + 1, status: 500, errorCode: 'corrected', charge: null });
  }

  #record(caller: Caller, model: Model, atMs: number, route: ModelRoute | null): TerminalRecord {
    const { outcome, status, errorCode } = this.#end();
    const isServed = status === 200;
    const isOwnKey = this.chance(0.04);
    const walletId = isOwnKey ? null : caller.walletId;
    const price = isOwnKey ? null : model.price;
    const usage = isServed || this.chance(0.1) ? this.#usage() : null;
    const tokens = BigInt((usage?.inputTokens ?? 0) + (usage?.outputTokens ?? 0));
    const rated = usage === null || price === null ? null : tokens * price;
    // A few reach their hold, and are charged less than they cost.
    const isCapped = this.chance(0.02);
    const charge =
      walletId === null
        ? null
        : outcome === 'process_killed'
          ? 0n
          : !isServed
            ? null
            : isCapped
              ? (rated ?? 0n) / 2n
              : (rated ?? 0n);
    const hasBaseline =
      route?.baseline_model !== undefined &&
      rated !== null &&
      !isCapped &&
      (walletId === null || charge === rated) &&
      this.chance(0.9);
    const latencyMs = Math.floor(80 + this.#random() ** 3 * 20_000) + (this.chance(0.3) ? 0.4 : 0);
    return {
      type: 'terminal',
      ...caller,
      walletId,
      id: this.#executionId(atMs),
      admittedAtMs: atMs,
      api: this.pick(['chat_completions', 'responses', 'messages', 'count_tokens'] as const),
      requestedModel: route?.requested ?? model.id,
      model: model.id,
      provider: model.provider,
      providerModel: `${model.id}-2026`,
      priceVersion: price === null ? null : '3',
      streamed: this.chance(0.7),
      clientRequestId: this.chance(0.2) ? this.pick(['=1+1', 'a,"b"\nc', 'run-7', '-3']) : null,
      tags: TAGS.filter(() => this.chance(0.1)),
      authorizedAmount: walletId === null ? null : '99000000000000',
      requestBytes: 900,
      route,
      endedAtMs: atMs + Math.round(latencyMs),
      outcome,
      status,
      errorCode,
      usage,
      usageSource: usage === null ? null : 'reported',
      billingStatus: walletId === null || charge === null ? 'not_billed' : 'final',
      ratedCost: rated?.toString() ?? null,
      charge: charge?.toString() ?? null,
      suspense: !isCapped ? '0' : walletId === null ? ((rated ?? 0n) / 3n).toString() : '12345',
      latencyMs,
      ttftMs: isServed && this.chance(0.8) ? Math.floor(latencyMs / 3) : null,
      responseBytes: 4000,
      ...(isServed && this.chance(0.06) ? { truncated: true } : {}),
      credentialId: isOwnKey ? ownKeyOf(caller.organizationId) : null,
      guardrail: this.chance(0.05) ? this.pick(['cards', 'names']) : null,
      ...(hasBaseline ? { baselineCost: (tokens * BASELINE_PRICE).toString() } : {}),
    };
  }

  #end(): { readonly outcome: Outcome; readonly status: number | null; readonly errorCode: string | null } {
    const at = this.#random();
    if (at < 0.9)
      return { outcome: this.chance(0.9) ? 'completed' : 'completed_without_usage', status: 200, errorCode: null };
    if (at < 0.92)
      return { outcome: 'provider_refused', status: this.pick([400, 404, 429]), errorCode: 'provider_429' };
    if (at < 0.94) return { outcome: 'provider_failed', status: 500, errorCode: 'provider_500' };
    if (at < 0.945) return { outcome: 'connect_failed', status: 502, errorCode: 'connect_failed' };
    if (at < 0.95) return { outcome: 'no_reply', status: this.chance(0.5) ? null : 504, errorCode: 'no_reply' };
    if (at < 0.96) return { outcome: 'aborted_before_first_byte', status: null, errorCode: null };
    if (at < 0.975) return { outcome: 'aborted_mid_stream', status: 200, errorCode: null };
    if (at < 0.985) return { outcome: 'cut_mid_stream', status: 200, errorCode: null };
    if (at < 0.99) return { outcome: 'usage_then_cut', status: 200, errorCode: null };
    // A block within a stream comes after the status 200.
    if (at < 0.995) return { outcome: 'output_blocked', status: 200, errorCode: 'guardrail_blocked' };
    return { outcome: 'process_killed', status: null, errorCode: null };
  }

  #usage(): NonNullable<RequestFact['usage']> {
    const inputTokens = Math.floor(20 + this.#random() ** 4 * 90_000);
    return {
      inputTokens,
      cachedInputTokens: this.chance(0.5) ? Math.floor(inputTokens / 2) : null,
      cacheWriteTokens: null,
      outputTokens: this.chance(0.97) ? Math.floor(this.#random() ** 2 * 4_000) : null,
      reasoningTokens: null,
      images: null,
    };
  }

  /** Working hours are busier, and many requests share a millisecond. */
  #instant(): number {
    const atMs = GENERATED_FROM_MS + Math.floor(this.#random() * (GENERATED_UNTIL_MS - GENERATED_FROM_MS));
    return this.chance(0.2) ? Math.floor(atMs / MINUTE_MS) * MINUTE_MS : atMs;
  }

  chance(probability: number): boolean {
    return this.#random() < probability;
  }

  pick<Value>(values: readonly Value[]): Value {
    return values[Math.floor(this.#random() * values.length)] as Value;
  }

  /** Chooses a value; the first ones are much more frequent. */
  skewed<Value>(values: readonly Value[]): Value {
    return values[Math.floor(this.#random() ** 2.5 * values.length)] as Value;
  }

  #hex(digits: number): string {
    return Array.from({ length: digits }, () => Math.floor(this.#random() * 16).toString(16)).join('');
  }

  #uuid(): string {
    return `${this.#hex(8)}-${this.#hex(4)}-4${this.#hex(3)}-8${this.#hex(3)}-${this.#hex(12)}`;
  }

  #executionId(atMs: number): string {
    const time = atMs.toString(16).padStart(12, '0');
    return `${time.slice(0, 8)}-${time.slice(8)}-7${this.#hex(3)}-9${this.#hex(3)}-${this.#hex(12)}`;
  }
}

/** Each organization has one provider key of its own. */
function ownKeyOf(organizationId: string): string {
  return `0000000a${organizationId.slice(8)}`;
}

export function generateFacts(seed: number, count: number): GeneratedFacts {
  const generator = new Generator(seed);
  generator.addTurns(count);
  const { callers, models, facts } = generator;
  const distinct = (values: readonly (string | null)[]): string[] => [
    ...new Set(values.filter((value) => value !== null)),
  ];
  return {
    facts,
    pools: {
      organizations: distinct(callers.map(({ organizationId }) => organizationId)),
      teams: distinct(callers.map(({ teamId }) => teamId)),
      users: distinct(callers.map(({ userId }) => userId)),
      apiKeys: distinct(callers.map(({ apiKeyId }) => apiKeyId)),
      models: models.map(({ id }) => id),
      tags: TAGS,
      credentials: distinct(callers.map(({ organizationId }) => ownKeyOf(organizationId))),
    },
  };
}

/** A refused request; if it has no route, every other one was refused before its model was read. */
function refused(record: TerminalRecord): TerminalRecord {
  const isUnread = record.route == null && record.latencyMs % 2 === 0;
  return {
    ...record,
    ...(isUnread ? { model: '', requestedModel: '' } : {}),
    provider: '',
    providerModel: '',
    priceVersion: null,
    authorizedAmount: null,
    outcome: 'refused',
    status: 429,
    errorCode: 'rate_limit',
    usage: null,
    usageSource: null,
    billingStatus: 'not_billed',
    ratedCost: null,
    charge: null,
    suspense: '0',
    ttftMs: null,
    responseBytes: 0,
    baselineCost: null,
  };
}
