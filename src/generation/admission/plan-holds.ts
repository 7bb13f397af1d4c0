// Plans what a request must hold: under each limit that applies to it a concurrency slot, one request, its tokens or
// its price, and the price from the wallet that pays (spec 8). Refuses a request that has no bound where it needs one.

import type { Principal, PrincipalLimit } from '../../domain/identity/principal.ts';
import { OUTPUT_LIMITS } from '../../domain/models/provider.ts';
import { type PicoUsd, picoUsd, ZERO_PICO_USD } from '../../domain/money/pico-usd.ts';
import { flatFee } from '../../domain/own-keys/fee-price.ts';
import type { LimitKind } from '../../domain/quotas/limit-kinds.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import { pricedDeployments } from '../catalog/priced-deployments.ts';
import { type Deployment, type ServedModel, walletPrice } from '../catalog/serving-catalog.ts';
import { type Named, type WorstPrice, worstOf } from '../catalog/worst-price.ts';
import type { Dialect, RequestBounds } from '../dialects/dialect.ts';
import type { ScannedBody } from '../request/scanned-body.ts';
import { HOUR_CACHE_UNPRICED } from '../request/unpriced-fields.ts';
import type { QuotaNeed } from './leases/quota-leases.ts';
import { showLimit } from './refuse-shortage.ts';
import {
  type BodyMeasure,
  boundInput,
  boundTokens,
  type TokenBounds,
  unboundedTool,
  worstCaseCost,
} from './worst-case-cost.ts';

export interface AdmissionParams {
  readonly principal: Principal;
  readonly dialect: Dialect;
  readonly served: ServedModel;
  readonly bounds: RequestBounds;
  readonly measure: BodyMeasure;
  readonly request: ScannedBody;
}

export interface HoldPlan {
  /** null when the organization is not billed and the request has no bound. */
  readonly tokenBounds: TokenBounds | null;
  readonly walletId: string | null;
  /**
   * The most that the request can cost. When nobody is billed, the most by the prices there are: 0 when no deployment
   * has a price or the request has no bound.
   */
  readonly price: PicoUsd;
  /** Whether the request could be billed. Then a reported usage that costs more than the price is not believed. */
  readonly isBillable: boolean;
  /** The most that budgets count of the request: the price, unless budgets count all that own keys use. */
  readonly budgetPrice: PicoUsd;
  /** How the request could be made cheaper, when its output limit cannot do that. */
  readonly cheaper: string | undefined;
  /** Whether the wallet holds the price. */
  readonly billed: boolean;
  /** The limits that apply to the request. */
  readonly limits: readonly PrincipalLimit[];
  /** In the order in which they are held, which is also the order in which they refuse. The wallet is last. */
  readonly needs: readonly QuotaNeed[];
}

/** `measure` is that of the body, or of the part of it that is known. */
export function planHolds(asked: AdmissionParams, measure: BodyMeasure): HoldPlan | Refusal {
  const params = withHonoredOutputLimits(asked);
  const { principal, dialect, served, bounds } = params;
  const tokenBounds = boundTokens(dialect, served.model, bounds, measure);
  // A request that is free of charge still belongs to the payer, since only the payer may find its record.
  const { walletId } = principal;
  const billed = principal.billed && dialect.charged;
  if (billed && walletId === null) return { kind: 'principal_provisioning' };
  const priceBounds = tokenBounds ?? (billed ? null : boundByModel(params, measure));
  const bound = dialect.charged ? boundPrice(params, priceBounds, measure) : ZERO_PICO_USD;
  const isBillable = typeof bound !== 'object';
  if (billed && !isBillable) return bound;
  const price = isBillable ? bound : unbillablePrice(params, priceBounds);
  const budgetPrice = countsOwnUse(params) ? ratedPrice(params, priceBounds, price) : price;
  if (typeof budgetPrice === 'object') return budgetPrice;
  const limits = principal.limits.length === 0 ? principal.limits : limitsOf(principal, served);
  const underLimits = limits.length === 0 ? NO_NEEDS : needsUnder(limits, params, tokenBounds, budgetPrice);
  if ('kind' in underLimits) return underLimits;
  const ofWallet: QuotaNeed | null =
    billed && walletId !== null && price > 0n ? { quota: { kind: 'credit', key: walletId }, amount: price } : null;
  const needs = ofWallet === null ? underLimits : underLimits.length === 0 ? [ofWallet] : [...underLimits, ofWallet];
  return {
    tokenBounds,
    walletId,
    price,
    isBillable,
    budgetPrice,
    cheaper: dialect.cheaper,
    billed,
    limits,
    needs,
  };
}

