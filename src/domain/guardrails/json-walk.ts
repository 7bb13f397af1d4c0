// Walks over the bytes of JSON along a table of text places and tells a visitor where its texts lie. Nothing is parsed
// or allocated: a megabyte of base64 costs one native search for its closing quote.

import { Buffer } from 'node:buffer';
import { KIND, OPAQUE_NODE, type PlaceNode } from './text-places.ts';

/** Offsets are in the bytes that are walked over; those of a string exclude its quotes. */
export interface TextVisitor {
  onString(node: PlaceNode, start: number, end: number, isEscaped: boolean): void;
  /** The name of a member that the table does not list. */
  onName(node: PlaceNode, start: number, end: number, isEscaped: boolean): void;
  /** A number that is long enough to be a card, account or telephone number. */
  onNumber(node: PlaceNode, start: number, end: number): void;
  onIndex(node: PlaceNode, value: number): void;
  /** A number that is a token of a text. */
  onToken(): void;
  /** A string that ends lanes. */
  onEnds(): void;
  /** A value that repeats texts token by token. */
  onRepeats(node: PlaceNode, start: number, end: number): void;
  /** Before and after an object that the visitor has to act on at its end (`isWatched`). */
  onOpen(node: PlaceNode): void;
  onClose(node: PlaceNode): void;
  /** The object has a second, different `type`, so its reader may take it for another shape than the walk did. */
  onAmbiguous(start: number, end: number): void;
}

/** More than the request scanner allows a request, and less than the stack can take. */
const DEPTH_MAX = 512;
/** A shorter number is no card, account or telephone number. */
const NUMBER_BYTES_MIN = 9;
/** Most strings are shorter, and a native search costs as much as looking at this many bytes. */
const NEAR_BYTES = 48;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const MALFORMED = -1;
const NO_BYTES = Buffer.alloc(0);

export class JsonWalk {
  private readonly visitor: TextVisitor;
  private bytes: Buffer = NO_BYTES;
  private end = 0;
  private depth = 0;
  /** Whether the string that `stringEnd` passed last has a backslash. */
  private isEscaped = false;
  /** Whether the object that `members` passed last has another type than it was taken for. */
  private isAmbiguous = false;
  /** The first backslash at or after the place of the last search for one. */
  private nextBackslash = 0;

  constructor(visitor: TextVisitor) {
    this.visitor = visitor;
  }

  /** False: bytes[start, end) are not one JSON value, and the visitor has been told a part of them. */
  walk(bytes: Buffer, start: number, end: number, node: PlaceNode): boolean {
    this.bytes = bytes;
    this.end = end;
    this.depth = 0;
    this.nextBackslash = -1;
    const behind = this.value(node, this.skipSpace(start));
    const isWhole = behind !== MALFORMED && this.skipSpace(behind) >= end;
    this.bytes = NO_BYTES;
    return isWhole;
  }

  /** The value at `at`; returns where it ends. */
  private value(node: PlaceNode, at: number): number {
    switch (this.bytes[at]) {
      case QUOTE:
        return this.string(node, at);
      case OPEN_BRACE:
        return node.kind === KIND.opaque ? this.skipNested(at) : this.object(node, at);
      case undefined:
        return MALFORMED;
      case OPEN_BRACKET:
        return node.kind === KIND.opaque ? this.skipNested(at) : this.list(node, at);
      default:
        return this.scalar(node, at);
    }
  }

  private string(node: PlaceNode, at: number): number {
    const close = this.stringEnd(at);
    if (close === MALFORMED) return MALFORMED;
    const { kind } = node.string;
    if (kind === KIND.ends) this.visitor.onEnds();
    else if (kind < KIND.opaque) this.visitor.onString(node.string, at + 1, close, this.isEscaped);
    return close + 1;
  }

  private list(node: PlaceNode, at: number): number {
    this.depth += 1;
    if (this.depth > DEPTH_MAX) return MALFORMED;
    if (node.kind === KIND.repeats) return this.repeats(node, at);
    let next = this.skipSpace(at + 1);
    if (this.bytes[next] === CLOSE_BRACKET) {
      this.depth -= 1;
      return next + 1;
    }
    for (;;) {
      const behind = this.value(node, next);
      if (behind === MALFORMED) return MALFORMED;
      next = this.skipSpace(behind);
      if (this.bytes[next] === CLOSE_BRACKET) break;
      if (this.bytes[next] !== COMMA) return MALFORMED;
      next = this.skipSpace(next + 1);
    }
    this.depth -= 1;
    return next + 1;
  }

