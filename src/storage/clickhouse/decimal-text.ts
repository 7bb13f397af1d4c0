// Converts between pico-dollars and ClickHouse's decimals of dollars, by moving digits and never through a float.

const PICO_DIGITS = 12;

/** The server writes decimals without trailing zeros: "0.5", "12", "-0.000001". */
export function picoOf(dollarText: string): bigint {
  const [whole = '0', fraction = ''] = dollarText.split('.');
  return BigInt(whole + fraction.padEnd(PICO_DIGITS, '0'));
}

/** Converts pico-dollars to dollars, both as text, by placing the point. */
export function dollars(pico: string): string {
  const digits = pico.padStart(PICO_DIGITS + 1, '0');
  return `${digits.slice(0, -PICO_DIGITS)}.${digits.slice(-PICO_DIGITS)}`;
}
