// Decides whether a provider's reported usage can be charged by. If a count is out of range, the report is set aside,
// the relayed bytes are counted instead, and what the report claimed goes to suspense.

import type { Usage } from './usage.ts';

/** Counts as read from the provider's bytes, not checked yet. Absent and null both mean "not reported". */
export type RawUsage = { readonly [Count in Exclude<keyof Usage, 'details'>]?: unknown } & Pick<Usage, 'details'>;

/** The bounds from admission; null where a count is not bounded. */
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
      /** Names the count and what is wrong with it, for the log and the alarm. */
      readonly reason: string;
      /** The report's counts, if they are counts at all; what they claim beyond the charge goes to suspense. */
      readonly claimed: Usage | null;
    };

export function checkUsage(raw: RawUsage, bounds: UsageBounds): UsageCheck {
  const wrong = firstWrong(raw);
  if (wrong !== null) return { ok: false, reason: `${wrong} is not a non-negative whole number`, claimed: null };
  const usage = usageOfCounts(raw);
  const problem = outOfRange(usage, bounds);
  return problem === null ? { ok: true, usage } : { ok: false, reason: problem, claimed: usage };
}

/** Each field by name and not in a loop, since this runs for every reply. */
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

/** -0 is a valid JSON number and counts as zero. */
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
  const counts: Usage = {
    inputTokens,
    // Some providers report more cached tokens than input tokens (163 of 7, as they do not show all of the prompt).
    // Such a part is dropped and the input is rated whole.
    cachedInputTokens: cacheIsPart ? cachedInputTokens : null,
    cacheWriteTokens: cacheIsPart ? cacheWriteTokens : null,
    outputTokens,
    // Reasoning has no price of its own. Some providers count it beside the output instead of inside it; then it is not
    // a part of the output, so it is recorded as unknown.
    reasoningTokens:
      reasoningTokens !== null && outputTokens !== null && reasoningTokens > outputTokens ? null : reasoningTokens,
    images: countOrNull(raw.images),
  };
  const usage = raw.details === undefined ? counts : { ...counts, details: raw.details };
  if (hourCacheWriteTokens === null || hourCacheWriteTokens === 0 || usage.cacheWriteTokens === null) return usage;
  // A part cannot be more than the whole.
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
