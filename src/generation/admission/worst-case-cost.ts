// Computes the most that a request can cost, which is held before a byte goes to a provider.

import type { Model } from '../../domain/models/catalog.ts';
import type { WorstCall, WorstExtras, WorstPrice, WorstRates, WorstTier } from '../catalog/worst-price.ts';
import type { CallBound, Dialect, RequestBounds } from '../dialects/dialect.ts';

/** The properties of a body that bound its tokens. */
export interface BodyMeasure {
  readonly bytes: number;
  /** How many images and files are given by reference; the body does not tell their size. */
  readonly attachments: number;
  /** The input tokens that the provider adds from a response the request continues; null: not known. */
  readonly carriedTokens: number | null;
}

export interface TokenBounds {
  readonly inputTokensMax: number;
  readonly outputTokensMax: number;
}

/** Bounds on the tokens of a request; null: its input or its output has no bound. */
export function boundTokens(
  dialect: Dialect,
  model: Model,
  bounds: RequestBounds,
  body: BodyMeasure,
): TokenBounds | null {
  const inputTokensMax = boundInput(dialect, model, bounds, body);
  if (inputTokensMax === null) return null;
  const output = bounds.outputTokensMax ?? model.maxCompletionTokensCap;
  if (output === null) return null;
  // A limit beyond what the model can produce does not make it produce more.
  const perAnswer = model.maxOutputTokens === null ? output : Math.min(output, model.maxOutputTokens);
  const outputTokensMax = perAnswer * bounds.answers;
  return Number.isSafeInteger(outputTokensMax) ? { inputTokensMax, outputTokensMax } : null;
}

/**
 * The most tokens that the input can have; null: only the model's context could bound it, and that is not known. A
 * token is at least one byte of the body, so the body's bytes bound the text. An attachment by reference costs at most
 * what the model says.
 */
export function boundInput(dialect: Dialect, model: Model, bounds: RequestBounds, body: BodyMeasure): number | null {
  // Spec 8: images are priced each. Their tokens are for analytics and need no bound.
  if (dialect.unit === 'images') return body.bytes;
  const context = model.contextLength ?? Number.MAX_SAFE_INTEGER;
  const attachmentTokens = body.attachments === 0 ? 0 : body.attachments * (model.attachmentTokensMax ?? context);
  // Search results are read as input, and only the model's context bounds them. Where the context is not known, the
  // hold covers the body alone, as without a search.
  const foundTokens = bounds.maySearch === true && model.contextLength !== null ? context : 0;
  const addedTokens = dialect.overheadTokens + (bounds.toolPromptTokens ?? 0);
  const inputTokensMax = Math.min(
    bounds.isReadInParts === true ? Number.MAX_SAFE_INTEGER : context,
    body.bytes + addedTokens + attachmentTokens + (body.carriedTokens ?? context) + foundTokens,
  );
  return inputTokensMax === Number.MAX_SAFE_INTEGER ? null : inputTokensMax;
}

/** Worst-case cost in pico-dollars; null when a price it needs is not in the catalog. */
export function worstCaseCost(
  dialect: Dialect,
  bounds: RequestBounds,
  tokens: TokenBounds,
  price: WorstPrice,
): bigint | null {
  const extras = price.extras === undefined ? 0n : worstExtras(bounds.calls, price.extras);
  if (dialect.unit === 'images') {
    // Spec 8: images are billed per image. Nothing bounds their tokens, which choose the tier of the price.
    const { image } = price.tiers?.at(-1) ?? price;
    return image === null ? null : BigInt(bounds.answers) * image + extras;
  }
  const rates = price.tiers === undefined ? price : ratesUpTo(tokens.inputTokensMax, price, price.tiers);
  const input = bounds.asksForHourCache === true ? (rates.inputWithHourCache ?? rates.input) : rates.input;
  if (input === null || rates.output === null) return null;
  return BigInt(tokens.inputTokensMax) * input + BigInt(tokens.outputTokensMax) * rates.output + extras;
}

/**
 * What priced tool calls add to the hold. Unbounded calls add nothing: where they must be bounded, the request is
 * refused earlier. A model may also call a tool unasked, up to `unaskedMax`, whatever the request allows.
 */
function worstExtras(calls: readonly CallBound[] = [], { request, calls: prices }: WorstExtras): bigint {
  return Object.entries(prices).reduce((sum, [tool, price]) => {
    const named = calls.filter((bound) => bound.tool === tool);
    const asked = named.reduce((all, bound) => all + BigInt(callsMax(bound, price) ?? 0), 0n);
    const unasked = BigInt(price.unaskedMax);
    return sum + (asked > unasked ? asked : unasked) * price.price;
  }, request as bigint);
}

function callPrice(prices: WorstExtras['calls'], { tool }: CallBound): WorstCall | null {
  return Object.hasOwn(prices, tool) ? (prices[tool] ?? null) : null;
}

function callsMax(bound: CallBound, price: WorstCall): number | null {
  return bound.max ?? price.max;
}

/** The name of a tool whose calls have a price and no bound; null: there is none. */
export function unboundedTool(bounds: RequestBounds, price: WorstPrice | null): string | null {
  for (const bound of bounds.calls ?? []) {
    const found = callPrice(price?.extras?.calls ?? {}, bound);
    if (!bound.isOptional && found !== null && found.price > 0n && callsMax(bound, found) === null) return bound.tool;
  }
  return null;
}

/** The rates of the highest tier that a request with at most this many input tokens reaches. */
function ratesUpTo(inputTokensMax: number, price: WorstPrice, tiers: readonly WorstTier[]): WorstRates {
  return tiers.findLast(({ fromInput }) => inputTokensMax >= fromInput) ?? price;
}
