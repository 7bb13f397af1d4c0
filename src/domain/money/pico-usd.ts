// The unit of money: a whole number of pico-dollars (10^-12 USD), branded so that no other bigint passes for money.

declare const picoUsdBrand: unique symbol;

/**
 * A whole number of pico-dollars. A price of 1 USD per million tokens is 1,000,000 of these per token, so every catalog
 * price is a whole number.
 */
export type PicoUsd = bigint & { readonly [picoUsdBrand]: true };

export const ZERO_PICO_USD = 0n as PicoUsd;

/** Marks a bigint as money; the only cast in the project. */
export function picoUsd(amount: bigint): PicoUsd {
  return amount as PicoUsd;
}
