// What an execution used: the provider's report where there is a good one, else our own count of what was relayed, made
// in the worker pool.

import type { Price } from '../../domain/models/price.ts';
import { checkUsage, NO_USAGE_BOUNDS } from '../../domain/usage/check-usage.ts';
import type { CountTokensInput } from '../../domain/usage/count-tokens-task.ts';
import { NO_COUNTS, type Usage, type UsageDetails } from '../../domain/usage/usage.ts';
import type { WorkerPool } from '../../platform/worker-pool.ts';
import { countTokens } from '../count-tokens.ts';
import type { Dialect, KeptReply, ReplyWatch, RequestBounds } from '../dialects/dialect.ts';
import { type MeasuredUsage, NO_USAGE } from './observed-end.ts';

/** The longest text takes a few seconds. Past this the bound is used instead of the count. */
const COUNT_MS = 10_000;

/** What is kept of a reply's bytes. */
export interface RelayedBytes {
  /** All that were relayed, kept or not. */
  readonly totalBytes: number;
  beginning(): Buffer;
  end(): Buffer;
  /** The last event of a long stream with its short values alone, where it is longer than what is kept of its end. */
  longEvent(): Buffer | null;
  /** A document with its short values alone, where it is longer than what is kept of its beginning. */
  condensedDocument(): Buffer | null;
}

/** What the relay kept and saw of a reply. */
export interface MeasurableReply {
  readonly bounds: RequestBounds;
  readonly relayed: RelayedBytes;
  readonly watch: ReplyWatch | null;
  /** The reply broke off. */
  readonly cut: boolean;
  /** It was the client that broke it off. */
  readonly clientLeft: boolean;
  /** Of who serves. */
  readonly price: Price | null;
}

/**
 * The provider's report in this reply, checked: `usage` is null when there is none that can be charged by. With it,
 * whether the reply was truncated.
 */
export function reportedUsage(
  dialect: Dialect,
  { bounds, relayed, watch, cut, clientLeft, price }: MeasurableReply,
): MeasuredUsage {
  const terms = price?.terms;
  const hasOwnDefault = terms !== undefined && terms.serviceTierDefault !== null;
  const needsPlainNames = bounds.named !== undefined || hasOwnDefault;
  const needsCost = terms !== undefined && terms.cost === 'reported';
  const asksForHourCache = bounds.asksForHourCache === true;
  const kept: KeptReply = {
    beginning: relayed.beginning(),
    end: endOf(relayed),
    condensed: relayed.condensedDocument(),
    cut,
    needsPlainNames,
    needsCost,
    asksForHourCache,
  };
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
  // Half a report cannot be priced: what is missing would be given away, so that is counted.
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

/** What the request named, which counts where the reply does not say. */
function namedIn({ named, plainTier }: RequestBounds, hasOwnDefault: boolean): UsageDetails | undefined {
  return hasOwnDefault && plainTier !== undefined ? { ...named?.details, serviceTier: plainTier } : named?.details;
}

const LINE_END = Buffer.from('\n\n');

/** The end, and before it the short values of a last event that begins further up. */
function endOf(relayed: RelayedBytes): Buffer {
  const long = relayed.longEvent();
  return long === null ? relayed.end() : Buffer.concat([long, LINE_END, relayed.end()]);
}

function countAsUsage(inputTokens: number | null): Usage | null {
  return inputTokens === null ? null : { ...NO_COUNTS, inputTokens };
}

/** What the reply says stands above what the request asked for, and its usage object above the rest of it. */
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
  /** Used where the count fails: never an under-count, and the charge stops at the hold anyway. */
  readonly inputTokensMax: number;
  readonly outputTokensMax: number;
}

export interface CountedUsage {
  readonly measured: MeasuredUsage;
  /** The reply says that it failed, which is read where its tokens are counted. */
  readonly tellsFailure: boolean;
}

/** Counts the tokens of a request and of what was relayed of its reply. Never rejects. */
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
