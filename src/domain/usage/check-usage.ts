// Decides whether a provider's reported usage can be charged by. A report out of range never becomes a credit or a surprise:
// it is set aside, the relayed bytes are counted instead, and what was claimed goes to suspense (DESIGN 4).

import type { Usage } from './usage.ts';

/** Counts as they were read from the provider's bytes; nothing is known of them yet. Absent and null both mean "not reported". */
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
      /** The report as counts, when it at least consists of them; what it claims beyond the charge belongs to suspense. */
      readonly claimed: Usage | null;
    };

const COUNTS = [
  'inputTokens',
  'cachedInputTokens',
  'cacheWriteTokens',
  'outputTokens',
  'reasoningTokens',
  'images',
] as const satisfies readonly (keyof Usage)[];

export function checkUsage(raw: RawUsage, bounds: UsageBounds): UsageCheck {
  for (const name of COUNTS) {
    const count = raw[name] ?? null;
    if (count !== null && !isCount(count)) return { ok: false, reason: `${name} is not a non-negative whole number`, claimed: null };
  }
  const usage = usageOfCounts(raw);
  const problem = outOfRange(usage, bounds);
  return problem === null ? { ok: true, usage } : { ok: false, reason: problem, claimed: usage };
}

/** -0 is a JSON number that some encoder will write one day; it is zero. */
function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function usageOfCounts(raw: RawUsage): Usage {
  const count = (name: keyof Usage): number | null => (isCount(raw[name]) ? (raw[name] as number) + 0 : null);
  const inputTokens = count('inputTokens');
  const outputTokens = count('outputTokens');
  const reasoningTokens = count('reasoningTokens');
  const cachedInputTokens = count('cachedInputTokens');
  const cacheWriteTokens = count('cacheWriteTokens');
  const cacheIsPart = inputTokens !== null && (cachedInputTokens ?? 0) + (cacheWriteTokens ?? 0) <= inputTokens;
  return {
    inputTokens,
    // Some providers count the cached part of a prompt that they do not show (163 of 7). Then it is not the part we promise: the input is rated whole.
    cachedInputTokens: cacheIsPart ? cachedInputTokens : null,
    cacheWriteTokens: cacheIsPart ? cacheWriteTokens : null,
    outputTokens,
    // Not priced by itself. Some providers count reasoning beside the output and not inside it; then it is not the part we promise, so it is unknown.
    reasoningTokens: reasoningTokens !== null && outputTokens !== null && reasoningTokens > outputTokens ? null : reasoningTokens,
    images: count('images'),
  };
}

function outOfRange(usage: Usage, bounds: UsageBounds): string | null {
  const { inputTokens, outputTokens, images } = usage;
  if (isAbove(inputTokens, bounds.inputTokensMax)) return `inputTokens is above the bound of ${bounds.inputTokensMax}`;
  if (isAbove(outputTokens, bounds.outputTokensMax)) return `outputTokens is above the bound of ${bounds.outputTokensMax}`;
  if (isAbove(images, bounds.imagesMax)) return `images is above the bound of ${bounds.imagesMax}`;
  return null;
}

function isAbove(count: number | null, bound: number | null): boolean {
  return count !== null && bound !== null && count > bound;
}
