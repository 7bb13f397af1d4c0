// Parses JSON without rounding the numbers that a float cannot hold: the amounts of a generation's record, and counts
// beyond 2^53, which a provider may report.

/** Parses the fields `names`, at any depth, as texts with the digits of the JSON. */
export function parseWithAmounts(json: string, names: readonly string[]): unknown {
  const pattern = new RegExp(`("(?:${names.join('|')})"\\s*:\\s*)(-?\\d+(?:\\.\\d+)?(?:[eE][+-]?\\d+)?)`, 'g');
  return JSON.parse(json.replace(pattern, '$1"$2"'));
}

const LONG_INTEGER = /[:,[]\s*-?\d{16,}\s*[,}\]]/;

/** Parses integers beyond 2^53 as bigints. A browser that does not tell a number's source text rounds them. */
export function parseWithCounts(json: string): unknown {
  return LONG_INTEGER.test(json)
    ? JSON.parse(json, exactInteger as (name: string, value: unknown) => unknown)
    : JSON.parse(json);
}

function exactInteger(_: string, value: unknown, written?: { readonly source?: string }): unknown {
  const isRounded = typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value);
  return isRounded && /^-?\d+$/.test(written?.source ?? '') ? BigInt(written?.source ?? '') : value;
}
