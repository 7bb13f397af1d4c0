// What the end of an execution costs, and what its record says.

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

/** An end with its cost: what is recorded of it, and what is done once it is recorded. */
export interface RatedEnd {
  readonly end: ExecutionEnd;
  readonly settlement: Settlement;
  readonly use: AdmissionUse;
  readonly isUnpriced: boolean;
}

export interface RateEndParams {
  readonly admission: Admission;
  /** Who served at last. */
  readonly deployment: Deployment;
  /** What became of the organization's own keys before. */
  readonly ownFailures: readonly RecordedKeyFailure[];
  /** null: no more than one call was made. */
  readonly attempts: readonly RecordedAttempt[] | null;
  /** What the cost of a routed request is compared with. */
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
  // Savings compare what the organization pays here, and its own provider's bill is none of that (spec 2.4).
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
 * What is recorded instead of an end that could not be recorded: no client saw it, and nobody pays. It has none of the
 * lists, since it may be these that no frame could hold.
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

/** null, as nearly always: the counts are all that the cost depends on. */
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

/** Why a billed execution is charged as held: for its record, and the alarm. */
function unpricedOf({ usage, details }: MeasuredUsage, price: Price | null, hold: PicoUsd | null): string | null {
  if (hold === null || (usage === null && details === undefined)) return null;
  const unpriced = usage === null ? unpricedDetail(details ?? {}, price) : unpricedPart(usage, price);
  return unpriced === null ? null : `usage_unpriced: ${unpriced}`;
}
