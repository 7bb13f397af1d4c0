// How deep inside a JSON document a place lies, told from its beginning or from its end without parsing it. A usage object is known by its place:
// what models and callers write (tool arguments, schemas, metadata) comes back in replies and may hold keys of the same name further inside.

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/** The answer where the bytes are no JSON, or are cut. */
export const NO_DEPTH = -1;

/** Depths seen from the beginning of a document: right even when its end is missing. */
export class DepthFromStart {
  readonly #bytes: Buffer;
  #at: number;
  #depth = 0;

  constructor(bytes: Buffer, start: number) {
    this.#bytes = bytes;
    this.#at = start;
  }

  /** How many objects and arrays are open where the key at `keyStart` stands. Keys are asked for in the order they stand in. */
  at(keyStart: number): number {
    const bytes = this.#bytes;
    let at = this.#at;
    while (at < keyStart) {
      const byte = bytes[at];
      if (byte === QUOTE) {
        at = stringEnd(bytes, at);
        if (at === -1) return NO_DEPTH;
      } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) this.#depth += 1;
      else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) this.#depth -= 1;
      at += 1;
    }
    this.#at = at;
    return at === keyStart ? this.#depth : NO_DEPTH;
  }
}

/** Depths seen from the end of a complete document: its beginning may be missing, and need not be looked at. */
export class DepthFromEnd {
  readonly #bytes: Buffer;
  #end: number;
  #depth = 0;

  /** `end` is the offset after the document's last byte. */
  constructor(bytes: Buffer, end: number) {
    this.#bytes = bytes;
    this.#end = end;
  }

  /** As in `DepthFromStart`, but keys are asked for in the opposite order. */
  at(keyStart: number): number {
    const bytes = this.#bytes;
    let at = this.#end - 1;
    while (at >= keyStart) {
      const byte = bytes[at];
      if (byte === QUOTE) {
        at = stringStart(bytes, at);
        if (at < keyStart) return NO_DEPTH;
      } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) this.#depth += 1;
      else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) this.#depth -= 1;
      at -= 1;
    }
    this.#end = keyStart;
    return this.#depth;
  }
}

/** Offset of the quote that closes the string opened at `open`, or -1. */
export function stringEnd(bytes: Buffer, open: number): number {
  let at = bytes.indexOf(QUOTE, open + 1);
  while (at !== -1 && isEscaped(bytes, at)) at = bytes.indexOf(QUOTE, at + 1);
  return at;
}

/** Offset of the quote that opens the string closed at `close`, or -1. Outside of strings there are no backslashes, so no quote is mistaken. */
function stringStart(bytes: Buffer, close: number): number {
  let at = close;
  do {
    if (at === 0) return -1;
    at = bytes.lastIndexOf(QUOTE, at - 1);
  } while (at !== -1 && isEscaped(bytes, at));
  return at;
}

function isEscaped(bytes: Buffer, quote: number): boolean {
  let at = quote - 1;
  while (at >= 0 && bytes[at] === BACKSLASH) at -= 1;
  return (quote - 1 - at) % 2 === 1;
}
