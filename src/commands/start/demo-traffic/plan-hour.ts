// Plans the demo's generated traffic: an hour of requests, in routed conversations and single ones, streamed or not,
// answered, refused or failed. The same seed makes the same hour.

import { DONE, type ScreeningReport } from '../../../domain/guardrails/screening-report.ts';
import type { ApiName } from '../../../domain/models/apis.ts';
import type { Catalog } from '../../../domain/models/catalog.ts';
import { picoUsd } from '../../../domain/money/pico-usd.ts';
import { describeRefusal } from '../../../domain/refusals/description.ts';
import {
  decideRoute,
  type Judgement,
  type PreviousRoute,
  type RouteDecision,
  repeatRoute,
} from '../../../domain/routing/decide-route.ts';
import { type ClassifierCall, type ModelRoute, modelRouteOf } from '../../../domain/routing/model-route.ts';
import { RouteCandidates } from '../../../domain/routing/route-candidates.ts';
import type { RoutingPolicy } from '../../../domain/routing/routing-policy.ts';
import type { Outcome } from '../../../domain/settlement/outcome.ts';
import { NO_COUNTS, type Usage } from '../../../domain/usage/usage.ts';
import { HOUR_MS, MINUTE_MS } from '../../../platform/durations.ts';
import {
  BLOCKED,
  CALLERS,
  type Caller,
  type DemoKey,
  FOUND,
  REFUSED,
  TALKERS,
  type Talker,
  type TextApi,
  TROUBLE,
} from './mix.ts';

export interface DemoRequest {
  readonly atMs: number;
  readonly key: DemoKey;
  readonly api: ApiName;
  readonly requestedModel: string;
  readonly model: string;
  readonly streamed: boolean;
  readonly tags: readonly string[];
  readonly route: ModelRoute | null;
  readonly outcome: Outcome;
  readonly status: number | null;
  readonly errorCode: string | null;
  /** The usage of the request if nothing goes wrong. */
  readonly counts: Usage;
  /** null: the request was not answered. */
  readonly usage: Usage | null;
  readonly latencyMs: number;
  readonly ttftMs: number | null;
  readonly screening: ScreeningReport;
}

export interface DemoHour {
  readonly catalog: Catalog;
  readonly policy: RoutingPolicy;
  /** Name of the virtual model. */
  readonly virtualModel: string;
  /** When the hour ends. */
  readonly untilMs: number;
  readonly seed: number;
}

/** The requests in order of time, all of them within the hour. */
export function planDemoHour(hour: DemoHour): readonly DemoRequest[] {
  const plan = new DemoPlan(hour);
  for (const talker of TALKERS) for (let left = talker.conversations; left > 0; left--) plan.addConversation(talker);
  for (const caller of CALLERS) for (let left = caller.requests; left > 0; left--) plan.addSingle(caller);
  for (const refused of REFUSED) for (let left = refused.requests; left > 0; left--) plan.addRefused(refused);
  return plan.requests.filter(({ atMs, latencyMs }) => atMs + latencyMs < hour.untilMs).sort((a, b) => a.atMs - b.atMs);
}

type Ending = Pick<DemoRequest, 'outcome' | 'status' | 'errorCode'>;

class DemoPlan {
  readonly requests: DemoRequest[] = [];
  private readonly hour: DemoHour;
  private readonly random: () => number;

  constructor(hour: DemoHour) {
    this.hour = hour;
    this.random = seededRandom(hour.seed);
  }

  addConversation(talker: Talker): void {
    const { policy } = this.hour;
    const named = { session: this.hex(16), conversation: this.hex(16) };
    const { first, grows, output } = talker.tokens;
    let previous: PreviousRoute | null = null;
    let tokens = this.about(first);
    let atMs = this.instant();
    for (let turns = 1 + this.below(talker.turnsMax); turns > 0; turns--) {
      const candidates = this.candidatesFor(talker.api, tokens);
      const judgement = this.judge(talker, previous !== null);
      const params = {
        policy,
        candidates,
        judgement,
        conversationTokens: tokens,
        previous,
        reasoning: 'none',
      } as const;
      const decision = decideRoute(params);
      const turn = { ...named, turn: this.hex(12) };
      const requests = 1 + this.below(talker.requestsMax);
      for (let request = 0; request < requests; request++) {
        const isFirst = request === 0;
        const route = modelRouteOf(isFirst ? decision : repeatRoute(policy, candidates, decision), {
          requested: this.hour.virtualModel,
          tiers: policy.tiers,
          cached: !isFirst,
          classifier: isFirst ? this.callOf(judgement) : null,
          turnHashes: turn,
        });
        atMs += this.addRequest(talker, { decision, route, atMs, tokens, output: this.about(output) });
        tokens += this.about(grows / requests);
      }
      previous = { model: decision.model, tier: decision.tier };
      atMs += 15_000 + this.below(4 * MINUTE_MS);
    }
  }

