// Header names and values that replies had of late. Most lines of a provider's replies are those of the one before, in
// the same order: to compare them makes no string and checks nothing again, and is cheaper than to read them (3.3 µs
// for ten headers, so 1.7 where half of them are new, 0.9 where none is).

import { Buffer } from 'node:buffer';
import { holdsAt } from '../../platform/holds-at.ts';

/** What a header has to say about framing. */
export type FramingField = 'content-length' | 'transfer-encoding' | 'connection' | 'keep-alive';
const FRAMING_FIELDS: readonly string[] = [
  'content-length',
  'transfer-encoding',
  'connection',
  'keep-alive',
] satisfies FramingField[];

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const COLON = 0x3a;

/** Of one name. */
const VALUES_MAX = 4;
/** A longer value is not kept. */
const VALUE_BYTES_MAX = 256;
/** A name whose value is another each time (an id, a count) is soon not compared any more. */
const TRIES = 8;
const TRIES_MAX = 64;
/** After so many more it may have become one that comes again. */
const AGAIN_AFTER = 256;

interface KnownValue {
  /** As it was sent: from its first byte that is no blank to the end of its line. */
  readonly bytes: Buffer;
  readonly text: string;
}

export class HeaderName {
  readonly lowerCase: string;
  readonly framing: FramingField | null;
  /** As it was written, with its colon. */
  readonly bytes: Buffer;
  /** Which stood behind it last time. */
  next: HeaderName | null = null;
  private readonly values: KnownValue[] = [];
  private oldest = 0;
  private tries = TRIES;

  constructor(written: string) {
    this.lowerCase = written.toLowerCase();
    this.framing = FRAMING_FIELDS.includes(this.lowerCase) ? (this.lowerCase as FramingField) : null;
    this.bytes = Buffer.from(`${written}:`, 'latin1');
  }

  /** The value of late that stands at this place again, to the end of its line; null: it is another one. */
  valueAt(bytes: Buffer, at: number): KnownValue | null {
    const { values } = this;
    for (let index = 0; index < values.length; index++) {
      const known = values[index] as KnownValue;
      if (!holdsAt(bytes, at, known.bytes)) continue;
      if (this.tries < TRIES_MAX) this.tries += 1;
      return known;
    }
    return null;
  }

  /** Keeps a value that was read from here to behind the end of its line, if values of this name are worth it. */
  learn(text: string, bytes: Buffer, from: number, to: number): void {
    this.tries -= 1;
    if (this.tries <= 0) {
      this.values.length = 0;
      this.oldest = 0;
      if (this.tries > -AGAIN_AFTER) return;
      this.tries = TRIES;
    }
    if (to - from > VALUE_BYTES_MAX) return;
    const kept = Buffer.allocUnsafeSlow(to - from);
    bytes.copy(kept, 0, from, to);
    // Not the text itself: a slice keeps the string of its whole head.
    this.values[this.oldest] = { bytes: kept, text: kept.toString('latin1', 0, text.length) };
    this.oldest = (this.oldest + 1) % VALUES_MAX;
  }
}

/** As they were written: there are few in all traffic. Bounded. */
const names = new Map<string, HeaderName>();
const NAMES_MAX = 1_000;
/** A longer one is not kept. */
const NAME_LENGTH_MAX = 64;

/** What heads begin with. */
let first: HeaderName | null = null;

/**
 * The name that begins at `at`, in a line of which no more than up to `end` is looked at; null where that is no name.
 * `before`: the one of the line before it.
 */
export function headerNameAt(bytes: Buffer, at: number, end: number, before: HeaderName | null): HeaderName | null {
  const expected = before === null ? first : before.next;
  if (expected !== null && holdsAt(bytes, at, expected.bytes)) return expected;
  const colon = bytes.indexOf(COLON, at);
  if (colon === -1 || colon >= end) return null;
  const written = bytes.toString('latin1', at, colon);
  const known = names.get(written);
  if (known === undefined && !TOKEN.test(written)) return null;
  const name = known ?? new HeaderName(written);
  if (known === undefined) {
    if (names.size >= NAMES_MAX || written.length > NAME_LENGTH_MAX) return name;
    names.set(written, name);
  }
  if (before === null) first = name;
  else before.next = name;
  return name;
}
