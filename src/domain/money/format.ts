// Prints money exactly: the digits of a bigint with the point inserted by hand, never through a float (spec 2.1).

const FRACTION_DIGITS = 12;

/**
 * Dollars as a decimal string for analytics fields: '0.00001875', '-1.5', '25'. No trailing zeros, no exponent, no
 * loss.
 */
export function formatUsdString(amount: bigint): string {
  const negative = amount < 0n;
  const digits = (negative ? -amount : amount).toString().padStart(FRACTION_DIGITS + 1, '0');
  const whole = digits.slice(0, -FRACTION_DIGITS);
  let end = digits.length;
  while (end > whole.length && digits.charCodeAt(end - 1) === 0x30) end--;
  const fraction = digits.slice(whole.length, end);
  const unsigned = fraction === '' ? whole : `${whole}.${fraction}`;
  return negative ? `-${unsigned}` : unsigned;
}

/**
 * Dollars as the text of an exact JSON number for generation records. The decimal string is a valid JSON number
 * already.
 */
export function formatUsdJsonNumber(amount: bigint): string {
  return formatUsdString(amount);
}
