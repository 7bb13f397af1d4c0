// A client's request on its way through a gateway to a provider and back, in the order of the relay: the start is
// recorded before the request is sent, and the end is recorded before the client sees it.

import type { Principal } from '../../src/domain/identity/principal.ts';
import { picoUsd } from '../../src/domain/money/pico-usd.ts';
import type { Refusal } from '../../src/domain/refusals/refusal.ts';
import type { Outcome } from '../../src/domain/settlement/outcome.ts';
import { NO_COUNTS } from '../../src/domain/usage/usage.ts';
import type { AdmissionParams } from '../../src/generation/admission/plan-holds.ts';
import type { ServedModel } from '../../src/generation/catalog/serving-catalog.ts';
import type { Dialect } from '../../src/generation/dialects/dialect.ts';
import type { Execution, ExecutionOwner } from '../../src/generation/execution/execution.ts';
import { type MeasuredUsage, NO_USAGE } from '../../src/generation/execution/observed-end.ts';
import type { SimulatedGateway } from './simulated-gateway.ts';
import type { World } from './virtual-world.ts';
import type { Expected, Watch } from './watch.ts';

/** Pico-dollars for a token. The prices are prime numbers, so that a sum shows what it consists of. */
const INPUT_PRICE = 1_009n;
const OUTPUT_PRICE = 4_001n;

/** No process of the simulation counts tokens, so the API is one that needs no counts. */
const API = 'systemone';

const DIALECT = {
  api: API,
  path: '/chat/completions',
  outputLimitField: 'max_tokens',
  inputField: 'messages',
  charged: true,
  unit: 'tokens',
  overheadTokens: 3,
} as unknown as Dialect;

const SERVED = {
  model: {
    id: 'model',
    contextLength: null,
    maxOutputTokens: null,
    maxCompletionTokensCap: null,
    attachmentTokensMax: null,
  },
  deployments: new Map([
    [
      API,
      [
        {
          provider: { id: 'provider' },
          providerModel: 'model-2026',
          price: {
            version: '1',
            input: picoUsd(INPUT_PRICE),
            cachedInput: null,
            cacheWrite: null,
            output: picoUsd(OUTPUT_PRICE),
            image: null,
          },
        },
      ],
    ],
  ]),
  worstPrice: new Map([[API, { input: picoUsd(INPUT_PRICE), output: picoUsd(OUTPUT_PRICE), image: null }]]),
} as unknown as ServedModel;

const BODY = Buffer.alloc(4_096, 'x');

export interface RequestPlan {
  readonly principal: Principal;
  readonly bodyBytes: number;
  readonly outputMax: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly provider: 'serves' | 'serves above the bound' | 'refuses' | 'fails' | 'is away' | 'says nothing' | 'cuts';
  readonly firstByteMs: number;
  readonly replyMs: number;
  /** After how long the client leaves; null: it stays. */
  readonly leavesAfterMs: number | null;
}

export function worstPriceOf({ bodyBytes, outputMax }: RequestPlan): bigint {
  return BigInt(bodyBytes + DIALECT.overheadTokens) * INPUT_PRICE + BigInt(outputMax) * OUTPUT_PRICE;
}

export function tokensOf({ bodyBytes, outputMax }: RequestPlan): bigint {
  return BigInt(bodyBytes + DIALECT.overheadTokens + outputMax);
}

function costOf(inputTokens: number, outputTokens: number): bigint {
  return BigInt(inputTokens) * INPUT_PRICE + BigInt(outputTokens) * OUTPUT_PRICE;
}

export type Answer = 'complete' | 'error' | 'cut' | 'left' | Refusal;

export class SimulatedRequest {
  readonly plan: RequestPlan;
  /** The client's answer; null: none yet. */
  answer: Answer | null = null;
  answeredAtMs = 0;
  private readonly world: World;
  private readonly gateway: SimulatedGateway;
  private readonly watch: Watch;
  private execution: Execution | null = null;
  private replied = false;
  private settling = false;
  private clientGone = false;

  constructor(world: World, gateway: SimulatedGateway, watch: Watch, plan: RequestPlan) {
    this.world = world;
    this.gateway = gateway;
    this.watch = watch;
    this.plan = plan;
  }

  /** The request arrives in the gateway's process. */
  arrive(): void {
    const { gateway, plan } = this;
    gateway.openRequests += 1;
    if (plan.leavesAfterMs !== null) gateway.process.in(plan.leavesAfterMs, 'client leaves', () => this.clientLeft());
    gateway.admit(
      this.admissionParams(),
      (execution) => this.begin(execution),
      (refusal) => this.end(refusal),
    );
  }

  private admissionParams(): AdmissionParams {
    const { principal, bodyBytes, outputMax } = this.plan;
    const body = BODY.subarray(0, bodyBytes);
    return {
      principal,
      dialect: DIALECT,
      served: SERVED,
      bounds: { streamed: true, outputTokensMax: outputMax, answers: 1 },
      measure: { bytes: bodyBytes, attachments: 0, carriedTokens: 0 },
      request: { body, scanned: null, form: null },
    };
  }

