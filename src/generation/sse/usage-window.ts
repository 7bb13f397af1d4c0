// Finds the provider's usage object in the kept part of a reply without parsing the reply: a native search finds the
// key, then its depth is checked. Only the object itself is parsed.

import { parseObject } from '../../domain/usage/countable-text.ts';
import { skipSpace, valueAfterKey } from '../../platform/bytes/json-bytes.ts';
import { DepthFromEnd, DepthFromStart, NO_DEPTH } from '../../platform/bytes/json-depth.ts';
import { valueEnd } from '../../platform/bytes/json-members.ts';
import { matchesAt } from '../../platform/bytes/matches-at.ts';
import type { KeptReply } from '../dialects/dialect.ts';
import type { UsageObject } from '../dialects/usage/reported-counts.ts';
import { EventName } from './event-name.ts';
import { DATA_FIELD, firstLineAt, LINE_FEED } from './syntax.ts';

const USAGE_KEY = Buffer.from('"usage"');
/** The longest usage objects are those that list their parts (Anthropic's iterations). */
export const OBJECT_BYTES_MAX = 65_536;
const NOT_FOUND = -1;

/** Whether a reply is one JSON document and not a stream of events, whatever its content type says. */
export function isDocument(beginning: Buffer): boolean {
  return beginning[skipSpace(beginning, firstLineAt(beginning))] === 0x7b;
}

/**
 * The `"usage": {...}` at the top level of a document. Most providers write it near the end. Mistral begins with it,
 * and a document that was cut has no end from which to compute depths. vLLM writes it between a long answer and details
 * of the prompt's tokens.
 *
 * Only one object of a document or event is read. If another were tried after one that is not JSON or has no end, a
 * provider could make us read the same bytes once for each of its keys.
 */
export function documentUsage(reply: KeptReply): UsageObject | null {
  const { usage } = reply.cut ? NO_USAGE : lastUsage(reply.end, 1);
  return usage ?? lastUsageFromStart(reply.condensed ?? reply.beginning);
}

interface FoundUsage {
  readonly usage: UsageObject | null;
  /** Whether there is a usage object at any depth. */
  readonly isThere: boolean;
}

const NO_USAGE: FoundUsage = { usage: null, isThere: false };

/** The last usage object that is at most `deepest` deep, in bytes that contain the end of their JSON. */
function lastUsage(bytes: Buffer, deepest: number): FoundUsage {
  const depths = new DepthFromEnd(bytes, bytes.length);
  let isThere = false;
  for (let key = bytes.lastIndexOf(USAGE_KEY); key !== NOT_FOUND; key = previousUsageKey(bytes, key)) {
    const start = objectStart(bytes, key + USAGE_KEY.length);
    if (start === NOT_FOUND) continue;
    const depth = depths.at(key);
    if (depth === NO_DEPTH) continue;
    isThere = true;
    if (depth > 0 && depth <= deepest) return { usage: readObject(bytes, start), isThere };
  }
  return { usage: null, isThere };
}

/** The last usage object at the top level of a document whose end may be missing. */
function lastUsageFromStart(beginning: Buffer): UsageObject | null {
  const depths = new DepthFromStart(beginning, 0);
  let last = NOT_FOUND;
  for (let key = beginning.indexOf(USAGE_KEY); key !== NOT_FOUND; key = beginning.indexOf(USAGE_KEY, key + 1)) {
    const start = objectStart(beginning, key + USAGE_KEY.length);
    if (start !== NOT_FOUND && depths.at(key) === 1) last = start;
  }
  return last === NOT_FOUND ? null : readObject(beginning, last);
}

/**
 * How many events whose usage object cannot be used are tried. At most a few follow the event that counts, and each
 * costs microseconds.
 */
const USELESS_EVENTS_MAX = 256;

/** Calls `pick` for each complete event with a usage object, the last one first, until it returns one. */
export function lastEventUsage(reply: KeptReply, pick: (event: EventLine) => UsageObject | null): UsageObject | null {
  const bytes = reply.end;
  let key = bytes.lastIndexOf(USAGE_KEY);
  let useless = 0;
  while (key !== NOT_FOUND && useless < USELESS_EVENTS_MAX) {
    const event = eventAround(bytes, key, reply.cut);
    const usage = event === null ? null : pick(event);
    if (usage !== null) return usage;
    if (event?.hasUsage === true) useless += 1;
    const lineStart = bytes.lastIndexOf(LINE_FEED, key) + 1;
    key = lineStart === 0 ? NOT_FOUND : bytes.lastIndexOf(USAGE_KEY, lineStart - 1);
  }
  return null;
}

