// Computes how deep inside a JSON document a position is, from its beginning or from its end, without parsing it. A
// usage object is recognized by its depth: what models and callers write (tool arguments, schemas, metadata) appears in
// replies and may contain keys of the same name further inside.

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/** Returned when the bytes are not JSON, or are cut. */
export const NO_DEPTH = -1;

/** Computes depths from the beginning of a document, which works even when its end is missing. */
export class DepthFromStart {
  private readonly bytes: Buffer;
  private position: number;
  private depth = 0;

  constructor(bytes: Buffer, start: number) {
    this.bytes = bytes;
    this.position = start;
  }

  /** How many objects and arrays are open at the key at `keyStart`. Must be called for keys in their order. */
  at(keyStart: number): number {
    const bytes = this.bytes;
    let at = this.position;
    while (at < keyStart) {
      const byte = bytes[at];
      if (byte === QUOTE) {
        at = stringEnd(bytes, at);
        if (at === -1) return NO_DEPTH;
      } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) this.depth += 1;
      else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) this.depth -= 1;
      at += 1;
    }
    this.position = at;
    return at === keyStart ? this.depth : NO_DEPTH;
  }
}

/** Computes depths from the end of a complete document; its beginning may be missing and is not looked at. */
export class DepthFromEnd {
  private readonly bytes: Buffer;
  private end: number;
  private depth = 0;

  /** `end` is the offset after the document's last byte. */
  constructor(bytes: Buffer, end: number) {
    this.bytes = bytes;
    this.end = end;
  }

  /** Like `DepthFromStart`, but must be called for keys in reverse order. */
  at(keyStart: number): number {
    const bytes = this.bytes;
    let at = this.end - 1;
    while (at >= keyStart) {
      const byte = bytes[at];
      if (byte === QUOTE) {
        at = stringStart(bytes, at);
        if (at < keyStart) return NO_DEPTH;
      } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) this.depth += 1;
      else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) this.depth -= 1;
      at -= 1;
    }
    this.end = keyStart;
    return this.depth;
  }
}

/** Most names and values are shorter, and a native search costs more than so many bytes. */
const NEAR_BYTES = 32;

/** Offset of the quote that closes the string opened at `open`, or -1. */
export function stringEnd(bytes: Buffer, open: number): number {
  let at = quoteBehind(bytes, open);
  while (at !== -1 && isEscaped(bytes, at)) at = quoteBehind(bytes, at);
  return at;
}

function quoteBehind(bytes: Buffer, before: number): number {
  const far = Math.min(bytes.length, before + 1 + NEAR_BYTES);
  for (let at = before + 1; at < far; at++) if (bytes[at] === QUOTE) return at;
  return far === bytes.length ? -1 : bytes.indexOf(QUOTE, far);
}

/**
 * Offset of the quote that opens the string closed at `close`, or -1. Outside of strings there are no backslashes, so
 * no quote is mistaken.
 */
function stringStart(bytes: Buffer, close: number): number {
  let at = close;
  do {
    at = quoteBefore(bytes, at);
  } while (at !== -1 && isEscaped(bytes, at));
  return at;
}

function quoteBefore(bytes: Buffer, behind: number): number {
  const far = Math.max(-1, behind - 1 - NEAR_BYTES);
  for (let at = behind - 1; at > far; at--) if (bytes[at] === QUOTE) return at;
  return far === -1 ? -1 : bytes.lastIndexOf(QUOTE, far);
}

function isEscaped(bytes: Buffer, quote: number): boolean {
  let at = quote - 1;
  while (at >= 0 && bytes[at] === BACKSLASH) at -= 1;
  return (quote - 1 - at) % 2 === 1;
}
