// Moves the decimal point of written numbers, so that no price goes through float arithmetic.

const NUMBER = /^(\d+)(?:\.(\d*))?(?:[eE]([+-]?\d{1,3}))?$/;
/** A double has this many reliable digits; the digits after them are noise (0.18000000000000002). */
const SURE_DIGITS = 15;

export interface DecimalText {
  readonly text: string;
  /** The number had more decimals than `decimalsMax` and was rounded up. */
  readonly isRounded: boolean;
}

/** `text` times 10 to the `power`, with at most `decimalsMax` decimals; null: it is not a number, or below zero. */
export function scaleDecimal(text: string, power: number, decimalsMax: number): DecimalText | null {
  const [, whole, fraction = '', exponent = '0'] = NUMBER.exec(text.trim()) ?? [];
  if (whole === undefined) return null;
  const decimals = fraction.length - Number(exponent) - power;
  const digits = BigInt(whole + fraction);
  if (decimals <= 0) return { text: String(digits * 10n ** BigInt(-decimals)), isRounded: false };
  const dropped = Math.max(0, decimals - decimalsMax);
  const unit = 10n ** BigInt(dropped);
  const kept = digits / unit;
  const isRounded = kept * unit !== digits;
  return { text: placePoint(isRounded ? kept + 1n : kept, decimals - dropped), isRounded };
}

/** The same for a JavaScript number, without its unreliable digits. */
export function scaleNumber(value: number, power: number, decimalsMax: number): DecimalText | null {
  return scaleDecimal(String(Number(value.toPrecision(SURE_DIGITS))), power, decimalsMax);
}

function placePoint(digits: bigint, decimals: number): string {
  const padded = String(digits).padStart(decimals + 1, '0');
  const fraction = decimals === 0 ? '' : padded.slice(-decimals).replace(/0+$/, '');
  const whole = decimals === 0 ? padded : padded.slice(0, -decimals);
  return fraction === '' ? whole : `${whole}.${fraction}`;
}
