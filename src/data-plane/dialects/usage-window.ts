// Finds the provider's usage object in the end of a reply without parsing the reply (PERFORMANCE 6).

const USAGE_KEY = Buffer.from('"usage"');
const OBJECT_BYTES_MAX = 16_384;

/**
 * The last `"usage": {...}` in these bytes as a parsed object, or null. A `"usage": null` (every chunk but the last of a stream) is passed over.
 * Inside a JSON string a quote is always escaped, so the bytes `"usage"` followed by a colon are a key.
 */
export function lastUsageObject(bytes: Buffer): Record<string, unknown> | null {
  let from = bytes.length;
  while (from >= 0) {
    const key = bytes.lastIndexOf(USAGE_KEY, from);
    if (key === -1) return null;
    const start = objectStart(bytes, key + USAGE_KEY.length);
    if (start !== -1) {
      const end = objectEnd(bytes, start);
      if (end !== -1) return parseObject(bytes.toString('latin1', start, end));
    }
    from = key - 1;
    if (key === 0) return null;
  }
  return null;
}

/** Offset of the `{` after a key's colon, or -1. */
function objectStart(bytes: Buffer, afterKey: number): number {
  let offset = skipSpace(bytes, afterKey);
  if (bytes[offset] !== 0x3a) return -1;
  offset = skipSpace(bytes, offset + 1);
  return bytes[offset] === 0x7b ? offset : -1;
}

function skipSpace(bytes: Buffer, offset: number): number {
  let at = offset;
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at += 1;
  return at;
}

/** Offset after the `}` that closes the object at `start`, or -1 when it is cut or too long to be a usage object. */
function objectEnd(bytes: Buffer, start: number): number {
  const limit = Math.min(bytes.length, start + OBJECT_BYTES_MAX);
  let depth = 0;
  let inString = false;
  for (let offset = start; offset < limit; offset += 1) {
    const byte = bytes[offset];
    if (inString) {
      if (byte === 0x5c) offset += 1;
      else if (byte === 0x22) inString = false;
    } else if (byte === 0x22) inString = true;
    else if (byte === 0x7b) depth += 1;
    else if (byte === 0x7d) {
      depth -= 1;
      if (depth === 0) return offset + 1;
    }
  }
  return -1;
}

function parseObject(text: string): Record<string, unknown> | null {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return null;
  }
}
