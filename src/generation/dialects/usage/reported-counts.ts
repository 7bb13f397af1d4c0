// Turns the counts of a provider's usage object into ours: the input with its cached parts, the output with its
// reasoning (domain/usage/usage.ts). Counts stay as written: `checkUsage` decides whether they can be used.

import type { Usage } from '../../../domain/usage/usage.ts';

export type UsageObject = Readonly<Record<string, unknown>>;

export function objectOf(value: unknown): UsageObject {
  return typeof value === 'object' && value !== null ? (value as UsageObject) : {};
}

/**
 * A count as reported. A value that is present but no number becomes NaN, which `checkUsage` refuses: it must not pass
 * as "not reported".
 */
export function countOf(value: unknown): number | null {
  if (value === undefined || value === null) return null;
  return typeof value === 'number' ? value : Number.NaN;
}

/** The counts of an OpenAI-like report, whose input includes what was cached. */
export interface InclusiveCounts {
  readonly input: number | null;
  readonly cached: number | null;
  readonly cacheWrite: number | null;
  readonly output: number | null;
  readonly reasoning: number | null;
  readonly total: number | null;
}

/**
 * Providers agree on the names and not on what they include. The total, where there is one, tells by arithmetic: when
 * input + output + reasoning make it, the reasoning stands beside the output (xAI's chat) and is added to it. Where no
 * reasoning is told and the total is larger, the rest of it is thoughts that nobody named, and which are billed as
 * output (Gemini's chat), unless the rest is what the cache had, of which the input is too small to be the whole: then
 * that stands beside it. A half that is not told is what the total has beside the other. In every other case a report
 * is taken as it stands, one that contradicts itself included: that is for `checkUsage`.
 */
export function inclusiveUsage(counts: InclusiveCounts): Usage {
  const { cached, cacheWrite, reasoning, total } = counts;
  const input = counts.input ?? restOf(total, counts.output);
  const output = counts.output ?? restOf(total, counts.input);
  // A total makes no count of what is none.
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

/** null: nothing is left, so that the half may have been left out of the total as well. */
function restOf(total: number | null, half: number | null): number | null {
  return total !== null && half !== null && total > half ? total - half : null;
}