/**
 * When a provider that may serve the request ignores all output limits that the request sets, the model's cap bounds
 * the output, as for a request that sets no limit.
 */
function withHonoredOutputLimits(params: AdmissionParams): AdmissionParams {
  const { bounds, served } = params;
  const { outputLimits, outputTokensMax } = bounds;
  if (outputLimits === undefined || outputTokensMax === null) return params;
  const set = OUTPUT_LIMITS.filter((name) => outputLimits[name] !== undefined);
  const ignoresThem = ({ provider: { requests } }: Deployment): boolean =>
    set.every((name) => requests?.ignores?.includes(name) === true);
  if (!deploymentsOf(params).some(ignoresThem)) return params;
  const cap = served.model.maxCompletionTokensCap;
  return { ...params, bounds: { ...bounds, outputTokensMax: cap === null ? null : Math.max(cap, outputTokensMax) } };
}

const NO_NEEDS: readonly QuotaNeed[] = [];

function needsUnder(
  limits: readonly PrincipalLimit[],
  params: AdmissionParams,
  tokenBounds: TokenBounds | null,
  budgetPrice: PicoUsd,
): readonly QuotaNeed[] | Refusal {
  const needs: QuotaNeed[] = [];
  for (const kind of HELD_IN_ORDER) {
    for (const limit of limits) {
      const amount = limit.kind === kind ? amountUnder(limit, params, tokenBounds, budgetPrice) : 0n;
      if (typeof amount === 'object') return amount;
      if (amount > 0n) needs.push({ quota: { kind, key: limit.id }, amount, ceiling: limit.amount });
    }
  }
  return needs;
}

/**
 * All processes hold in one order, so that they cannot wait for each other. The first quota that is used up names the
 * refusal.
 */
const HELD_IN_ORDER = Object.keys({
  concurrent_requests: true,
  requests_per_minute: true,
  tokens_per_minute: true,
  budget: true,
} satisfies Record<LimitKind, true>) as LimitKind[];

/** The price that a wallet must hold, or the refusal of a request that has no such price. */
function boundPrice(params: AdmissionParams, tokenBounds: TokenBounds | null, measure: BodyMeasure): PicoUsd | Refusal {
  const { bounds } = params;
  const flat = flatPrice(params);
  if (flat !== null) return flat;
  const unbillable =
    bounds.refusalIfBilled ?? refuseBackground(bounds) ?? refuseNamed(params) ?? refuseHourCache(params);
  if (unbillable !== null) return unbillable;
  const price = tokenBounds === null ? null : worstPrice(params, tokenBounds);
  if (price === null && !isPriced(params)) return UNPRICED_MODEL;
  const unbounded = bounds.calls === undefined ? null : unboundedTool(bounds, worstRates(params));
  if (unbounded !== null) return unboundedCalls(unbounded);
  if (tokenBounds === null) return { kind: 'not_safely_billable', ...missingBound(params) };
  const lifted = refuseLiftedCeilings(params, measure, tokenBounds);
  if (lifted !== null) return lifted;
  return price ?? UNPRICED_MODEL;
}

function deploymentsOf({ dialect, served }: AdmissionParams): readonly Deployment[] {
  return served.deployments.get(dialect.api) ?? [];
}

/**
 * The price of a request that costs the same whatever it uses: only own keys serve it, and their fees do not depend on
 * the use. null: the use decides.
 */
function flatPrice(params: AdmissionParams): PicoUsd | null {
  let highest = ZERO_PICO_USD;
  const deployments = deploymentsOf(params);
  for (const { ownKey } of deployments) {
    const fee = ownKey === undefined ? null : flatFee(ownKey.fee);
    if (fee === null) return null;
    if (fee > highest) highest = fee;
  }
  return deployments.length === 0 ? null : highest;
}

/** Whether a budget counts everything that an own key uses instead of what the platform charges for it. */
function countsOwnUse(params: AdmissionParams): boolean {
  const { principal, dialect } = params;
  if (!dialect.charged || !principal.limits.some(({ kind }) => kind === 'budget')) return false;
  return deploymentsOf(params).some(({ ownKey }) => ownKey?.budgets === 'all');
}

