// What the platform lets an organization do with its own provider keys, and what the organization has set itself.

import type { Price } from '../models/price.ts';
import type { PicoUsd } from '../money/pico-usd.ts';

/**
 * What the platform charges for a request on an own key: a share of its rated cost, in basis points, or an amount per
 * request.
 */
export type ByokFee =
  | { readonly kind: 'percent'; readonly basisPoints: number }
  | { readonly kind: 'per_request'; readonly amount: PicoUsd };

/** Set by the platform. */
export interface ByokGrant {
  readonly enabled: boolean;
  /** null: every kind. */
  readonly kinds: readonly string[] | null;
  /** Whether keys of kind `custom` may name any address that the egress rules allow. */
  readonly customBaseUrl: boolean;
  /** null: requests on own keys cost nothing. */
  readonly fee: ByokFee | null;
  readonly credentialsMax: number;
}

/** Set by the organization. */
export interface ByokChoices {
  /** Whether the service may serve on its own account if own keys cannot. */
  readonly fallback: boolean;
  /** Whose key asks the classifier of auto routing. */
  readonly classifier: 'service' | 'own';
  /** What budgets count for a request on an own key: the platform's fee, or the whole rated cost. */
  readonly budgets: 'fee' | 'all';
}

export type ByokSettings = ByokGrant & ByokChoices;

/** The settings of an organization for which nothing was set. */
export const BYOK_DEFAULTS: ByokSettings = {
  enabled: false,
  kinds: null,
  customBaseUrl: false,
  fee: null,
  credentialsMax: 50,
  // No money is spent unasked.
  fallback: false,
  classifier: 'service',
  budgets: 'fee',
};

export const BASIS_POINTS = 10_000n;

/** Rounded down to the pico-dollar. */
export function feeOf(fee: ByokFee | null, ratedCost: PicoUsd): PicoUsd {
  if (fee === null) return 0n as PicoUsd;
  return fee.kind === 'per_request' ? fee.amount : (((ratedCost * BigInt(fee.basisPoints)) / BASIS_POINTS) as PicoUsd);
}

/**
 * The organization's own price of a model, if requests are rated by it; null: the catalog's price rates them. A fee
 * that is a share of the rated cost needs the catalog's price, since the organization could name any price of its own.
 */
export function ratingPrice(fee: ByokFee | null, ownPrice: Price | null): Price | null {
  return fee?.kind === 'percent' ? null : ownPrice;
}

/**
 * A customer controls the usage that a custom host reports, so a fee that is a share of it would be whatever they like.
 */
export function grantProblem({ customBaseUrl, fee }: Pick<ByokGrant, 'customBaseUrl' | 'fee'>): string | null {
  return customBaseUrl && fee?.kind === 'percent'
    ? 'cannot be a percentage while custom_base_url is allowed: what a custom host reports is its customer’s own word'
    : null;
}
