// Reads amounts of money that providers write as JSON numbers. The number is a float by the time we see it; its
// shortest decimal form is what the provider wrote, as long as that has no more than 15 digits.

import { type PicoUsd, picoUsd } from './pico-usd.ts';

const DECIMAL = /^(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/;
const PICO_DECIMALS = 12;
/** No request costs more. The bound also keeps the digits few. */
const USD_MAX = 1e9;

/** Dollars, rounded up to a whole pico-dollar; null: not an amount. */
export function readUsdNumber(value: unknown): PicoUsd | null {
  if (typeof value !== 'number' || !(value >= 0) || value > USD_MAX) return null;
  const match = DECIMAL.exec(String(Math.abs(value)));
  if (match === null) return null;
  const [, whole = '', fraction = '', exponent = '0'] = match;
  const digits = BigInt(whole + fraction);
  const shift = PICO_DECIMALS - fraction.length + Number(exponent);
  if (shift >= 0) return picoUsd(digits * 10n ** BigInt(shift));
  const divisor = 10n ** BigInt(-shift);
  return picoUsd((digits + divisor - 1n) / divisor);
}

/** A whole number of units, each worth `picoPerUnit` pico-dollars; null: not an amount. */
export function readUnits(value: unknown, picoPerUnit: bigint): PicoUsd | null {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) return null;
  return picoUsd(BigInt(value) * picoPerUnit);
}