/** The first event with a usage object. */
export function firstEventWithUsage(reply: KeptReply): EventLine | null {
  const { beginning } = reply;
  const key = beginning.indexOf(USAGE_KEY);
  return key === NOT_FOUND ? null : eventAround(beginning, key, reply.cut || reply.end.length !== beginning.length);
}

/**
 * The event whose line contains `key`; null: the line is incomplete. JSON has no raw line ends, so the data of an event
 * is one line.
 */
function eventAround(bytes: Buffer, key: number, cut: boolean): EventLine | null {
  const lineEnd = bytes.indexOf(LINE_FEED, key);
  if (lineEnd === NOT_FOUND && cut) return null;
  return new EventLine(bytes, startOfLine(bytes, key), lineEnd === NOT_FOUND ? bytes.length : lineEnd);
}

/** Where the line that contains `at` begins. */
function startOfLine(bytes: Buffer, at: number): number {
  const lineFeed = bytes.lastIndexOf(LINE_FEED, at);
  return lineFeed === NOT_FOUND ? firstLineAt(bytes) : lineFeed + 1;
}

/** The data line of one event. The kept part of a long reply may begin inside it. */
export class EventLine {
  /** Whether `usageAt` has found a usage object at any depth. */
  hasUsage = false;
  private readonly bytes: Buffer;
  private readonly start: number;
  private readonly end: number;

  constructor(bytes: Buffer, start: number, end: number) {
    this.bytes = bytes;
    this.start = start;
    this.end = end;
  }

  /** The last usage object that is at most `deepest` deep. */
  usageAt(deepest: number): UsageObject | null {
    // A view of the line alone, since the search would not stop at its beginning.
    const { usage, isThere } = lastUsage(this.bytes.subarray(this.start, this.end), deepest);
    this.hasUsage ||= isThere;
    return usage;
  }

  /** The event's name, from its data or from the line before it; null: neither names it, or that part is not kept. */
  get type(): string | null {
    const lineBefore = startOfLine(this.bytes, Math.max(0, this.start - 2));
    return nameOfLine(this.bytes, this.start, this.end) ?? nameOfLine(this.bytes, lineBefore, this.start - 1);
  }

  /** The whole data, parsed. */
  json(): UsageObject | null {
    if (!matchesAt(this.bytes, this.start, DATA_FIELD)) return null;
    return parseObject(this.bytes.toString('utf8', this.start + DATA_FIELD.length, this.end));
  }
}

function nameOfLine(bytes: Buffer, start: number, end: number): string | null {
  const name = new EventName();
  name.begin();
  return name.take(bytes.subarray(start, Math.max(start, end)), true);
}

/** Whether a usage object begins anywhere in these bytes, at any depth. */
export function namesUsageObject(bytes: Buffer): boolean {
  for (let key = bytes.indexOf(USAGE_KEY); key !== NOT_FOUND; key = bytes.indexOf(USAGE_KEY, key + USAGE_KEY.length)) {
    if (objectStart(bytes, key + USAGE_KEY.length) !== NOT_FOUND) return true;
  }
  return false;
}

function previousUsageKey(bytes: Buffer, key: number): number {
  return key === 0 ? NOT_FOUND : bytes.lastIndexOf(USAGE_KEY, key - 1);
}

/** Offset of the `{` after a key's colon, or -1: in all events but the last of a stream the value is null. */
export function objectStart(bytes: Buffer, afterKey: number): number {
  const value = valueAfterKey(bytes, afterKey);
  return bytes[value] === 0x7b ? value : NOT_FOUND;
}

function readObject(bytes: Buffer, start: number): UsageObject | null {
  const end = objectEnd(bytes, start);
  return end === NOT_FOUND ? null : parseObject(bytes.toString('latin1', start, end));
}

/** Offset after the `}` that closes the object at `start`, or -1 if it is cut or too long for a usage object. */
export function objectEnd(bytes: Buffer, start: number): number {
  return valueEnd(bytes, start, Math.min(bytes.length, start + OBJECT_BYTES_MAX));
}
