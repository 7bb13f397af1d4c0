// The most a request can cost: what is held before a byte goes upstream (DESIGN 4).

import type { Model } from '../../domain/models/catalog.ts';
import type { WorstPrice } from '../catalog/serving-catalog.ts';
import type { RequestBounds } from '../dialects/dialect.ts';

export interface TokenBounds {
  readonly inputTokensMax: number;
  readonly outputTokensMax: number;
}

/**
 * Bounds on the tokens of a request, or null when its output has no bound.
 * A token is at least one byte of the body, so the body's bytes bound the text; an attachment by reference costs what the model says at most.
 */
export function boundTokens(model: Model, bounds: RequestBounds, bodyBytes: number, attachments: number): TokenBounds | null {
  const context = model.contextLength ?? Number.MAX_SAFE_INTEGER;
  const attachmentTokens = attachments === 0 ? 0 : attachments * (model.attachmentTokensMax ?? context);
  const inputTokensMax = Math.min(context, bodyBytes + attachmentTokens);
  if (inputTokensMax === Number.MAX_SAFE_INTEGER) return null;
  const output = bounds.outputTokensMax ?? model.maxCompletionTokensCap;
  if (output === null) return null;
  // A limit beyond what the model can produce does not make it produce more.
  const perAnswer = model.maxOutputTokens === null ? output : Math.min(output, model.maxOutputTokens);
  const outputTokensMax = perAnswer * bounds.answers;
  return Number.isSafeInteger(outputTokensMax) ? { inputTokensMax, outputTokensMax } : null;
}

/** Worst-case price in pico-dollars. */
export function worstCasePrice(bounds: TokenBounds, price: WorstPrice): bigint {
  return BigInt(bounds.inputTokensMax) * price.input + BigInt(bounds.outputTokensMax) * price.output;
}
