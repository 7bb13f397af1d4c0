// Dollars as ClickHouse writes and reads decimals, and the pico-dollars that they are: digits and a point, no float in
// between.

const PICO_DIGITS = 12;

/** The server writes decimals without trailing zeros: "0.5", "12", "-0.000001". */
export function picoOf(dollarText: string): bigint {
  const [whole = '0', fraction = ''] = dollarText.split('.');
  return BigInt(whole + fraction.padEnd(PICO_DIGITS, '0'));
}

/** Pico-dollars as text become dollars as text by placing the point. */
export function dollars(pico: string): string {
  const digits = pico.padStart(PICO_DIGITS + 1, '0');
  return `${digits.slice(0, -PICO_DIGITS)}.${digits.slice(-PICO_DIGITS)}`;
}
