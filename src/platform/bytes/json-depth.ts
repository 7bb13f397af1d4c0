// Computes how deep inside a JSON document a position is, from its beginning or from its end, without parsing it. A
// provider's own objects, such as the usage, are recognized by their depth: what models and callers write (tool
// arguments, schemas, metadata) may contain keys of the same name, but deeper inside a reply.

import { stringEnd, stringStart } from './json-bytes.ts';

const QUOTE = 0x22;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/** Returned where a place is within a string, or where the bytes are not JSON or are cut. */
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
        const close = stringEnd(bytes, at);
        at = close === -1 ? bytes.length : close;
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
      } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) this.depth += 1;
      else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) this.depth -= 1;
      at -= 1;
    }
    // The end moves also where the key is within a string, so that no byte is passed twice, however many such keys
    // there are.
    this.end = at + 1;
    return this.end === keyStart ? this.depth : NO_DEPTH;
  }
}