  private object(place: PlaceNode, at: number): number {
    this.depth += 1;
    if (this.depth > DEPTH_MAX) return MALFORMED;
    if (place.kind === KIND.repeats) return this.repeats(place, at);
    const type = place.byType === null ? null : this.typeOf(at);
    const node = (type === null ? undefined : place.byType?.get(type)) ?? place;
    if (node.isWatched) this.visitor.onOpen(node);
    const behind = this.members(node, at, type);
    if (behind === MALFORMED) return MALFORMED;
    const { isAmbiguous } = this;
    this.isAmbiguous = false;
    if (node.isWatched) this.visitor.onClose(node);
    if (isAmbiguous) this.visitor.onAmbiguous(at, behind);
    this.depth -= 1;
    return behind;
  }

  /** `type`: the type that the object was taken for; null: its type does not matter. */
  private members(node: PlaceNode, at: number, type: string | null): number {
    const { bytes } = this;
    let isAmbiguous = false;
    let next = this.skipSpace(at + 1);
    for (let isFirst = true; ; isFirst = false) {
      if (isFirst && bytes[next] === CLOSE_BRACE) break;
      if (bytes[next] !== QUOTE) return MALFORMED;
      const close = this.stringEnd(next);
      if (close === MALFORMED) return MALFORMED;
      const isType = type !== null && this.isTypeName(next, close);
      let member = this.isEscaped
        ? memberNamed(node, this.textAt(next, close))
        : memberOf(node, bytes, next + 1, close);
      if (member === null) {
        member = node.otherwise;
        if (node.names.kind < KIND.echo) this.visitor.onName(node.names, next + 1, close, this.isEscaped);
      }
      next = this.skipSpace(close + 1);
      if (bytes[next] !== COLON) return MALFORMED;
      const start = this.skipSpace(next + 1);
      const behind = this.value(member, start);
      if (behind === MALFORMED) return MALFORMED;
      if (isType && (bytes[start] !== QUOTE || this.textAt(start, behind - 1) !== type)) isAmbiguous = true;
      next = this.skipSpace(behind);
      if (bytes[next] === CLOSE_BRACE) break;
      if (bytes[next] !== COMMA) return MALFORMED;
      next = this.skipSpace(next + 1);
    }
    this.isAmbiguous = isAmbiguous;
    return next + 1;
  }

  /** Whether the name that `stringEnd` has just passed is `type`. */
  private isTypeName(open: number, close: number): boolean {
    if (this.isEscaped) return this.textAt(open, close) === 'type';
    return (
      close - open === 5 && this.bytes[open + 1] === 0x74 && this.bytes.toString('latin1', open + 1, close) === 'type'
    );
  }

  private repeats(node: PlaceNode, at: number): number {
    this.depth -= 1;
    const behind = this.skipNested(at);
    if (behind !== MALFORMED) this.visitor.onRepeats(node, at, behind);
    return behind;
  }

  /** A number or a word. */
  private scalar(node: PlaceNode, at: number): number {
    const { bytes, end } = this;
    let next = at;
    while (next < end && isScalarByte(bytes[next] as number)) next += 1;
    if (next === at) return MALFORMED;
    if (node.kind === KIND.index) this.visitor.onIndex(node, Number(bytes.toString('latin1', at, next)));
    else if (node.kind === KIND.tokens && (bytes[at] as number) <= 0x39) this.visitor.onToken();
    else if (next - at >= NUMBER_BYTES_MIN && node.string.kind < KIND.opaque)
      this.visitor.onNumber(node.string, at, next);
    return next;
  }

  /** The value of the first member `type` of the object at `at`; null where it has none that is a string. */
  private typeOf(at: number): string | null {
    // The walk goes on from `at`, so the next backslash of that place is restored after looking ahead.
    const backslash = this.backslashFrom(at);
    const type = this.lookForType(at);
    this.nextBackslash = backslash;
    return type;
  }

  private lookForType(at: number): string | null {
    const { bytes } = this;
    let next = this.skipSpace(at + 1);
    while (bytes[next] === QUOTE) {
      const close = this.stringEnd(next);
      if (close === MALFORMED) break;
      const isType = this.isTypeName(next, close);
      next = this.skipSpace(this.skipSpace(close + 1) + 1);
      const behind = this.skipValue(next);
      if (behind === MALFORMED) break;
      if (isType) return bytes[next] === QUOTE ? this.textAt(next, behind - 1) : null;
      next = this.skipSpace(behind);
      if (bytes[next] !== COMMA) break;
      next = this.skipSpace(next + 1);
    }
    return null;
  }

