// Asks the classifier of a policy about a turn: one attempt with a hard deadline, over the evaluation model's own
// provider path (spec 4.11). An evaluation provider is asked all questions in one call; a chat model that tells
// log-probabilities one question a call, all at once.

import { type PicoUsd, picoUsd } from '../../domain/money/pico-usd.ts';
import {
  answerIn,
  buildClassifierRequest,
  type ClassifierAnswer,
  readClassifierAnswer,
} from '../../domain/routing/classifier-questions.ts';
import { logprobQuestions, readLogprobAnswer } from '../../domain/routing/logprob-questions.ts';
import type { ClassifierCall } from '../../domain/routing/model-route.ts';
import type { RoutingPolicy } from '../../domain/routing/routing-policy.ts';
import { rateUsage } from '../../domain/settlement/rate-usage.ts';
import type { ClassifierDeployment, ServingCatalog } from '../catalog/serving-catalog.ts';
import { chatCompletions } from '../dialects/chat-completions.ts';
import type { Dialect } from '../dialects/dialect.ts';
import { systemone } from '../dialects/systemone.ts';
import { reportedUsage } from '../execution/measure-usage.ts';
import { Breaker } from '../pauses/breaker.ts';
import { askProvider, type ProviderPath } from './ask-provider.ts';

/**
 * `answered`, or why there is no answer. `refused`: the provider refused this request (4xx). `uncallable`: no provider
 * of the model can be called now. `unusable`: the answer names no tier of the policy.
 */
export type ClassifierResult =
  | 'answered'
  | 'timeout'
  | 'error'
  | 'refused'
  | 'unusable'
  | 'uncallable'
  | 'breaker_open';

export interface Classification {
  readonly result: ClassifierResult;
  /** null unless `answered`. */
  readonly answer: ClassifierAnswer | null;
  /** null: nothing was sent. */
  readonly call: ClassifierCall | null;
}

export interface ClassifierParts extends ProviderPath {
  readonly metrics: ClassifierMetrics;
}

/** Counts the results of classifications. */
export interface ClassifierMetrics {
  /** `latencyMs` null: no provider was asked. */
  classified(result: ClassifierResult, latencyMs: number | null): void;
}

export interface ClassifierParams {
  readonly catalog: ServingCatalog;
  readonly policy: RoutingPolicy;
  /** The organization of the request. Failures and pauses are counted for it first. */
  readonly organizationId: string;
  /** At least one text. */
  readonly humanTexts: readonly string[];
  readonly askCorrection: boolean;
}

/** What a reply used. */
interface ReplyUse {
  /** null: not reported. */
  readonly inputTokens: number | null;
  /** null: the deployment has no price, or not all that the reply used was reported. */
  readonly cost: PicoUsd | null;
}

/** The classifier's reply: an answer (null: without a tier of the policy), or why there is none. */
type ClassifierReply =
  | { readonly answer: ClassifierAnswer | null; readonly uses: readonly ReplyUse[] }
  | 'timeout'
  | 'error'
  | 'refused';

/** Five failures in a row, however far apart. Without the pause every turn would wait for its deadline. */
const CLASSIFIER_FAILS = {
  failuresMax: 5,
  withinMs: Number.POSITIVE_INFINITY,
  pauseMs: 10_000,
  pauseMsMax: 10_000,
};

export class Classifier {
  private readonly parts: ClassifierParts;
  private readonly breaker = new Breaker(CLASSIFIER_FAILS);

  constructor(parts: ClassifierParts) {
    this.parts = parts;
  }

  /** Never rejects. */
  async classify(params: ClassifierParams): Promise<Classification> {
    const { clock, metrics } = this.parts;
    const { policy, organizationId } = params;
    const deployment = this.deploymentFor(params);
    const subject = subjectOf(policy.classifier.model, deployment);
    const unasked =
      deployment === null
        ? 'uncallable'
        : this.breaker.admits(subject, organizationId, clock.monotonicMs())
          ? null
          : 'breaker_open';
    if (deployment === null || unasked !== null) {
      metrics.classified(unasked ?? 'uncallable', null);
      return { result: unasked ?? 'uncallable', answer: null, call: null };
    }
    const startedAtMs = clock.monotonicMs();
    const asking =
      deployment.via === 'logprobs' ? this.askByLogprobs(params, deployment) : this.ask(params, deployment);
    // The breaker must be told of an end even after a fault of ours: while a probe is under way it admits nobody else.
    const told = await asking.catch((fault: unknown) => {
      process.emitWarning(fault instanceof Error ? fault : String(fault));
      return 'error' as const;
    });
    const latencyMs = Math.round(clock.monotonicMs() - startedAtMs);
    const answer = typeof told === 'string' ? null : told.answer;
    const result = typeof told === 'string' ? told : answer === null ? 'unusable' : 'answered';
    // An unusable answer or a refusal is caused by the text, so it is no failure of the classifier.
    if (told === 'timeout' || told === 'error') this.breaker.failed(subject, organizationId, clock.monotonicMs());
    else this.breaker.answered(subject, organizationId);
    metrics.classified(result, latencyMs);
    return { result, answer, call: callOf(policy, told, latencyMs) };
  }

