// JSON with numbers as they are written, where a float would round them: amounts of a generation's record, and counts
// beyond 2^53, which a provider may claim to have used.

/** `names`: the fields whose numbers stay texts, wherever they are. */
export function parseWithAmounts(json: string, names: readonly string[]): unknown {
  const pattern = new RegExp(`("(?:${names.join('|')})"\\s*:\\s*)(-?\\d+(?:\\.\\d+)?(?:[eE][+-]?\\d+)?)`, 'g');
  return JSON.parse(json.replace(pattern, '$1"$2"'));
}

const LONG_INTEGER = /[:,[]\s*-?\d{16,}\s*[,}\]]/;

/** Integers that no float holds are bigints, where the browser tells a number's text; all else as JSON.parse has it. */
export function parseWithCounts(json: string): unknown {
  return LONG_INTEGER.test(json)
    ? JSON.parse(json, exactInteger as (name: string, value: unknown) => unknown)
    : JSON.parse(json);
}

function exactInteger(_: string, value: unknown, written?: { readonly source?: string }): unknown {
  const isRounded = typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value);
  return isRounded && /^-?\d+$/.test(written?.source ?? '') ? BigInt(written?.source ?? '') : value;
}
