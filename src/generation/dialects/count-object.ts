// Reads a usage object from its bytes: names, whole numbers, null, short plain texts, and objects of numbers (details
// lie one deeper), which is what nearly all of them consist of. Every reply has one, and to make a string of it and
// have that parsed takes 0.7 µs. Whatever else it holds is left to JSON.parse.

import { Buffer } from 'node:buffer';
import { holdsAt } from '../../platform/holds-at.ts';
import type { UsageObject } from './reported-counts.ts';

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const ZERO = 0x30;
const NINE = 0x39;
const SPACE = 0x20;
const LAST_ASCII = 0x7e;
const LETTER_N = 0x6e;
const NULL_BYTES = Buffer.from('null');
/** So many digits are a safe integer. */
const DIGITS_MAX = 15;

interface KnownName {
  readonly name: string;
  readonly bytes: Buffer;
  /**
   * The name that stood behind it last time, and the first of its value. To look whether it is the one again is all
   * that most names take.
   */
  next: KnownName | null;
  inside: KnownName | null;
  /** The text that was its value last time: a service tier is the same one in nearly every reply. */
  text: string | null;
  textBytes: Buffer | null;
}

/** Names that were met in usage objects: they are few in all traffic. Bounded; by a hash of their bytes. */
const knownNames = new Map<number, KnownName>();
const KNOWN_NAMES_MAX = 500;
const PLAIN_NAME = /^[a-z][\w.-]{0,63}$/i;

const TEXT_BYTES_MAX = 32;

/** The value is no count, no null, no plain text and no object of counts. */
const OTHER = undefined;

/** Where reading has come to. One for all: an object is read at one go. */
let at = 0;
/** What an object began with last time. */
let firstName: KnownName | null = null;

/** The object that begins at `start`; null: JSON.parse has to say what it is. */
export function readCountObject(bytes: Buffer, start: number): UsageObject | null {
  at = start;
  return readMembers(bytes, null);
}

/** Remembers the names of an object that JSON.parse has read, so that the next one like it is read here. */
export function learnNames(object: UsageObject): void {
  for (const [name, value] of Object.entries(object)) {
    if (knownNames.size >= KNOWN_NAMES_MAX) return;
    const bytes = Buffer.from(name);
    const hash = hashOf(bytes);
    if (PLAIN_NAME.test(name) && knownNames.get(hash)?.name !== name)
      knownNames.set(hash, { name, bytes, next: null, inside: null, text: null, textBytes: null });
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) learnNames(value as UsageObject);
  }
}

function hashOf(bytes: Buffer): number {
  let hash = 0;
  for (const byte of bytes) hash = (Math.imul(hash, 31) + byte) | 0;
  return hash;
}

/** `of`: the name whose value this is; null at the top. */
function readMembers(bytes: Buffer, of: KnownName | null): UsageObject | null {
  const object: Record<string, unknown> = {};
  skipSpace(bytes, 1);
  if (bytes[at] === CLOSE_BRACE) {
    at += 1;
    return object;
  }
  let before: KnownName | null = null;
  for (;;) {
    const expected: KnownName | null = before === null ? (of === null ? firstName : of.inside) : before.next;
    const known = readName(bytes, expected);
    if (known === null) return null;
    if (known !== expected) expectNext(of, before, known);
    before = known;
    skipSpace(bytes, 1);
    if (bytes[at] !== COLON) return null;
    skipSpace(bytes, 1);
    const value = readValue(bytes, of === null ? known : null);
    if (value === OTHER) return null;
    object[known.name] = value;
    skipSpace(bytes, 0);
    const next = bytes[at];
    if (next === CLOSE_BRACE) {
      at += 1;
      return object;
    }
    if (next !== COMMA) return null;
    skipSpace(bytes, 1);
  }
}

function expectNext(of: KnownName | null, before: KnownName | null, known: KnownName): void {
  if (before !== null) before.next = known;
  else if (of !== null) of.inside = known;
  else firstName = known;
}

/** Ends at the closing quote. */
function readName(bytes: Buffer, expected: KnownName | null): KnownName | null {
  if (bytes[at] !== QUOTE) return null;
  const start = at + 1;
  if (expected !== null) {
    const end = start + expected.bytes.length;
    if (bytes[end] === QUOTE && holdsAt(bytes, start, expected.bytes)) {
      at = end;
      return expected;
    }
  }
  let hash = 0;
  for (at = start; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (byte === QUOTE) break;
    if (byte < SPACE || byte > LAST_ASCII || byte === BACKSLASH) return null;
    hash = (Math.imul(hash, 31) + byte) | 0;
  }
  const known = knownNames.get(hash);
  return known !== undefined && at - start === known.bytes.length && holdsAt(bytes, start, known.bytes) ? known : null;
}

/** `name`: whose value may be an object or a text; null: it may not, being inside of one. */
function readValue(bytes: Buffer, name: KnownName | null): number | string | null | UsageObject | undefined {
  const first = bytes[at];
  if (first === QUOTE) return name !== null ? readText(bytes, name) : OTHER;
  if (first === OPEN_BRACE) return name !== null ? (readMembers(bytes, name) ?? OTHER) : OTHER;
  if (first === LETTER_N) {
    if (!holdsAt(bytes, at, NULL_BYTES)) return OTHER;
    at += NULL_BYTES.length;
    return null;
  }
  return readWhole(bytes);
}

/** Printable ASCII without escapes. */
function readText(bytes: Buffer, name: KnownName): string | undefined {
  const start = at + 1;
  const { text, textBytes } = name;
  if (
    text !== null &&
    textBytes !== null &&
    bytes[start + textBytes.length] === QUOTE &&
    holdsAt(bytes, start, textBytes)
  ) {
    at = start + textBytes.length + 1;
    return text;
  }
  let end = start;
  for (; end < bytes.length && bytes[end] !== QUOTE; end++) {
    const byte = bytes[end] as number;
    if (byte < SPACE || byte > LAST_ASCII || byte === BACKSLASH || end - start === TEXT_BYTES_MAX) return OTHER;
  }
  if (end === bytes.length) return OTHER;
  name.text = bytes.toString('latin1', start, end);
  name.textBytes = Buffer.from(name.text);
  at = end + 1;
  return name.text;
}

/**
 * What follows it is looked at by the caller, which takes only the end of a value: `1.5` and `1e3` are not read here.
 */
function readWhole(bytes: Buffer): number | undefined {
  const start = at;
  let value = 0;
  for (; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (byte < ZERO || byte > NINE) break;
    value = value * 10 + (byte - ZERO);
  }
  const digits = at - start;
  // JSON has no number that begins with a zero but 0.
  return digits === 0 || digits > DIGITS_MAX || (digits > 1 && bytes[start] === ZERO) ? OTHER : value;
}

/** Over so many bytes and all white space behind them. */
function skipSpace(bytes: Buffer, over: number): void {
  at += over;
  while (bytes[at] === SPACE || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at += 1;
}
