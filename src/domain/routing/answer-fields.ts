// Reads fields of a classifier's reply, which may have any shape. Only own fields are read, since a tier may be called
// `constructor`.

/** Twice the size of an answer to 255 options with long names; parsing more would hold up the event loop. */
const REPLY_BYTES_MAX = 65_536;

/** null: the reply is too long or is not JSON. */
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
