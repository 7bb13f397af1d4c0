// Refuses a typed-question request that does not fit its model's context: the model reads the state with one question
// at a time, so the state and the longest question must fit together (spec 4.9, 8).

import type { Refusal } from '../refusals/refusal.ts';

/** Texts are counted in pieces of this size, so that a text far beyond the context is not counted to its end. */
const PIECE_CHARACTERS_MAX = 65_536;

/**
 * null: the request fits. Only the texts are counted, keys included, but not what a provider adds around them: the
 * provider refuses a request that is only a little too long.
 */
export function refuseTooLong(
  { state, questions }: Readonly<Record<string, unknown>>,
  contextLength: number,
  count: (text: string) => number,
): Refusal | null {
  const stateText = textOf(state);
  const questionTexts = typeof questions === 'object' && questions !== null ? Object.values(questions).map(textOf) : [];
  // A token is at least one byte.
  const longestBytes = questionTexts.reduce((most, text) => Math.max(most, Buffer.byteLength(text)), 0);
  if (Buffer.byteLength(stateText) + longestBytes <= contextLength) return null;
  const left = contextLength - countUpTo(contextLength, stateText, count);
  const isTooLong = (text: string): boolean => Buffer.byteLength(text) > left && countUpTo(left, text, count) > left;
  return left < 0 || questionTexts.some(isTooLong) ? { kind: 'context_length_exceeded', contextLength } : null;
}

/** The number of tokens of a text; for a text with more than `most` tokens, some number above `most`. */
function countUpTo(most: number, text: string, count: (text: string) => number): number {
  let tokens = 0;
  for (let from = 0; from < text.length && tokens <= most; from += PIECE_CHARACTERS_MAX)
    tokens += count(text.slice(from, from + PIECE_CHARACTERS_MAX));
  return tokens;
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return '';
  if (Array.isArray(value)) return value.map(textOf).join('\n');
  return Object.entries(value)
    .map(([key, inner]) => `${key}\n${textOf(inner)}`)
    .join('\n');
}
