// Asks the classifier of a policy about a turn: one attempt with a hard deadline, over the evaluation model's own
// provider path (spec 4.11). An evaluation provider is asked all questions in one call; a chat model that tells
// log-probabilities one question a call, all at once.

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
import { NO_COUNTS } from '../../domain/usage/usage.ts';
import { Breaker } from '../admission/breaker.ts';
import type { ClassifierDeployment, ServingCatalog } from '../catalog/serving-catalog.ts';
import { chatCompletions } from '../dialects/chat-completions.ts';
import { systemone } from '../dialects/systemone.ts';
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

/** Counts what came of a turn's questions. */
export interface ClassifierMetrics {
  /** `latencyMs` null: nobody was asked. */
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

/** The classifier's reply: an answer (null: without a tier of the policy) with its usage, or why there is none. */
type ClassifierReply =
  | { readonly answer: ClassifierAnswer | null; readonly inputTokens: number | null; readonly outputTokens: number }
  | 'timeout'
  | 'error'
  | 'refused';

/** Five in a row, however far apart: every turn would wait for its deadline. */
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
    // Also after a fault of ours the breaker hears of an end: while a probe is under way it lets nobody else ask.
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
    return { result, answer, call: callOf(policy, deployment, told, latencyMs) };
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
    const answer = readClassifierAnswer(reply, policy);
    return { answer, inputTokens: answer?.inputTokens ?? null, outputTokens: 0 };
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
      return typeof reply === 'string' ? [] : [{ id: question.id, ...readLogprobAnswer(question, reply) }];
    });
    const answers = Object.fromEntries(told.flatMap(({ id, answer }) => (answer === null ? [] : [[id, answer]])));
    const inputTokens = sumOf(told.map((one) => one.inputTokens));
    return {
      answer: answerIn({ answers, usage: { input_tokens: inputTokens } }, policy),
      inputTokens,
      outputTokens: sumOf(told.map((one) => one.outputTokens)) ?? 0,
    };
  }
}

/** What the breaker stops: what a classifier fails with an own key says nothing of it with another one. */
function subjectOf(model: string, deployment: ClassifierDeployment | null): string {
  const keyId = deployment?.ownKey?.keyId;
  return keyId === undefined ? model : `${model}\0${keyId}`;
}

/** null: one of the counts is not known. */
function sumOf(counts: readonly (number | null)[]): number | null {
  return counts.reduce((sum, count) => (sum === null || count === null ? null : sum + count), 0);
}

function callOf(
  { classifier }: RoutingPolicy,
  { price }: ClassifierDeployment,
  told: ClassifierReply,
  latencyMs: number,
): ClassifierCall {
  const { inputTokens, outputTokens } = typeof told === 'string' ? { inputTokens: null, outputTokens: 0 } : told;
  const usage = { ...NO_COUNTS, inputTokens, outputTokens };
  return { model: classifier.model, inputTokens, cost: price === null ? null : rateUsage(usage, price), latencyMs };
}
