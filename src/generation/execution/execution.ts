// One admitted execution: what is recorded when it starts and, exactly once, when it ends.

import type { Price } from '../../domain/models/catalog.ts';
import type { PicoUsd } from '../../domain/money/pico-usd.ts';
import { type Baseline, baselineCost } from '../../domain/routing/baseline-cost.ts';
import type { Outcome } from '../../domain/settlement/outcome.ts';
import { lacksPrice } from '../../domain/settlement/rate-usage.ts';
import { type Settlement, settle } from '../../domain/settlement/settle.ts';
import type { Usage, UsageSource } from '../../domain/usage/usage.ts';
import { assert } from '../../platform/assert.ts';
import type { Clock } from '../../platform/clock.ts';
import { type Admission, type AdmissionUse, tokensUsed } from '../admission/admission.ts';
import type { SavedResponses } from '../catalog/saved-responses.ts';
import type { Deployment } from '../catalog/serving-catalog.ts';
import type { GenerationMetrics } from './generation-metrics.ts';
import type { KeptStart } from './kept-start.ts';
import type { RecordJournal, RecordOwner } from './record-journal.ts';
import { type EndParts, keepAdmitted, putAdmitted, putTerminal, type StartParts } from './record-text.ts';

export interface Metering {
  readonly journal: RecordJournal;
  readonly clock: Clock;
  readonly metrics: GenerationMetrics;
  readonly savedResponses: SavedResponses;
}

/** The usage to charge by, and where it comes from. */
export interface MeasuredUsage {
  readonly usage: Usage | null;
  /** null exactly when there is no usage. */
  readonly source: UsageSource | null;
  /** What a report that could not be trusted claimed; goes to suspense, never to the wallet. */
  readonly claimed: Usage | null;
  /** Why the provider's report was set aside; null when it was not. */
  readonly distrust: string | null;
  /** A good report of the input alone: the reply broke off before its output was told. */
  readonly inputReport: Usage | null;
  /** The reply says that it ended at its limit on output tokens (spec 2.5). */
  readonly truncated: boolean;
  /** What the reply says it was served with and that has no price; null: nothing. */
  readonly unpriced?: string | null;
}

export const NO_USAGE: MeasuredUsage = {
  usage: null,
  source: null,
  claimed: null,
  distrust: null,
  inputReport: null,
  truncated: false,
};

/** How an execution ended, as far as the relay saw it. */
export interface Ending {
  readonly outcome: Outcome;
  readonly status: number | null;
  readonly errorCode: string | null;
  readonly measured: MeasuredUsage;
  readonly responseBytes: number;
  /** Under which the provider keeps the reply; null where it does not. */
  readonly responseId: string | null;
  /** By which its caller may refer to the items of a reply that the provider keeps. */
  readonly itemIds?: readonly string[];
}

/** Who goes on when a record of an execution, of its start or of its end, is written or cannot be. */
export interface ExecutionOwner {
  onRecorded(): void;
  onUnrecorded(fault: unknown): void;
}

/** What is done once the end is in the spool. */
interface EndInHand {
  readonly ending: Ending;
  readonly end: EndParts;
  readonly settlement: Settlement;
  readonly use: AdmissionUse;
  readonly isUnpriced: boolean;
}

export class Execution implements RecordOwner {
  readonly admission: Admission;
  readonly receivedAtMs: number;
  /** Monotonic time of the provider's first reply byte; null before it. */
  firstByteAtMs: number | null = null;
  /** The end is recorded. */
  settled = false;
  private start: StartParts;
  /** What the record of the start says; the one of the end begins like it. */
  private admitted: KeptStart | null = null;
  /** null: it has not ended. */
  private inHand: EndInHand | null = null;
  /** Who hears of the record that is being written. */
  private owner: ExecutionOwner | null = null;
  private readonly metering: Metering;
  private readonly baseline: Baseline;

  /** Not admitted before `begin` says so. `baseline`: what the cost of a routed request is compared with. */
  constructor(
    start: StartParts,
    admission: Admission,
    receivedAtMs: number,
    metering: Metering,
    baseline: Baseline = null,
  ) {
    this.start = start;
    this.admission = admission;
    this.receivedAtMs = receivedAtMs;
    this.metering = metering;
    this.baseline = baseline;
  }

  get id(): string {
    return this.start.id;
  }

  /**
   * Records the execution as admitted, before a byte goes upstream. Where that cannot be recorded its hold is given
   * back before the owner hears of it, and nothing may be sent.
   */
  begin(owner: ExecutionOwner): void {
    const { journal } = this.metering;
    this.owner = owner;
    this.admitted = putAdmitted(journal.begin(), this.start);
    journal.append(this);
  }

  /** Another deployment serves after the first could not be reached. */
  moveTo(deployment: Deployment): void {
    this.start = { ...this.start, deployment };
    this.admitted?.release();
    this.admitted = keepAdmitted(this.start);
  }

