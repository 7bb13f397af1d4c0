// One admitted execution: what is recorded when it starts and, exactly once, when it ends.

import type { ExecutionStart, TerminalRecord } from '../../domain/executions/execution-record.ts';
import type { Outcome } from '../../domain/settlement/outcome.ts';
import { settle } from '../../domain/settlement/settle.ts';
import type { Usage, UsageSource } from '../../domain/usage/usage.ts';
import { assert } from '../../platform/assert.ts';
import type { Clock } from '../../platform/clock.ts';
import { type Admission, tokensUsed } from '../admission/admission.ts';
import type { SavedResponses } from '../catalog/saved-responses.ts';
import type { Offer } from '../catalog/serving-catalog.ts';
import type { GenerationMetrics } from './generation-metrics.ts';
import type { RecordJournal } from './record-journal.ts';

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
}

export const NO_USAGE: MeasuredUsage = { usage: null, source: null, claimed: null, distrust: null, inputReport: null };

/** How an execution ended, as far as the relay saw it. */
export interface Ending {
  readonly outcome: Outcome;
  readonly status: number | null;
  readonly errorCode: string | null;
  readonly measured: MeasuredUsage;
  readonly responseBytes: number;
  /** Under which the provider keeps the reply; null where it does not. */
  readonly responseId: string | null;
}

/** What a terminal record says beyond the start that it repeats. */
type EndFields = Omit<TerminalRecord, keyof ExecutionStart | 'type'>;

export class Execution {
  readonly admission: Admission;
  readonly receivedAtMs: number;
  /** Monotonic time of the provider's first reply byte; null before it. */
  firstByteAtMs: number | null = null;
  /** The end is recorded. */
  settled = false;
  private ending = false;
  private start: ExecutionStart;
  /** The fields of `start` as JSON text, written into both records: `"id":...}`. */
  private startText: string;
  private offer: Offer;
  private readonly metering: Metering;

  /** Records the execution as admitted, before a byte goes upstream. null when it cannot be recorded: its hold is given back and nothing may be sent. */
  static async begin(start: ExecutionStart, offer: Offer, admission: Admission, receivedAtMs: number, metering: Metering): Promise<Execution | null> {
    const startText = JSON.stringify(start).slice(1);
    try {
      await metering.journal.append(`{"type":"admitted",${startText}`);
    } catch {
      admission.release('refused');
      return null;
    }
    return new Execution(start, startText, offer, admission, receivedAtMs, metering);
  }

  private constructor(start: ExecutionStart, startText: string, offer: Offer, admission: Admission, receivedAtMs: number, metering: Metering) {
    this.start = start;
    this.startText = startText;
    this.offer = offer;
    this.admission = admission;
    this.receivedAtMs = receivedAtMs;
    this.metering = metering;
  }

  get id(): string {
    return this.start.id;
  }

  /** Another offer serves after the first could not be reached. */
  moveTo(offer: Offer): void {
    this.offer = offer;
    this.start = { ...this.start, provider: offer.provider.id, providerModel: offer.providerModel, priceVersion: offer.price?.version ?? null };
    this.startText = JSON.stringify(this.start).slice(1);
  }

  /** Rates, records and releases. Once, whatever happens: post-or-void (ARCHITECTURE, invariants). Rejects when the end could not be recorded. */
  async end(ending: Ending): Promise<void> {
    assert(!this.ending, 'an execution ends once');
    this.ending = true;
    const { metering, admission, start } = this;
    const { usage, source, claimed, distrust } = ending.measured;
    const settlement = settle({
      outcome: ending.outcome,
      usage,
      usageSource: source,
      claimedUsage: claimed,
      price: this.offer.price,
      billed: admission.hold !== null,
      authorizedAmount: admission.hold,
    });
    const budgetUse = admission.budgetUse(settlement.charge ?? settlement.ratedCost);
    const endedAtMs = metering.clock.monotonicMs();
    const latencyMs = Math.max(0, Math.round(endedAtMs - this.receivedAtMs));
    const ttftMs = this.firstByteAtMs === null ? null : Math.max(0, Math.round(this.firstByteAtMs - this.receivedAtMs));
    const end: EndFields = {
      endedAtMs: metering.clock.nowMs(),
      outcome: ending.outcome,
      status: ending.status,
      errorCode: distrust ?? ending.errorCode,
      usage,
      usageSource: source,
      billingStatus: settlement.billingStatus,
      ratedCost: settlement.ratedCost === null ? null : settlement.ratedCost.toString(),
      charge: settlement.charge === null ? null : settlement.charge.toString(),
      suspense: settlement.suspense.toString(),
      latencyMs,
      ttftMs,
      responseBytes: ending.responseBytes,
      ...(ending.responseId === null ? {} : { responseId: ending.responseId }),
      ...(admission.budgets.length === 0 ? {} : { budgetUse: budgetUse.toString() }),
    };
    try {
      await metering.journal.append(this.terminalText(end));
    } catch (fault) {
      admission.release('unrecorded');
      this.endUnseen(end);
      throw fault;
    }
    this.settled = true;
    // Only after the record is written: money that is free again may be lent or spent at once.
    admission.release({ charge: settlement.charge ?? 0n, budgetUse, tokens: tokensUsed(ending.outcome, usage) });
    if (ending.responseId !== null) {
      const { model, provider } = start;
      metering.savedResponses.remember(start, ending.responseId, {
        provider,
        model,
        inputTokens: usage?.inputTokens ?? null,
        outputTokens: usage?.outputTokens ?? null,
      });
    }
    metering.metrics.ended(start.api, ending, settlement, latencyMs, ttftMs);
  }
  private terminalText(end: EndFields): string {
    return `{"type":"terminal",${this.startText.slice(0, -1)},${JSON.stringify(end).slice(1)}`;
  }

  /**
   * The end could not be recorded, and so no client sees it: nobody pays (the outcome matrix, `process_killed`), and once the spool takes records again one
   * of them says so. The hold stays held: whether the first record is in the spool all the same is not known for certain.
   */
  private endUnseen(end: EndFields): void {
    const { billingStatus, charge } = settle({
      outcome: 'process_killed',
      usage: null,
      usageSource: null,
      claimedUsage: null,
      price: this.offer.price,
      billed: this.admission.hold !== null,
      authorizedAmount: this.admission.hold,
    });
    const unseen: EndFields = {
      endedAtMs: end.endedAtMs,
      outcome: 'process_killed',
      status: end.status,
      errorCode: 'record_lost',
      usage: null,
      usageSource: null,
      billingStatus,
      ratedCost: null,
      charge: charge === null ? null : charge.toString(),
      suspense: '0',
      latencyMs: end.latencyMs,
      ttftMs: end.ttftMs,
      responseBytes: end.responseBytes,
    };
    this.metering.journal.appendWhenPossible(this.terminalText(unseen));
  }
}
