// Parses money as written in configuration, on the command line and in requests: decimal strings to whole pico-dollars,
// or null. No float.

import { type PicoUsd, picoUsd } from './pico-usd.ts';

/**
 * A price per million tokens with up to 6 decimals is a whole number of pico-dollars per token: 10^-6 USD / 10^6 =
 * 10^-12 USD.
 */
const PRICE_DECIMALS = 6;
const USD_DECIMALS = 12;
/** Every amount ends up in a numeric(38,0) column. */
const DIGITS_MAX = 38;

const DECIMAL = /^(?:0|[1-9][0-9]*)(?:\.([0-9]+))?$/;

/** '25.00' -> 25,000,000,000,000. At most 12 decimals; no sign, exponent, space, leading zero or bare point. */
export function parseUsd(text: string): PicoUsd | null {
  return parseScaled(text, USD_DECIMALS);
}

/**
 * A price in USD per million tokens, as pico-dollars per token: '1.25' -> 1,250,000. At most 6 decimals, so that it is
 * exact.
 */
export function parsePricePerMillion(text: string): PicoUsd | null {
  return parseScaled(text, PRICE_DECIMALS);
}

function parseScaled(text: string, decimals: number): PicoUsd | null {
  if (text.length > DIGITS_MAX + 1) return null;
  const match = DECIMAL.exec(text);
  if (match === null) return null;
  const fraction = match[1] ?? '';
  if (fraction.length > decimals) return null;
  const whole = fraction === '' ? text : text.slice(0, -(fraction.length + 1));
  const digits = whole + fraction.padEnd(decimals, '0');
  return digits.length > DIGITS_MAX ? null : picoUsd(BigInt(digits));
}