  /** The text of a short string between these quotes. */
  private textAt(open: number, close: number): string {
    const text = this.bytes.toString('utf8', open, close + 1);
    if (!text.includes('\\')) return text.slice(1, -1);
    try {
      return String(JSON.parse(text));
    } catch {
      return text;
    }
  }

  private skipValue(at: number): number {
    const byte = this.bytes[at];
    if (byte === QUOTE) {
      const close = this.stringEnd(at);
      return close === MALFORMED ? MALFORMED : close + 1;
    }
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) return this.skipNested(at);
    let next = at;
    while (next < this.end && isScalarByte(this.bytes[next] as number)) next += 1;
    return next === at ? MALFORMED : next;
  }

  /** Passes over an object or a list without looking into it; returns where it ends. */
  private skipNested(at: number): number {
    const { bytes, end } = this;
    let depth = 0;
    for (let next = at; next < end; next++) {
      const byte = bytes[next];
      if (byte === QUOTE) {
        next = this.stringEnd(next);
        if (next === MALFORMED) return MALFORMED;
      } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        depth += 1;
      } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
        depth -= 1;
        if (depth === 0) return next + 1;
      }
    }
    return MALFORMED;
  }

  /** The place of the quote that closes the string opened at `open`. */
  private stringEnd(open: number): number {
    const { bytes, end } = this;
    this.isEscaped = false;
    const near = Math.min(end, open + 1 + NEAR_BYTES);
    let at = open + 1;
    while (at < near) {
      const byte = bytes[at];
      if (byte === QUOTE) return at;
      if (byte === BACKSLASH) {
        this.isEscaped = true;
        at += 1;
      }
      at += 1;
    }
    for (;;) {
      const quote = at < end ? bytes.indexOf(QUOTE, at) : -1;
      if (quote === -1 || quote >= end) return MALFORMED;
      const backslash = this.backslashFrom(at);
      if (backslash >= quote) return quote;
      this.isEscaped = true;
      // Escapes tend to be close to each other, so the bytes up to the quote are looked at one by one.
      at = backslash;
      while (at < quote) at += bytes[at] === BACKSLASH ? 2 : 1;
      if (at === quote) return quote;
    }
  }

  /** The first backslash at or after this place; it is searched for once, however many strings come before it. */
  private backslashFrom(at: number): number {
    if (this.nextBackslash < at) {
      const found = this.bytes.indexOf(BACKSLASH, at);
      this.nextBackslash = found === -1 ? this.bytes.length : found;
    }
    return this.nextBackslash;
  }

  private skipSpace(from: number): number {
    const { bytes } = this;
    let at = from;
    while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at += 1;
    return at;
  }
}

const NO_VISITOR: TextVisitor = {
  onString: () => {},
  onName: () => {},
  onNumber: () => {},
  onIndex: () => {},
  onToken: () => {},
  onEnds: () => {},
  onRepeats: () => {},
  onOpen: () => {},
  onClose: () => {},
  onAmbiguous: () => {},
};
const brackets = new JsonWalk(NO_VISITOR);

/** Whether the bytes are one JSON value: all brackets and quotes are closed, and nothing follows. */
export function isJson(bytes: Buffer, start: number, end: number): boolean {
  return brackets.walk(bytes, start, end, OPAQUE_NODE);
}

function memberNamed({ members }: PlaceNode, text: string): PlaceNode | null {
  return members[text.length]?.find(({ name }) => name === text)?.node ?? null;
}

/** null: the table does not list it. */
function memberOf(node: PlaceNode, bytes: Buffer, start: number, end: number): PlaceNode | null {
  const candidates = node.members[end - start];
  if (candidates === undefined) return null;
  for (let index = 0; index < candidates.length; index++) {
    const candidate = candidates[index] as (typeof candidates)[number];
    const { name } = candidate;
    let same = 0;
    while (same < name.length && bytes[start + same] === name.charCodeAt(same)) same += 1;
    if (same === name.length) return candidate.node;
  }
  return null;
}

/** Whether a number, `true`, `false` or `null` can contain the byte. */
function isScalarByte(byte: number): boolean {
  return (
    (byte >= 0x30 && byte <= 0x39) ||
    ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7a) ||
    byte === 0x2e ||
    byte === 0x2d ||
    byte === 0x2b
  );
}