  /** Rates, records and releases. Once, whatever happens: post-or-void (ARCHITECTURE, invariants). */
  end(ending: Ending, owner: ExecutionOwner): void {
    assert(this.inHand === null && this.admitted !== null, 'an execution ends once');
    const { metering, admission, start } = this;
    const { usage, source, claimed, distrust, truncated } = ending.measured;
    const unpriced = unpricedOf(ending.measured, start.deployment.price, admission.hold);
    const settlement = settle({
      outcome: ending.outcome,
      usage,
      usageSource: source,
      claimedUsage: claimed,
      isUnpriced: unpriced !== null,
      price: start.deployment.price,
      billed: admission.hold !== null,
      authorizedAmount: admission.hold,
    });
    const budgetUse = admission.budgetUse(settlement.charge ?? settlement.ratedCost);
    const end: EndParts = {
      endedAtMs: metering.clock.nowMs(),
      outcome: ending.outcome,
      status: ending.status,
      errorCode: distrust ?? unpriced ?? ending.errorCode,
      usage,
      usageSource: source,
      billingStatus: settlement.billingStatus,
      ratedCost: settlement.ratedCost,
      charge: settlement.charge,
      suspense: settlement.suspense,
      latencyMs: this.sinceReceived(metering.clock.monotonicMs()),
      ttftMs: this.firstByteAtMs === null ? null : this.sinceReceived(this.firstByteAtMs),
      responseBytes: ending.responseBytes,
      truncated,
      responseId: ending.responseId,
      itemIds: ending.itemIds ?? [],
      baselineCost:
        this.baseline === null
          ? null
          : baselineCost(this.baseline, { usage, settlement, isBilled: admission.hold !== null }),
      budgetUse: admission.budgets.length === 0 ? null : budgetUse,
    };
    this.inHand = {
      ending,
      end,
      settlement,
      isUnpriced: unpriced !== null,
      use: { charge: settlement.charge ?? 0n, budgetUse, tokens: tokensUsed(ending.outcome, usage) },
    };
    this.owner = owner;
    putTerminal(metering.journal.begin(), this.admitted, end);
    metering.journal.append(this);
  }

  /** By the journal: the record of the start, or of the end, is in the spool. */
  onWritten(): void {
    if (this.inHand !== null) this.settleRecorded(this.inHand);
  }

  goOn(): void {
    this.owner?.onRecorded();
  }

  private settleRecorded({ ending, end, settlement, use, isUnpriced }: EndInHand): void {
    this.settled = true;
    this.admitted?.release();
    // Only after the record is written: money that is free again may be lent or spent at once.
    this.admission.release(use);
    if (ending.responseId !== null) this.rememberResponse(ending.responseId, ending);
    if (isUnpriced) this.metering.metrics.countUnpriced();
    this.metering.metrics.ended(this.start.api, ending, settlement, end.latencyMs, end.ttftMs);
  }

  /** By the journal: the spool has not taken the record, or what went on with it failed. */
  onUnwritten(fault: unknown): void {
    if (this.inHand === null) {
      this.admission.release('refused');
    } else if (!this.settled) {
      this.admission.release('unrecorded');
      this.endUnseen(this.inHand.end);
    }
    this.owner?.onUnrecorded(fault);
  }

  private sinceReceived(atMs: number): number {
    return Math.max(0, Math.round(atMs - this.receivedAtMs));
  }

  private rememberResponse(responseId: string, { measured: { usage }, itemIds = [] }: Ending): void {
    const { principal, walletId, deployment, model } = this.start;
    const owner = { organizationId: principal.organizationId, walletId };
    const [provider, outputTokens] = [deployment.provider.id, usage?.outputTokens ?? null];
    this.metering.savedResponses.remember(owner, responseId, {
      provider,
      model,
      inputTokens: usage?.inputTokens ?? null,
      outputTokens,
    });
    const item = { provider, responseId, outputTokens };
    for (const itemId of itemIds) this.metering.savedResponses.rememberItem(owner, itemId, item);
  }

  /**
   * The end could not be recorded, and so no client sees it: nobody pays (the outcome matrix, `process_killed`), and
   * once the spool takes records again one of them says so. The hold stays held: whether the first record is in the
   * spool all the same is not known for certain.
   */
  private endUnseen(end: EndParts): void {
    const { billingStatus, charge } = settle({
      outcome: 'process_killed',
      usage: null,
      usageSource: null,
      claimedUsage: null,
      price: this.start.deployment.price,
      billed: this.admission.hold !== null,
      authorizedAmount: this.admission.hold,
    });
    const unseen: EndParts = {
      ...end,
      outcome: 'process_killed',
      errorCode: 'record_lost',
      usage: null,
      usageSource: null,
      billingStatus,
      ratedCost: null,
      charge,
      suspense: 0n,
      truncated: false,
      responseId: null,
      baselineCost: null,
      budgetUse: null,
    };
    const { admitted } = this;
    assert(admitted !== null, 'what ends was admitted');
    // Never released: nobody can tell when it has been put for the last time.
    this.metering.journal.appendWhenPossible((group) => putTerminal(group, admitted, unseen));
  }
}

/** Why a billed execution is charged as held: for its record, and the alarm. */
function unpricedOf(
  { usage, unpriced = null }: MeasuredUsage,
  price: Price | null,
  hold: PicoUsd | null,
): string | null {
  if (hold === null) return null;
  if (unpriced !== null) return `usage_unpriced: ${unpriced}`;
  return usage !== null && lacksPrice(usage, price) ? 'usage_unpriced: cache_write_1h' : null;
}
