// A factor on an amount, such as the 1.1 of a region, as an exact fraction: no float, and rounded once, when all is
// summed.

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

/** As it is written, without trailing zeros. Only for a factor that was parsed, whose denominator is a power of ten. */
export function formatFactor({ numerator, denominator }: Factor): string {
  const decimals = denominator.toString().length - 1;
  const digits = numerator.toString().padStart(decimals + 1, '0');
  const whole = digits.slice(0, digits.length - decimals);
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, '');
  return fraction === '' ? whole : `${whole}.${fraction}`;
}

/** Both, one after the other; null stands for 1. */
export function multiply(one: Factor | null, other: Factor | null): Factor | null {
  if (one === null || other === null) return one ?? other;
  return { numerator: one.numerator * other.numerator, denominator: one.denominator * other.denominator };
}

/** The product of an amount that is not negative and a factor, as the next whole unit where it is none. */
export function scaleUp(amount: bigint, factor: Factor | null): bigint {
  if (factor === null) return amount;
  return (amount * factor.numerator + factor.denominator - 1n) / factor.denominator;
}
