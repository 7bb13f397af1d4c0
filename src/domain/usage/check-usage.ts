// Decides whether a provider's reported usage can be charged by. A report out of range never becomes a credit or a
// surprise: it is set aside, the relayed bytes are counted instead, and what was claimed goes to suspense (DESIGN 4).

import type { Usage } from './usage.ts';

/**
 * Counts as they were read from the provider's bytes; nothing is known of them yet. Absent and null both mean "not
 * reported".
 */
export type RawUsage = { readonly [Count in keyof Usage]?: unknown };

/** What was bounded at admission; null where nothing bounds the count. */
export interface UsageBounds {
  readonly inputTokensMax: number | null;
  readonly outputTokensMax: number | null;
  readonly imagesMax: number | null;
}

export const NO_USAGE_BOUNDS: UsageBounds = { inputTokensMax: null, outputTokensMax: null, imagesMax: null };

export type UsageCheck =
  | { readonly ok: true; readonly usage: Usage }
  | {
      readonly ok: false;
      /** For the log and the alarm: names the count and what is wrong with it. */
      readonly reason: string;
      /**
       * The report as counts, when it at least consists of them; what it claims beyond the charge belongs to suspense.
       */
      readonly claimed: Usage | null;
    };

export function checkUsage(raw: RawUsage, bounds: UsageBounds): UsageCheck {
  const wrong = firstWrong(raw);
  if (wrong !== null) return { ok: false, reason: `${wrong} is not a non-negative whole number`, claimed: null };
  const usage = usageOfCounts(raw);
  const problem = outOfRange(usage, bounds);
  return problem === null ? { ok: true, usage } : { ok: false, reason: problem, claimed: usage };
}

/** Each by its name: this runs for every reply. */
function firstWrong(raw: RawUsage): keyof Usage | null {
  if (isWrong(raw.inputTokens)) return 'inputTokens';
  if (isWrong(raw.cachedInputTokens)) return 'cachedInputTokens';
  if (isWrong(raw.cacheWriteTokens)) return 'cacheWriteTokens';
  if (isWrong(raw.hourCacheWriteTokens)) return 'hourCacheWriteTokens';
  if (isWrong(raw.outputTokens)) return 'outputTokens';
  if (isWrong(raw.reasoningTokens)) return 'reasoningTokens';
  return isWrong(raw.images) ? 'images' : null;
}

function isWrong(count: unknown): boolean {
  return count !== null && count !== undefined && !isCount(count);
}

/** -0 is a JSON number that some encoder will write one day; it is zero. */
function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function countOrNull(count: unknown): number | null {
  return isCount(count) ? count + 0 : null;
}

function usageOfCounts(raw: RawUsage): Usage {
  const inputTokens = countOrNull(raw.inputTokens);
  const outputTokens = countOrNull(raw.outputTokens);
  const reasoningTokens = countOrNull(raw.reasoningTokens);
  const cachedInputTokens = countOrNull(raw.cachedInputTokens);
  const cacheWriteTokens = countOrNull(raw.cacheWriteTokens);
  const cacheIsPart = inputTokens !== null && (cachedInputTokens ?? 0) + (cacheWriteTokens ?? 0) <= inputTokens;
  const hourCacheWriteTokens = countOrNull(raw.hourCacheWriteTokens);
  const usage: Usage = {
    inputTokens,
    // Some providers count the cached part of a prompt that they do not show (163 of 7). Then it is not the part we
    // promise: the input is rated whole.
    cachedInputTokens: cacheIsPart ? cachedInputTokens : null,
    cacheWriteTokens: cacheIsPart ? cacheWriteTokens : null,
    outputTokens,
    // Not priced by itself. Some providers count reasoning beside the output and not inside it; then it is not the part
    // we promise, so it is unknown.
    reasoningTokens:
      reasoningTokens !== null && outputTokens !== null && reasoningTokens > outputTokens ? null : reasoningTokens,
    images: countOrNull(raw.images),
  };
  if (hourCacheWriteTokens === null || hourCacheWriteTokens === 0 || usage.cacheWriteTokens === null) return usage;
  // A part is never more than the whole.
  return { ...usage, hourCacheWriteTokens: Math.min(hourCacheWriteTokens, usage.cacheWriteTokens) };
}

function outOfRange(usage: Usage, bounds: UsageBounds): string | null {
  const { inputTokens, outputTokens, images } = usage;
  if (isAbove(inputTokens, bounds.inputTokensMax)) return `inputTokens is above the bound of ${bounds.inputTokensMax}`;
  if (isAbove(outputTokens, bounds.outputTokensMax))
    return `outputTokens is above the bound of ${bounds.outputTokensMax}`;
  if (isAbove(images, bounds.imagesMax)) return `images is above the bound of ${bounds.imagesMax}`;
  return null;
}

function isAbove(count: number | null, bound: number | null): boolean {
  return count !== null && bound !== null && count > bound;
}
