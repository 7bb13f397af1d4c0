// Reads amounts as others write them in their exports: any sign, as many decimals as they like, an exponent. An amount
// is rounded to the nearest pico-dollar, a half away from zero.

import { type PicoUsd, picoUsd } from './pico-usd.ts';

export interface ReadAmount {
  readonly amount: PicoUsd;
  /** What the last written digit stands for: the amount can be off by half of it. At least one pico-dollar. */
  readonly step: PicoUsd;
}

const DECIMAL = /^(-?)(\d+)(?:\.(\d*))?(?:[eE]([+-]?\d{1,3}))?$/;
const LENGTH_MAX = 60;
const EXPONENT_MAX = 30;

/** `unitDecimals`: the unit is 10 to this power pico-dollars: 12 for a dollar, 10 for a cent. null: not an amount. */
export function readDecimal(text: string, unitDecimals: number): ReadAmount | null {
  const match = text.length > LENGTH_MAX ? null : DECIMAL.exec(text);
  if (match === null) return null;
  const [, sign, whole = '', fraction = '', exponent = '0'] = match;
  if (Math.abs(Number(exponent)) > EXPONENT_MAX) return null;
  const shift = unitDecimals - fraction.length + Number(exponent);
  const digits = BigInt(whole + fraction);
  const scale = 10n ** BigInt(Math.abs(shift));
  const size = shift >= 0 ? digits * scale : (digits + scale / 2n) / scale;
  return { amount: picoUsd(sign === '-' ? -size : size), step: picoUsd(shift > 0 ? scale : 1n) };
}
