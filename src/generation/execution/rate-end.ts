// Computes what an execution costs at its end, and the record of that end.

import type { Price } from '../../domain/models/price.ts';
import { formatUsdString } from '../../domain/money/format.ts';
import type { PicoUsd } from '../../domain/money/pico-usd.ts';
import { type Baseline, baselineCost } from '../../domain/routing/baseline-cost.ts';
import { costCeiling, unpricedDetail, unpricedPart } from '../../domain/settlement/rate-usage.ts';
import { type Settlement, settle } from '../../domain/settlement/settle.ts';
import { settleOwnKey } from '../../domain/settlement/settle-own-key.ts';
import type { Usage } from '../../domain/usage/usage.ts';
import type { ExecutionEnd } from '../../records/execution-record.ts';
import {
  OWN_FAILURES_MAX,
  type RecordedAttempt,
  type RecordedDetails,
  type RecordedKeyFailure,
} from '../../records/field-types.ts';
import { type Admission, type AdmissionUse, tokensUsed } from '../admission/admission.ts';
import type { Deployment } from '../catalog/serving-catalog.ts';
import type { Screening } from '../guardrails/screening.ts';
import type { MeasuredUsage, ObservedEnd } from './observed-end.ts';

/** A rated end: its record, and what follows once it is recorded. */
export interface RatedEnd {
  readonly end: ExecutionEnd;
  readonly settlement: Settlement;
  readonly use: AdmissionUse;
  readonly isUnpriced: boolean;
}

export interface RateEndParams {
  readonly admission: Admission;
  /** The deployment that served at last. */
  readonly deployment: Deployment;
  /** Own keys that could not serve before. */
  readonly ownFailures: readonly RecordedKeyFailure[];
  /** null: at most one call was made. */
  readonly attempts: readonly RecordedAttempt[] | null;
  /** What a routed request's cost is compared with. */
  readonly baseline: Baseline;
  readonly screening: Screening | null;
  readonly endedAtMs: number;
  readonly latencyMs: number;
  readonly ttftMs: number | null;
}

export function rateEnd(seen: ObservedEnd, params: RateEndParams): RatedEnd {
  const { admission, deployment, baseline } = params;
  const { price, ownKey } = deployment;
  const { usage, source, distrust, truncated, counted = usage } = seen.measured;
  const recorded = usage === null ? null : detailsOf(usage);
  const { hold } = admission;
  const unpriced = ownKey === undefined ? unpricedOf(seen.measured, price, hold) : null;
  const settlement = settlementOf(seen, deployment, admission, unpriced !== null);
  const budgetUse = admission.budgetUse(countedByBudgets(settlement, deployment));
  // Savings compare what the organization pays to this service, which its own provider's bill is not part of (spec
  // 2.4).
  const compared = ownKey === undefined ? baseline : null;
  const baselined = compared === null ? null : baselineOf(compared, seen.measured, { price, settlement, hold });
  const charge = textOf(settlement.charge);
  const end: ExecutionEnd = {
    outcome: seen.outcome,
    status: seen.status,
    errorCode: distrust ?? unpriced ?? seen.errorCode,
    usageSource: counted === null ? null : source,
    billingStatus: settlement.billingStatus,
    endedAtMs: params.endedAtMs,
    usage: counted,
    charge,
    ratedCost: settlement.ratedCost === settlement.charge ? charge : textOf(settlement.ratedCost),
    suspense: settlement.suspense === 0n ? '0' : settlement.suspense.toString(),
    latencyMs: params.latencyMs,
    ttftMs: params.ttftMs,
    responseBytes: seen.responseBytes,
    baselineCost: textOf(baselined),
    truncated,
    budgetUse: admission.budgets.length === 0 ? null : budgetUse.toString(),
    responseId: seen.responseId,
    itemIds: seen.itemIds ?? [],
    usageDetails: recorded,
    guardrail: params.screening?.rule ?? null,
    screening: params.screening?.report ?? null,
    ownFailures: params.ownFailures.length === 0 ? null : params.ownFailures.slice(0, OWN_FAILURES_MAX),
    attempts: params.attempts,
    fee: ownKey === undefined || ownKey.fee === null ? null : charge,
  };
  const use = { charge: settlement.charge ?? 0n, budgetUse, tokens: tokensUsed(seen.outcome, usage) };
  return { end, settlement, use, isUnpriced: unpriced !== null };
}