/** The most that the usage can be rated at, whichever deployment serves and whoever pays. */
function ratedPrice(params: AdmissionParams, tokenBounds: TokenBounds | null, price: PicoUsd): PicoUsd | Refusal {
  const { dialect, bounds } = params;
  const prices = deploymentsOf(params).map((deployment) => deployment.price);
  const worst = worstOf(prices, namedOf(bounds));
  const rated = worst === null || tokenBounds === null ? null : worstCaseCost(dialect, bounds, tokenBounds, worst);
  // A request without a bound or a price cannot be counted against a budget that counts everything.
  if (rated === null) return { kind: 'traffic_token_bound_required', under: 'budget', ...missingBound(params) };
  return rated > price ? picoUsd(rated) : price;
}

const UNPRICED_MODEL: Refusal = {
  kind: 'not_safely_billable',
  field: 'model',
  reason: 'This model has no catalog price, so its cost has no upper bound.',
  advice: 'Name a model that has one; GET /v1/models shows prices.',
};

function unboundedCalls(tool: string): Refusal {
  return {
    kind: 'not_safely_billable',
    field: 'tools',
    reason: `Calls of the tool "${tool}" are priced, and nothing bounds how many there are.`,
    advice: 'Set "max_uses" of the tool, or "max_tool_calls" of a response.',
  };
}

/** Whether the catalog has the price of one token each way, or of one image. */
function isPriced(params: AdmissionParams): boolean {
  const { dialect, bounds } = params;
  const price = worstRates(params);
  return price !== null && worstCaseCost(dialect, bounds, { inputTokensMax: 1, outputTokensMax: 1 }, price) !== null;
}

/**
 * What a request lacks whose tokens have no bound. A missing bound of the input is named first, since its sender cannot
 * set that one.
 */
function missingBound({ dialect, served, bounds, measure }: AdmissionParams): {
  readonly field: string;
  readonly reason?: string;
  readonly advice?: string;
} {
  if (boundInput(dialect, served.model, bounds, measure) !== null) return { field: dialect.outputLimitField };
  return { field: dialect.inputField, ...CONTEXT_UNKNOWN };
}

const CONTEXT_UNKNOWN = {
  reason:
    'The catalog has no "context_length" for this model, so what this request refers to and does not send itself, ' +
    'such as a file or an earlier response, has no upper bound.',
  advice: 'Send it in the request itself, or ask the operator to add "context_length" to the model.',
};

/**
 * Refuses a request whose client names a beta that lets the model read or write more than the catalog says, if this
 * request could do so: providers ask higher prices for that, too.
 */
function refuseLiftedCeilings(
  { dialect, served: { model }, bounds }: AdmissionParams,
  measure: BodyMeasure,
  capped: TokenBounds,
): Refusal | null {
  const { betaCeilings } = bounds;
  if (betaCeilings === undefined) return null;
  const contextLength = model.contextLength === null ? null : Math.max(model.contextLength, betaCeilings.context);
  const maxOutputTokens = model.maxOutputTokens === null ? null : Math.max(model.maxOutputTokens, betaCeilings.output);
  const lifted = boundTokens(dialect, { ...model, contextLength, maxOutputTokens }, bounds, measure);
  if (lifted?.inputTokensMax === capped.inputTokensMax && lifted.outputTokensMax === capped.outputTokensMax)
    return null;
  return {
    kind: 'not_safely_billable',
    field: 'anthropic-beta',
    reason:
      'A beta named in the header "anthropic-beta" lets the model use more tokens than the catalog has a price for.',
    advice: 'Leave betas like "context-1m" and "output-128k" out, or send less and ask for less.',
  };
}

/**
 * Refuses a background response: it reports its usage only to a client that fetches it later, and the bill must not
 * depend on that.
 */
function refuseBackground(bounds: RequestBounds): Refusal | null {
  if (bounds.saved?.background !== true) return null;
  return {
    kind: 'not_safely_billable',
    field: 'background',
    reason: '"background" cannot be billed. A background response reports its usage only after the request has ended.',
    advice: 'Leave "background" out, or stream the response.',
  };
}

/** Every deployment that may serve must have a price for the one-hour cache. */
function refuseHourCache(params: AdmissionParams): Refusal | null {
  if (params.bounds.asksForHourCache !== true) return null;
  return worstRates(params)?.inputWithHourCache == null ? HOUR_CACHE_UNPRICED : null;
}

function refuseNamed(params: AdmissionParams): Refusal | null {
  const { namedCosts } = params.bounds;
  if (namedCosts === undefined) return null;
  const able = pricedDeployments(deploymentsOf(params), namedCosts);
  return 'kind' in able ? able : null;
}

