// Converts the counts of a provider's usage object to ours, where the input includes its cached parts and the output
// its reasoning (domain/usage/usage.ts). Counts stay unchecked: `checkUsage` decides whether they can be used.

import type { Usage } from '../../../domain/usage/usage.ts';

export type UsageObject = Readonly<Record<string, unknown>>;

export function objectOf(value: unknown): UsageObject {
  return typeof value === 'object' && value !== null ? (value as UsageObject) : {};
}

/**
 * A count as reported; null: not reported. A value that is present but no number becomes NaN, which `checkUsage`
 * refuses: it must not pass as "not reported".
 */
export function countOf(value: unknown): number | null {
  if (value === undefined || value === null) return null;
  return typeof value === 'number' ? value : Number.NaN;
}

/** The counts of an OpenAI-like report, whose input includes the cached tokens. */
export interface InclusiveCounts {
  readonly input: number | null;
  readonly cached: number | null;
  readonly cacheWrite: number | null;
  readonly output: number | null;
  readonly reasoning: number | null;
  readonly total: number | null;
}

/**
 * Providers agree on the names of these counts and not on what they include. A total decides by arithmetic:
 *  - input + output + reasoning = total: the reasoning is reported beside the output (xAI's chat) and is added to it.
 *  - input + output + cache = total, and the input is less than the cache counts: the cache is beside the input.
 *  - No reasoning is reported and the total is larger: the rest is unnamed reasoning, billed as output (Gemini's chat).
 *  - The input or output is missing: it is the total without the other one.
 * In every other case the report is taken as it is, even if it contradicts itself: `checkUsage` judges that.
 */
export function inclusiveUsage(counts: InclusiveCounts): Usage {
  const { cached, cacheWrite, reasoning, total } = counts;
  const input = counts.input ?? restOf(total, counts.output);
  const output = counts.output ?? restOf(total, counts.input);
  // A total cannot correct an input or output that is no valid count.
  const areCounts = input !== null && output !== null && input >= 0 && output >= 0;
  const rest = total !== null && areCounts ? total - input - output : 0;
  const ofCache = (cached ?? 0) + (cacheWrite ?? 0);
  const cacheIsBeside = ofCache > (input ?? 0) && rest === ofCache;
  const reasoningIsBeside = reasoning !== null && reasoning > 0 && rest === reasoning && !cacheIsBeside;
  const unnamed = reasoning === null && !cacheIsBeside ? rest : 0;
  return {
    inputTokens: cacheIsBeside ? (input ?? 0) + ofCache : input,
    cachedInputTokens: cached,
    cacheWriteTokens: cacheWrite,
    outputTokens: reasoningIsBeside || unnamed > 0 ? (output ?? 0) + rest : output,
    reasoningTokens: unnamed > 0 ? unnamed : reasoning,
    images: null,
  };
}

/** The total without `half`. null: nothing is left, so the missing half may be missing from the total as well. */
function restOf(total: number | null, half: number | null): number | null {
  return total !== null && half !== null && total > half ? total - half : null;
}
