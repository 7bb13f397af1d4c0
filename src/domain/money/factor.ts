// A factor on an amount, such as a region's 1.1, as an exact fraction. No float is used, and the product is rounded
// once, after everything is summed.

export interface Factor {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

const DECIMAL = /^(?:0|[1-9][0-9]{0,5})(?:\.([0-9]{1,9}))?$/;

/** '1.1' -> 11/10. At most 9 decimals, and above zero: null for all else. */
export function parseFactor(text: string): Factor | null {
  const match = DECIMAL.exec(text);
  if (match === null) return null;
  const decimals = match[1]?.length ?? 0;
  const numerator = BigInt(text.replace('.', ''));
  return numerator === 0n ? null : { numerator, denominator: 10n ** BigInt(decimals) };
}

/**
 * The factor as a decimal, without trailing zeros. It must come from parseFactor, so that its denominator is a power of
 * ten.
 */
export function formatFactor({ numerator, denominator }: Factor): string {
  const decimals = denominator.toString().length - 1;
  const digits = numerator.toString().padStart(decimals + 1, '0');
  const whole = digits.slice(0, digits.length - decimals);
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, '');
  return fraction === '' ? whole : `${whole}.${fraction}`;
}

/** The product of two factors; null stands for 1. */
export function multiply(one: Factor | null, other: Factor | null): Factor | null {
  if (one === null || other === null) return one ?? other;
  return { numerator: one.numerator * other.numerator, denominator: one.denominator * other.denominator };
}

/** The product of a non-negative amount and a factor, rounded up to a whole unit. */
export function scaleUp(amount: bigint, factor: Factor | null): bigint {
  if (factor === null) return amount;
  return (amount * factor.numerator + factor.denominator - 1n) / factor.denominator;
}