  /** null: the model does not exist, or all of its providers asked for a pause. */
  private deploymentFor({ catalog, policy, organizationId }: ClassifierParams): ClassifierDeployment | null {
    const deployments = catalog.byName.get(policy.classifier.model)?.classifiers ?? [];
    const open = this.parts.cooldowns.filter(deployments, organizationId, this.parts.clock.monotonicMs());
    return 'kind' in open ? null : ((open[0] as ClassifierDeployment | undefined) ?? null);
  }

  private async ask(
    { policy, organizationId, humanTexts, askCorrection }: ClassifierParams,
    deployment: ClassifierDeployment,
  ): Promise<ClassifierReply> {
    const body = {
      model: deployment.providerModel,
      ...buildClassifierRequest(policy, { humanTexts }, { askCorrection }),
    };
    const { timeoutMs } = policy.classifier;
    const reply = await askProvider({ deployment, organizationId, dialect: systemone, body, timeoutMs }, this.parts);
    if (typeof reply === 'string') return reply;
    return { answer: readClassifierAnswer(reply, policy), uses: [useOf(reply, systemone, deployment)] };
  }

  /**
   * Asks all questions at once, under one deadline. Without a tier there is no answer; any other question may stay
   * unanswered.
   */
  private async askByLogprobs(
    { policy, organizationId, humanTexts, askCorrection }: ClassifierParams,
    deployment: ClassifierDeployment,
  ): Promise<ClassifierReply> {
    const questions = logprobQuestions(
      buildClassifierRequest(policy, { humanTexts }, { askCorrection }),
      deployment.providerModel,
    );
    const { timeoutMs } = policy.classifier;
    const dialect = chatCompletions;
    const replies = await Promise.all(
      questions.map(({ body }) => askProvider({ deployment, organizationId, dialect, body, timeoutMs }, this.parts)),
    );
    const failed = replies[questions.findIndex(({ id }) => id === 'tier')];
    if (typeof failed === 'string') return failed;
    const told = questions.flatMap((question, index) => {
      const reply = replies[index] ?? 'error';
      if (typeof reply === 'string') return [];
      return [{ id: question.id, answer: readLogprobAnswer(question, reply), use: useOf(reply, dialect, deployment) }];
    });
    const answers = Object.fromEntries(told.flatMap(({ id, answer }) => (answer === null ? [] : [[id, answer]])));
    return { answer: answerIn({ answers }, policy), uses: told.map(({ use }) => use) };
  }
}

/** The breaker's subject: a failure with one own key says nothing about another key. */
function subjectOf(model: string, deployment: ClassifierDeployment | null): string {
  const keyId = deployment?.ownKey?.keyId;
  return keyId === undefined ? model : `${model}\0${keyId}`;
}

const ONE_ANSWER = { streamed: false, outputTokensMax: null, answers: 1 };
const nothing = (): null => null;

/** What a reply used, read and rated like a client's reply of that dialect. */
function useOf(reply: Buffer, dialect: Dialect, { price }: ClassifierDeployment): ReplyUse {
  const whole = (): Buffer => reply;
  const relayed = {
    totalBytes: reply.length,
    beginning: whole,
    end: whole,
    longEvent: nothing,
    condensedDocument: nothing,
  };
  const found = { bounds: ONE_ANSWER, relayed, watch: null, cut: false, clientLeft: false, price };
  const { usage, halfReport } = reportedUsage(dialect, found);
  const told = usage ?? halfReport;
  const cost = told === null || price === null ? null : rateUsage(told, price);
  return { inputTokens: told?.inputTokens ?? null, cost };
}

/** Sums the uses of all replies. A figure that is unknown for one reply is unknown for the whole call. */
function callOf({ classifier: { model } }: RoutingPolicy, told: ClassifierReply, latencyMs: number): ClassifierCall {
  let { inputTokens, cost }: ReplyUse =
    typeof told === 'string' ? { inputTokens: null, cost: null } : { inputTokens: 0, cost: picoUsd(0n) };
  for (const use of typeof told === 'string' ? [] : told.uses) {
    inputTokens = inputTokens === null || use.inputTokens === null ? null : inputTokens + use.inputTokens;
    cost = cost === null || use.cost === null ? null : picoUsd(cost + use.cost);
  }
  return { model, inputTokens, cost, latencyMs };
}
