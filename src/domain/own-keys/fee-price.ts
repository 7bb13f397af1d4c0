// Expresses the platform's fee for a request on an own key as a price. Holds are computed from it.

import type { Price } from '../models/price.ts';
import { multiply } from '../money/factor.ts';
import { type PicoUsd, ZERO_PICO_USD } from '../money/pico-usd.ts';
import { NO_TERMS } from '../settlement/rates-of.ts';
import { BASIS_POINTS, type ByokFee } from './byok-settings.ts';

const FREE = {
  version: '',
  input: ZERO_PICO_USD,
  cachedInput: null,
  cacheWrite: null,
  output: ZERO_PICO_USD,
  image: null,
} as const;

/** The fee of every request, whatever it uses; null: the fee is a share of the rated cost. */
export function flatFee(fee: ByokFee | null): PicoUsd | null {
  if (fee === null) return ZERO_PICO_USD;
  return fee.kind === 'per_request' ? fee.amount : null;
}

/** `price`: the price that rates the usage. null: there is none, so a fee that is a share of it has no price either. */
export function feePrice(fee: ByokFee | null, price: Price | null): Price | null {
  const flat = flatFee(fee);
  if (flat !== null) {
    // An image model is priced by image, so the free price needs a rate per image, too.
    const image = price?.image == null ? null : ZERO_PICO_USD;
    return { ...FREE, image, terms: { ...NO_TERMS, request: flat } };
  }
  if (price === null || fee?.kind !== 'percent') return null;
  const terms = price.terms ?? NO_TERMS;
  const share = { numerator: BigInt(fee.basisPoints), denominator: BASIS_POINTS };
  return { ...price, terms: { ...terms, factor: multiply(terms.factor, share) } };
}
