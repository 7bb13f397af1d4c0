// Asks the classifier of a policy about a turn: one attempt with a hard deadline, over the evaluation model's own provider path (spec 4.11, DESIGN 7).

import type { Provider } from '../../domain/models/catalog.ts';
import { buildClassifierRequest, type ClassifierAnswer, readClassifierAnswer } from '../../domain/routing/classifier-questions.ts';
import type { ClassifierCall } from '../../domain/routing/model-route.ts';
import type { RoutingPolicy } from '../../domain/routing/routing-policy.ts';
import { rateUsage } from '../../domain/settlement/rate-usage.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Cooldowns } from '../admission/cooldowns.ts';
import type { Offer, ServingCatalog } from '../catalog/serving-catalog.ts';
import { systemone } from '../dialects/systemone.ts';
import { COOLDOWN_STATUSES } from '../relay/failover-statuses.ts';
import { upstreamHeaders } from '../relay/header-policy.ts';
import type { UpstreamFault } from '../relay/http1/connection.ts';
import { replyHeader } from '../relay/http1/reply-head.ts';
import type { UpstreamCall, UpstreamOrigin } from '../relay/upstream.ts';
import { Breaker } from './breaker.ts';
import type { RoutingMetrics } from './routing-metrics.ts';

/** `answered`, or why there is no answer. `uncallable`: no provider can be called for the model now. `unusable`: no tier of the policy in the answer. */
export type ClassifierResult = 'answered' | 'timeout' | 'error' | 'unusable' | 'uncallable' | 'breaker_open';

export interface Classification {
  readonly result: ClassifierResult;
  /** null unless `answered`. */
  readonly answer: ClassifierAnswer | null;
  /** null: nothing was sent. */
  readonly call: ClassifierCall | null;
}

export interface ClassifierParts {
  readonly originOf: (provider: Provider) => UpstreamOrigin;
  readonly pathPrefixOf: (provider: Provider) => string;
  readonly onUpstreamFault: (provider: Provider, fault: UpstreamFault) => void;
  readonly cooldowns: Cooldowns;
  readonly clock: Clock;
  readonly metrics: RoutingMetrics;
}

export interface ClassifierQuestion {
  readonly catalog: ServingCatalog;
  readonly policy: RoutingPolicy;
  /** At least one text. */
  readonly humanTexts: readonly string[];
  readonly askCorrection: boolean;
}

const REPLY_BYTES_MAX = 262_144;

export class Classifier {
  private readonly parts: ClassifierParts;
  private readonly breaker = new Breaker();

  constructor(parts: ClassifierParts) {
    this.parts = parts;
  }

  /** Never rejects. */
  async classify(question: ClassifierQuestion): Promise<Classification> {
    const { clock, metrics } = this.parts;
    const { policy } = question;
    const offer = this.offerFor(question);
    const name = policy.classifier.model;
    const unasked = offer === null ? 'uncallable' : this.breaker.admits(name, clock.monotonicMs()) ? null : 'breaker_open';
    if (offer === null || unasked !== null) {
      metrics.classified(unasked ?? 'uncallable', null);
      return { result: unasked ?? 'uncallable', answer: null, call: null };
    }
    const startedAtMs = clock.monotonicMs();
    const reply = await new ClassifierExchange(offer, bodyOf(question, offer), policy.classifier.timeoutMs, this.parts).reply;
    const latencyMs = Math.round(clock.monotonicMs() - startedAtMs);
    const answer = typeof reply === 'string' ? null : readClassifierAnswer(reply, policy);
    const result = typeof reply === 'string' ? reply : answer === null ? 'unusable' : 'answered';
    // An answer that makes no sense is the text's doing: it says nothing about the next one.
    if (typeof reply === 'string') this.breaker.failed(name, clock.monotonicMs());
    else this.breaker.succeeded(name);
    metrics.classified(result, latencyMs);
    return { result, answer, call: callOf(policy, offer, answer, latencyMs) };
  }

