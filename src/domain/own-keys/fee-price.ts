// What a request on an own key can cost its organization, as a price: the platform's fee. Holds are made of it.

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

/** What every request costs, whatever it uses; null: the fee is a share of what its usage is rated at. */
export function flatFee(fee: ByokFee | null): PicoUsd | null {
  if (fee === null) return ZERO_PICO_USD;
  return fee.kind === 'per_request' ? fee.amount : null;
}

/** `price`: what the usage is rated by; null: it has none, and then a share of it has none either. */
export function feePrice(fee: ByokFee | null, price: Price | null): Price | null {
  const flat = flatFee(fee);
  if (flat !== null) {
    // An image model is priced by image, and one of each kind costs the same here: nothing.
    const image = price?.image == null ? null : ZERO_PICO_USD;
    return { ...FREE, image, terms: { ...NO_TERMS, request: flat } };
  }
  if (price === null || fee?.kind !== 'percent') return null;
  const terms = price.terms ?? NO_TERMS;
  const share = { numerator: BigInt(fee.basisPoints), denominator: BASIS_POINTS };
  return { ...price, terms: { ...terms, factor: multiply(terms.factor, share) } };
}
