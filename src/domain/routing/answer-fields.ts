// Reads fields out of a classifier's reply, whose shape nobody has checked: own fields only, since a tier may be called
// `constructor`.

/** An answer to 255 options with long names is half of this; more is not worth the event loop's time. */
const REPLY_BYTES_MAX = 65_536;

/** null: too long, or no JSON. */
export function parseReply(bytes: Uint8Array): unknown {
  if (bytes.byteLength > REPLY_BYTES_MAX) return null;
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return null;
  }
}

export function fieldOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as Readonly<Record<string, unknown>>)[name];
}

export function fractionOf(value: unknown): number | null {
  return typeof value === 'number' && value >= 0 && value <= 1 ? value : null;
}

export function countOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null;
}