  /** null: the model is not there, or everyone who serves it asked for a pause. */
  private offerFor({ catalog, policy }: ClassifierQuestion): Offer | null {
    const offers = catalog.byName.get(policy.classifier.model)?.offers.get('systemone') ?? [];
    const open = this.parts.cooldowns.filter(offers, this.parts.clock.monotonicMs());
    return 'kind' in open ? null : (open[0] ?? null);
  }
}

/** JSON.stringify writes half of a surrogate pair as an escape that not every reader takes. */
function bodyOf({ policy, humanTexts, askCorrection }: ClassifierQuestion, { providerModel }: Offer): Buffer {
  const request = { model: providerModel, ...buildClassifierRequest(policy, { humanTexts }, { askCorrection }) };
  return Buffer.from(JSON.stringify(request, (_, value: unknown) => (typeof value === 'string' ? value.toWellFormed() : value)));
}

function callOf({ classifier }: RoutingPolicy, { price }: Offer, answer: ClassifierAnswer | null, latencyMs: number): ClassifierCall {
  const inputTokens = answer?.inputTokens ?? null;
  const usage = { inputTokens, cachedInputTokens: null, cacheWriteTokens: null, outputTokens: 0, reasoningTokens: null, images: null };
  return { model: classifier.model, inputTokens, cost: price === null ? null : rateUsage(usage, price), latencyMs };
}

/** One question to one provider. */
class ClassifierExchange {
  /** The reply's bytes, or why there are none. */
  readonly reply: Promise<Buffer | 'timeout' | 'error'>;
  private readonly offer: Offer;
  private readonly body: Buffer;
  private readonly parts: ClassifierParts;
  private readonly end: (reply: Buffer | 'timeout' | 'error') => void;
  private readonly chunks: Buffer[] = [];
  private bytes = 0;
  private status = 0;
  private call: UpstreamCall | null = null;
  private retriedStale = false;

  constructor(offer: Offer, body: Buffer, timeoutMs: number, parts: ClassifierParts) {
    this.offer = offer;
    this.body = body;
    this.parts = parts;
    const { promise, resolve } = Promise.withResolvers<Buffer | 'timeout' | 'error'>();
    const timer = setTimeout(() => {
      this.call?.abort();
      resolve('timeout');
    }, timeoutMs);
    this.end = (reply) => {
      clearTimeout(timer);
      resolve(reply);
    };
    this.reply = promise;
    this.send();
  }

  private send(): void {
    const { provider } = this.offer;
    const headers = [...upstreamHeaders([], provider), 'content-type', 'application/json'];
    const path = this.parts.pathPrefixOf(provider) + systemone.upstreamPath;
    this.call = this.parts.originOf(provider).call({ method: 'POST', path, headers, body: this.body }, this, this.retriedStale);
  }

  onReplyStart(status: number, headers: readonly string[]): void {
    this.status = status;
    const { clock, cooldowns } = this.parts;
    if (COOLDOWN_STATUSES.has(status)) cooldowns.begin(this.offer, replyHeader(headers, 'retry-after') ?? null, clock.monotonicMs(), clock.nowMs());
  }

  onReplyData(chunk: Buffer): void {
    this.bytes += chunk.length;
    if (this.bytes <= REPLY_BYTES_MAX) {
      this.chunks.push(chunk);
      return;
    }
    this.call?.abort();
    this.end('error');
  }

  onReplyPause(): void {
    // Nothing goes on from here before the end.
  }

  onReplyEnd(): void {
    this.end(this.status === 200 ? Buffer.concat(this.chunks) : 'error');
  }

  onReplyFault(fault: UpstreamFault): void {
    this.parts.onUpstreamFault(this.offer.provider, fault);
    // A kept connection that turned out dead carried nothing anywhere: that was no attempt.
    if (fault === 'stale_connection' && !this.retriedStale) {
      this.retriedStale = true;
      this.send();
      return;
    }
    this.end('error');
  }
}