function settlementOf(
  { outcome, measured }: ObservedEnd,
  { price, ownKey }: Deployment,
  { hold, costMax }: Admission,
  isUnpriced: boolean,
): Settlement {
  const { usage, source, claimed } = measured;
  if (ownKey !== undefined) return settleOwnKey({ outcome, usage, price, fee: ownKey.fee, authorizedAmount: hold });
  return settle({
    outcome,
    usage,
    usageSource: source,
    claimedUsage: claimed,
    isUnpriced,
    chargeMax: usage?.details?.reportedCost === undefined || price === null ? null : costCeiling(usage, price),
    price,
    billed: hold !== null,
    authorizedAmount: hold ?? costMax,
  });
}

function countedByBudgets({ charge, ratedCost }: Settlement, { ownKey }: Deployment): PicoUsd | null {
  if (ownKey === undefined) return charge ?? ratedCost;
  return ownKey.budgets === 'all' ? ratedCost : charge;
}

/**
 * The record in the place of an end that could not be recorded: no client saw that end, and nobody pays. It has no
 * lists, since the lists may be what fitted into no frame.
 */
export function lostEnd(end: ExecutionEnd, hold: PicoUsd | null, price: Price | null): ExecutionEnd {
  const { billingStatus, charge } = settle({
    outcome: 'process_killed',
    usage: null,
    usageSource: null,
    claimedUsage: null,
    price,
    billed: hold !== null,
    authorizedAmount: hold,
  });
  return {
    ...end,
    outcome: 'process_killed',
    errorCode: 'record_lost',
    usage: null,
    usageSource: null,
    billingStatus,
    ratedCost: null,
    charge: textOf(charge),
    suspense: '0',
    truncated: false,
    responseId: null,
    itemIds: [],
    baselineCost: null,
    budgetUse: null,
    usageDetails: null,
    screening: null,
    ownFailures: null,
    attempts: null,
    fee: null,
  };
}

/** The details that the cost depends on beside the counts; null, as nearly always: none. */
function detailsOf({ hourCacheWriteTokens = 0, details }: Usage): RecordedDetails | null {
  if (details === undefined && (hourCacheWriteTokens ?? 0) === 0) return null;
  const { serviceTier, speed, geo, calls = [], reportedCost } = details ?? {};
  const { inputAudioTokens, cachedAudioTokens, outputAudioTokens } = details ?? {};
  return {
    ...((hourCacheWriteTokens ?? 0) === 0 ? {} : { cache_write_1h_tokens: hourCacheWriteTokens ?? 0 }),
    ...(serviceTier === undefined ? {} : { service_tier: serviceTier }),
    ...(speed === undefined ? {} : { speed }),
    ...(geo === undefined ? {} : { inference_geo: geo }),
    ...(inputAudioTokens === undefined ? {} : { input_audio_tokens: inputAudioTokens }),
    ...(cachedAudioTokens === undefined ? {} : { cached_audio_tokens: cachedAudioTokens }),
    ...(outputAudioTokens === undefined ? {} : { output_audio_tokens: outputAudioTokens }),
    ...(reportedCost === undefined ? {} : { reported_cost_usd: formatUsdString(reportedCost) }),
    ...(calls.length === 0 ? {} : { calls: Object.fromEntries(calls.map(({ tool, count }) => [tool, count])) }),
  };
}

function baselineOf(
  baseline: Baseline,
  { usage }: MeasuredUsage,
  { price, settlement, hold }: { price: Price | null; settlement: Settlement; hold: PicoUsd | null },
): PicoUsd | null {
  const isUnpriced = usage !== null && unpricedPart(usage, price) !== null;
  return baselineCost(baseline, { usage, settlement, isBilled: hold !== null, isUnpriced });
}

function textOf(amount: bigint | null): string | null {
  return amount === null ? null : amount.toString();
}

/** Why a billed execution is charged as held, for its record and the alarm; null: it is not. */
function unpricedOf({ usage, details }: MeasuredUsage, price: Price | null, hold: PicoUsd | null): string | null {
  if (hold === null || (usage === null && details === undefined)) return null;
  const unpriced = usage === null ? unpricedDetail(details ?? {}, price) : unpricedPart(usage, price);
  return unpriced === null ? null : `usage_unpriced: ${unpriced}`;
}
