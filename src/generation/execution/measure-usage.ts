// Measures what an execution used: by the provider's report if it is good, else by counting the relayed texts in the
// worker pool.

import type { Price } from '../../domain/models/price.ts';
import { checkUsage, NO_USAGE_BOUNDS } from '../../domain/usage/check-usage.ts';
import type { CountTokensInput } from '../../domain/usage/count-tokens-task.ts';
import { NO_COUNTS, type Usage, type UsageDetails } from '../../domain/usage/usage.ts';
import type { WorkerPool } from '../../platform/worker-pool.ts';
import { countTokens } from '../count-tokens.ts';
import type { Dialect, ReplyWatch, RequestBounds } from '../dialects/dialect.ts';
import { withDataInOneLine } from '../sse/joined-lines.ts';
import { type MeasuredUsage, NO_USAGE } from './observed-end.ts';

/** How long a count may take; the longest text takes a few seconds. After this the bound is used instead. */
const COUNT_MS = 10_000;

/** The kept bytes of a reply. */
export interface RelayedBytes {
  /** All relayed bytes, kept or not. */
  readonly totalBytes: number;
  beginning(): Buffer;
  end(): Buffer;
  /** A long stream's last event, reduced to its short values, if it is longer than the kept end. */
  longEvent(): Buffer | null;
  /** A document reduced to its short values, if it is longer than the kept beginning. */
  condensedDocument(): Buffer | null;
}

/** What the relay kept and saw of a reply. */
export interface MeasurableReply {
  readonly bounds: RequestBounds;
  readonly relayed: RelayedBytes;
  readonly watch: ReplyWatch | null;
  /** The reply broke off. */
  readonly cut: boolean;
  /** The client broke it off. */
  readonly clientLeft: boolean;
  /** The price of the deployment that served. */
  readonly price: Price | null;
}

/**
 * The provider's report in a reply, checked. `usage` is null if there is none that can be charged by. The result also
 * says whether the reply was truncated.
 */
export function reportedUsage(
  dialect: Dialect,
  { bounds, relayed, watch, cut, clientLeft, price }: MeasurableReply,
): MeasuredUsage {
  const terms = price?.terms;
  const hasOwnDefault = terms !== undefined && terms.serviceTierDefault !== null;
  const needsPlainNames = bounds.namedCosts !== undefined || hasOwnDefault;
  const needsCost = terms !== undefined && terms.cost === 'reported';
  const asksForHourCache = bounds.asksForHourCache === true;
  const kept = withDataInOneLine({
    beginning: relayed.beginning(),
    end: endOf(relayed),
    condensed: relayed.condensedDocument(),
    cut,
    needsPlainNames,
    needsCost,
    asksForHourCache,
  });
  const truncated = dialect.isTruncated?.(kept, watch?.endedBy ?? null) === true;
  const raw = dialect.readUsage(kept, watch, clientLeft);
  const details = joined(namedIn(bounds, hasOwnDefault), dialect.readDetails?.(kept, bounds), raw?.details);
  const unmeasured =
    truncated || details !== undefined
      ? { ...NO_USAGE, truncated, ...(details === undefined ? {} : { details }) }
      : NO_USAGE;
  if (raw === null) return unmeasured;
  // A report above what was held is not refused here: the charge stops at the hold and the rest goes to suspense.
  const checked = checkUsage(raw, NO_USAGE_BOUNDS);
  if (!checked.ok) return { ...unmeasured, claimed: checked.claimed, distrust: `usage_distrusted: ${checked.reason}` };
  const { inputTokens, outputTokens, images } = checked.usage;
  // Half a report cannot be priced, since the missing half would be free. So the missing half is counted.
  const isWhole = dialect.unit === 'images' ? images !== null : inputTokens !== null && outputTokens !== null;
  const isHalf = inputTokens !== null || outputTokens !== null;
  if (!isWhole) return { ...unmeasured, halfReport: isHalf ? checked.usage : null };
  const measured: MeasuredUsage = {
    usage: checked.usage,
    source: 'reported',
    claimed: null,
    distrust: null,
    halfReport: null,
    truncated,
  };
  if (dialect.readCountedTokens !== undefined)
    return { ...measured, counted: countAsUsage(dialect.readCountedTokens(kept)) };
  return details === undefined ? measured : { ...measured, usage: { ...checked.usage, details }, details };
}

/** What the request named, which counts if the reply does not say how it was served. */
function namedIn({ namedCosts, plainTier }: RequestBounds, hasOwnDefault: boolean): UsageDetails | undefined {
  return hasOwnDefault && plainTier !== undefined
    ? { ...namedCosts?.details, serviceTier: plainTier }
    : namedCosts?.details;
}

const LINE_END = Buffer.from('\n\n');

/** The kept end, preceded by the short values of the last event if that begins further up. */
function endOf(relayed: RelayedBytes): Buffer {
  const long = relayed.longEvent();
  return long === null ? relayed.end() : Buffer.concat([long, LINE_END, relayed.end()]);
}

function countAsUsage(inputTokens: number | null): Usage | null {
  return inputTokens === null ? null : { ...NO_COUNTS, inputTokens };
}

/** The reply overrides what the request named, and its usage object overrides the rest of the reply. */
function joined(
  named: UsageDetails | undefined,
  reply: UsageDetails | null | undefined,
  usage: UsageDetails | undefined,
): UsageDetails | undefined {
  if (named === undefined && reply == null) return usage;
  return { ...named, ...reply, ...usage };
}

export interface CountParams {
  readonly api: CountTokensInput['api'];
  readonly encoding: string;
  readonly request: Buffer;
  readonly relayed: RelayedBytes;
  readonly responseIsStream: boolean;
  readonly responseIsCut: boolean;
  /** Used if the count fails. They never count too little, and the charge stops at the hold anyway. */
  readonly inputTokensMax: number;
  readonly outputTokensMax: number;
}

export interface CountedUsage {
  readonly measured: MeasuredUsage;
  /** The reply says that it failed, which is noticed while its tokens are counted. */
  readonly tellsFailure: boolean;
}

/** Counts the tokens of a request and of the relayed part of its reply. Never rejects. */
export async function countUsage(
  params: CountParams,
  workers: WorkerPool,
  report: MeasuredUsage,
): Promise<CountedUsage> {
  const { halfReport: half } = report;
  const toCount = {
    api: params.api,
    encoding: params.encoding,
    request: new Uint8Array(params.request),
    response: new Uint8Array(params.relayed.beginning()),
    responseIsStream: params.responseIsStream,
    responseIsCut: params.responseIsCut,
    responseBytesTotal: params.relayed.totalBytes,
    count: { input: half === null || half.inputTokens === null, output: half === null || half.outputTokens === null },
  };
  const counted = await countTokens(toCount, COUNT_MS, workers);
  const usage: Usage = {
    inputTokens: half?.inputTokens ?? counted?.inputTokens ?? params.inputTokensMax,
    cachedInputTokens: half?.cachedInputTokens ?? null,
    cacheWriteTokens: half?.cacheWriteTokens ?? null,
    hourCacheWriteTokens: half?.hourCacheWriteTokens ?? null,
    outputTokens:
      half?.outputTokens ?? counted?.outputTokens ?? Math.min(params.outputTokensMax, params.relayed.totalBytes),
    reasoningTokens: half?.outputTokens == null ? null : half.reasoningTokens,
    images: null,
    ...(report.details === undefined ? {} : { details: report.details }),
  };
  return { measured: { ...report, usage, source: 'counted' }, tellsFailure: counted?.tellsFailure === true };
}