  private end(answer: Answer): void {
    if (this.answer !== null || !this.gateway.process.alive) return;
    this.answer = answer;
    this.answeredAtMs = this.world.nowMs;
    this.gateway.openRequests -= 1;
    this.world.note(
      `${this.gateway.process.name}: a client is answered: ${typeof answer === 'string' ? answer : answer.kind}`,
    );
    if (answer === 'complete' && this.execution !== null) this.watch.truth(this.execution).seenComplete = true;
  }

  private begin(execution: Execution): void {
    const { plan, gateway } = this;
    this.execution = execution;
    if (this.clientGone) {
      this.settle('aborted_before_first_byte', NO_USAGE, 'left');
      return;
    }
    gateway.process.step('calling the provider');
    const { process } = gateway;
    switch (plan.provider) {
      case 'is away':
        process.in(plan.firstByteMs, 'provider', () => this.settle('connect_failed', NO_USAGE, 'error'));
        break;
      case 'says nothing':
        process.in(plan.firstByteMs + plan.replyMs, 'provider', () => this.settle('no_reply', NO_USAGE, 'error'));
        break;
      case 'refuses':
        process.in(plan.firstByteMs, 'provider', () => this.settle('provider_refused', NO_USAGE, 'error'));
        break;
      case 'fails':
        process.in(plan.firstByteMs, 'provider', () => this.settle('provider_failed', NO_USAGE, 'error'));
        break;
      case 'serves':
      case 'serves above the bound':
      case 'cuts':
        process.in(plan.firstByteMs, 'provider replies', () => {
          this.replied = true;
        });
        process.in(plan.firstByteMs + plan.replyMs, 'provider ends', () => this.replyEnds());
    }
  }

  private replyEnds(): void {
    const { plan } = this;
    if (plan.provider === 'cuts') this.settle('cut_mid_stream', this.usage('counted', 0.5), 'cut');
    else {
      const usage = this.usage('reported', 1);
      this.watch.truth(this.execution as Execution).served = costOf(
        usage.usage?.inputTokens ?? 0,
        usage.usage?.outputTokens ?? 0,
      );
      this.settle('completed', usage, 'complete');
    }
  }

  private usage(source: 'reported' | 'counted', part: number): MeasuredUsage {
    const { inputTokens, outputTokens, provider, outputMax } = this.plan;
    const all = provider === 'serves above the bound' ? outputMax * 3 + 7 : outputTokens;
    const usage = { ...NO_COUNTS, inputTokens, outputTokens: Math.floor(all * part) };
    return { ...NO_USAGE, usage, source };
  }

  private clientLeft(): void {
    if (this.answer !== null) return;
    this.clientGone = true;
    if (this.settling || this.execution === null) return;
    if (this.replied) this.settle('aborted_mid_stream', this.usage('counted', 0.25), 'left');
    else this.settle('aborted_before_first_byte', NO_USAGE, 'left');
  }

  private settle(outcome: Outcome, measured: MeasuredUsage, answer: Answer): void {
    const execution = this.execution as Execution;
    if (this.settling) return;
    this.settling = true;
    this.watch.ending(execution, this.expect(outcome, measured));
    const owner: ExecutionOwner = {
      onRecorded: () => {
        this.watch.recorded(execution);
        this.gateway.process.step('showing the client the end');
        this.end(this.clientGone ? 'left' : answer);
      },
      onUnrecorded: (fault) => {
        this.watch.failed(execution);
        this.world.note(`${this.gateway.process.name}: ${String(fault)}`);
        this.end('cut');
      },
    };
    execution.end({ outcome, status: 200, errorCode: null, measured, responseBytes: 100, responseId: null }, owner);
  }

  private expect(outcome: Outcome, { usage }: MeasuredUsage): Expected {
    const { billed } = this.plan.principal;
    const hold = worstPriceOf(this.plan);
    const cost = usage === null ? null : costOf(usage.inputTokens ?? 0, usage.outputTokens ?? 0);
    const charged = cost === null ? 0n : cost < hold ? cost : hold;
    const tokens = usage === null ? null : BigInt((usage.inputTokens ?? 0) + (usage.outputTokens ?? 0));
    const isFree = outcome === 'connect_failed' || outcome === 'provider_refused' || outcome === 'provider_failed';
    const rest = {
      outcome,
      suspense: cost === null ? 0n : cost - charged,
      budgetUse: charged,
      tokens: isFree ? 0n : tokens,
    };
    if (!billed) return { ...rest, billingStatus: 'not_billed', charge: null };
    if (cost !== null) return { ...rest, billingStatus: 'final', charge: charged };
    const isCancelled = outcome === 'aborted_before_first_byte';
    return { ...rest, billingStatus: isCancelled ? 'cancelled' : 'not_billed', charge: isCancelled ? 0n : null };
  }
}