  /** Adds a request, and returns the time until the next request of the same turn. */
  private addRequest(
    talker: Talker,
    {
      decision,
      route,
      atMs,
      tokens,
      output,
    }: {
      readonly decision: RouteDecision;
      readonly route: ModelRoute;
      readonly atMs: number;
      readonly tokens: number;
      readonly output: number;
    },
  ): number {
    const cached = route.cached ? Math.floor(tokens * 0.85) : null;
    const made = this.add({
      atMs,
      key: talker.key,
      api: talker.api,
      requestedModel: this.hour.virtualModel,
      model: decision.model,
      streamed: true,
      tags: talker.tags,
      route,
      counts: { ...NO_COUNTS, inputTokens: tokens, cachedInputTokens: cached, outputTokens: output },
    });
    return made.latencyMs + 400 + this.below(2_000);
  }

  addSingle({ key, api, model, tags, streamed, tokens }: Caller): void {
    const images = api === 'images' ? 1 + this.below(3) : null;
    this.add({
      atMs: this.instant(),
      key,
      api,
      requestedModel: model,
      model,
      streamed,
      tags,
      route: null,
      counts: {
        ...NO_COUNTS,
        inputTokens: this.about(tokens.input),
        outputTokens: tokens.output > 0 ? this.about(tokens.output) : null,
        images,
      },
    });
  }

  addRefused({ key, model, refusal }: (typeof REFUSED)[number]): void {
    const { status, code } = describeRefusal(refusal);
    this.requests.push({
      atMs: this.instant(),
      key,
      api: 'chat_completions',
      requestedModel: model,
      model,
      streamed: false,
      tags: [],
      route: null,
      outcome: 'refused',
      status,
      errorCode: code,
      counts: NO_COUNTS,
      usage: null,
      latencyMs: 1 + this.below(3),
      ttftMs: null,
      screening: refusal.kind === 'guardrail_blocked' ? WAS_BLOCKED : NOTHING_FOUND,
    });
  }

  private add(request: Omit<DemoRequest, keyof Ending | 'usage' | 'latencyMs' | 'ttftMs' | 'screening'>): DemoRequest {
    const { counts } = request;
    const ending = this.endingOf(request);
    const isAnswered = ending.status === 200;
    const isSlow = request.model === 'sim/large' || request.api === 'images';
    const firstMs = (isSlow ? 450 : 160) + this.below(isSlow ? 900 : 300);
    const wholeMs = firstMs + (counts.outputTokens ?? 0) * (isSlow ? 14 : 6) + (counts.images ?? 0) * 4_000;
    const latencyMs = ending.outcome === 'aborted_mid_stream' ? Math.floor((firstMs + wholeMs) / 2) : wholeMs;
    const usage = ending.outcome === 'aborted_mid_stream' ? halfOf(counts) : counts;
    const made: DemoRequest = {
      ...request,
      ...ending,
      usage: isAnswered ? usage : null,
      latencyMs: isAnswered ? latencyMs : firstMs,
      ttftMs: isAnswered ? (request.streamed ? firstMs : Math.max(1, latencyMs - 2)) : null,
      screening: this.screeningOf(request.key),
    };
    this.requests.push(made);
    return made;
  }

  private screeningOf(sender: DemoKey): ScreeningReport {
    const found = FOUND.find(({ key, share }) => key === sender && this.chance(share));
    if (found === undefined) return NOTHING_FOUND;
    const { finding, countMax } = found;
    return { input: { action: DONE[finding.action], findings: [{ ...finding, count: 1 + this.below(countMax) }] } };
  }