/**
 * The worst price of the deployments that may serve the request. A request that is not billed may be served by any of
 * them, whatever they have a price for. null: one of them has no price.
 */
function worstRates(params: AdmissionParams): WorstPrice | null {
  const { principal, dialect, served, bounds } = params;
  const { namedCosts } = bounds;
  if (namedCosts === undefined) return served.worstPrice.get(dialect.api) ?? null;
  const able = principal.billed ? pricedDeployments(deploymentsOf(params), namedCosts) : deploymentsOf(params);
  return 'kind' in able ? null : worstOf(able.map(walletPrice), namedOf(bounds));
}

/** What the request asks for that has a price of its own; undefined: nothing. */
function namedOf({ namedCosts }: RequestBounds): Named | undefined {
  if (namedCosts === undefined) return undefined;
  return { details: namedCosts.details, wantsAudio: namedCosts.items.some(({ kind }) => kind === 'audio') };
}

/** The bounds of a request that sets no limit on its output and need not: the model writes as much as it can. */
function boundByModel(
  { dialect, served: { model }, bounds }: AdmissionParams,
  measure: BodyMeasure,
): TokenBounds | null {
  const outputTokensMax = model.maxOutputTokens ?? model.contextLength;
  return boundTokens(dialect, model, { ...bounds, outputTokensMax }, measure);
}

/**
 * What budgets hold for a request that could not be billed and that nobody is billed for: the most that any deployment
 * with a price may rate it at. 0: no deployment has a price, or the request has no bound. Spec 7.8 refuses no such
 * request.
 */
function unbillablePrice(params: AdmissionParams, priceBounds: TokenBounds | null): PicoUsd {
  const { principal, dialect, bounds } = params;
  if (priceBounds === null || !principal.limits.some(({ kind }) => kind === 'budget')) return ZERO_PICO_USD;
  const prices = deploymentsOf(params).flatMap((deployment) => walletPrice(deployment) ?? []);
  const worst = prices.length === 0 ? null : worstOf(prices, namedOf(bounds));
  const most = worst === null ? null : worstCaseCost(dialect, bounds, priceBounds, worst);
  return most === null ? ZERO_PICO_USD : picoUsd(most);
}

/** The most that the request can cost by the catalog; null: the catalog has no price, or the request no bound. */
function worstPrice(params: AdmissionParams, tokenBounds: TokenBounds | null): PicoUsd | null {
  const { dialect, bounds } = params;
  const price = worstRates(params);
  const worst = price === null || tokenBounds === null ? null : worstCaseCost(dialect, bounds, tokenBounds, price);
  return worst === null ? null : picoUsd(worst);
}

function limitsOf({ limits }: Principal, { model }: ServedModel): readonly PrincipalLimit[] {
  return limits.filter((limit) => limit.model === null || limit.model === model.id);
}

/** The amount to hold under one limit; 0: the limit does not apply. */
function amountUnder(
  limit: PrincipalLimit,
  params: AdmissionParams,
  tokenBounds: TokenBounds | null,
  budgetPrice: PicoUsd,
): bigint | Refusal {
  switch (limit.kind) {
    case 'concurrent_requests':
    case 'requests_per_minute':
      return 1n;
    case 'tokens_per_minute':
      return tokensUnder(limit, params, tokenBounds);
    case 'budget':
      return budgetPrice;
  }
}

/**
 * Spec 8: a limit on tokens requires a request with a bound. Counting tokens uses none, and the tokens of images are
 * only for analytics.
 */
function tokensUnder(limit: PrincipalLimit, params: AdmissionParams, bounds: TokenBounds | null): bigint | Refusal {
  const { dialect, request } = params;
  if (!dialect.charged || dialect.unit === 'images') return 0n;
  const unbounded = dialect.refuseUnbounded?.(request) ?? null;
  if (unbounded !== null) return unbounded;
  if (bounds === null) return { kind: 'traffic_token_bound_required', ...missingBound(params) };
  const { inputTokensMax, outputTokensMax } = bounds;
  const tokens = BigInt(inputTokensMax) + BigInt(outputTokensMax);
  if (tokens <= limit.amount) return tokens;
  // A request above the whole limit could never be admitted. The refusal names the field that contributes most.
  const field = outputTokensMax >= inputTokensMax ? dialect.outputLimitField : dialect.inputField;
  return { kind: 'traffic_token_bound_required', field, result: { ...showLimit(limit), tokens_max: Number(tokens) } };
}