  private endingOf({ atMs, model, streamed }: Pick<DemoRequest, 'atMs' | 'model' | 'streamed'>): Ending {
    const minute = (atMs - this.hour.untilMs + HOUR_MS) / MINUTE_MS;
    const isTrouble = model === TROUBLE.model && minute >= TROUBLE.fromMinute && minute < TROUBLE.untilMinute;
    if (isTrouble && this.chance(TROUBLE.share)) return failed(503);
    const at = this.random();
    if (at < 0.006) return failed(500);
    if (at < 0.014) return { outcome: 'provider_refused', status: 400, errorCode: 'provider_400' };
    if (at < 0.026 && streamed) return { outcome: 'aborted_mid_stream', status: 200, errorCode: null };
    if (at < 0.03) return { outcome: 'aborted_before_first_byte', status: null, errorCode: null };
    return { outcome: 'completed', status: 200, errorCode: null };
  }

  private candidatesFor(api: TextApi, conversationTokens: number): RouteCandidates {
    const { policy, catalog } = this.hour;
    return new RouteCandidates({
      policy,
      api,
      modelNamed: (name) => catalog.byName.get(name) ?? null,
      allowedModels: null,
      isBilled: true,
      conversationTokens,
      outputTokensMax: null,
    });
  }

  /** Some judgements are unsure, some correct the previous answer, and now and then the classifier fails. */
  private judge(talker: Talker, isLater: boolean): Judgement {
    if (this.chance(0.025)) return 'classifier_failed';
    const { tiers } = this.hour.policy;
    const wanted = tiers[this.chance(talker.hard) ? tiers.length - 1 : 0]?.name ?? '';
    const confidence = this.chance(0.12) ? 0.4 + this.random() * 0.2 : 0.62 + Math.sqrt(this.random()) * 0.37;
    const rest = (1 - confidence) / Math.max(1, tiers.length - 1);
    return {
      tier: wanted,
      confidence: rounded(confidence),
      distribution: Object.fromEntries(tiers.map(({ name }) => [name, rounded(name === wanted ? confidence : rest)])),
      task: this.chance(0.8) ? talker.task : null,
      correctionProbability: isLater
        ? rounded(this.chance(0.12) ? 0.75 + this.random() * 0.2 : this.random() * 0.3)
        : null,
    };
  }

  private callOf(judgement: Judgement): ClassifierCall {
    const { classifier } = this.hour.policy;
    const isSilent = typeof judgement === 'string';
    const inputTokens = isSilent ? null : 380 + this.below(600);
    const price = this.hour.catalog.byName.get(classifier.model)?.servedBy[0]?.price?.input ?? null;
    const cost = inputTokens === null || price === null ? null : picoUsd(BigInt(inputTokens) * price);
    const latencyMs = isSilent ? classifier.timeoutMs : 40 + this.below(160);
    return { model: classifier.model, inputTokens, cost, latencyMs };
  }

  /** A random instant; the middle of the hour is busier than its ends. */
  private instant(): number {
    const part = (this.random() + this.random()) / 2;
    const at = this.chance(0.6) ? this.random() : part;
    return this.hour.untilMs - HOUR_MS + Math.floor(at * HOUR_MS);
  }

  private chance(probability: number): boolean {
    return this.random() < probability;
  }

  private below(max: number): number {
    return Math.floor(this.random() * max);
  }

  private about(amount: number): number {
    return Math.max(1, Math.round(amount * (0.6 + this.random() * 0.8)));
  }

  private hex(digits: number): string {
    return Array.from({ length: digits }, () => this.below(16).toString(16)).join('');
  }
}

const NOTHING_FOUND: ScreeningReport = { input: { action: 'none' } };
const WAS_BLOCKED: ScreeningReport = { input: { action: DONE.block, findings: [BLOCKED] } };

function failed(status: number): Ending {
  return { outcome: 'provider_failed', status, errorCode: `provider_${status}` };
}

/** The usage of a reply whose client left half-way. */
function halfOf(counts: Usage): Usage {
  return { ...counts, outputTokens: Math.ceil((counts.outputTokens ?? 0) / 2) };
}

function rounded(share: number): number {
  return Math.round(share * 100) / 100;
}

/** Random numbers from 0 up to 1, always the same for the same seed (mulberry32). */
function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
