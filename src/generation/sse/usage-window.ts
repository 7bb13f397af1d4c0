// Finds the provider's usage object in what was kept of a reply, without parsing the reply (PERFORMANCE 6): a native
// search for the key, then a look at how deep it lies. Only the object itself is parsed.

import type { KeptReply } from '../dialects/dialect.ts';
import type { UsageObject } from '../dialects/usage/reported-counts.ts';
import { DepthFromEnd, DepthFromStart, NO_DEPTH } from './json-depth.ts';

const USAGE_KEY = Buffer.from('"usage"');
/** Usage objects that list their parts (Anthropic's iterations) are the longest. */
export const OBJECT_BYTES_MAX = 65_536;
const LINE_FEED = 0x0a;
const NOT_FOUND = -1;

/** A reply is one JSON document or a stream of events, whatever its content type says. */
export function isDocument(beginning: Buffer): boolean {
  let at = skipSpace(beginning, 0);
  if (beginning[at] === 0xef && beginning[at + 1] === 0xbb && beginning[at + 2] === 0xbf)
    at = skipSpace(beginning, at + 3);
  return beginning[at] === 0x7b;
}

/**
 * The `"usage": {...}` at the top level of a document. Most providers name it near the end; Mistral begins with it, and
 * a document that was cut has no end to count depths from.
 */
export function documentUsage(reply: KeptReply): UsageObject | null {
  if (!reply.cut) {
    const { end } = reply;
    const depths = new DepthFromEnd(end, end.length);
    for (let key = end.lastIndexOf(USAGE_KEY); key !== NOT_FOUND; key = keyBefore(end, key)) {
      const start = objectStart(end, key + USAGE_KEY.length);
      if (start === NOT_FOUND) continue;
      const depth = depths.at(key);
      if (depth === NO_DEPTH) break;
      const usage = depth === 1 ? readObject(end, start) : null;
      if (usage !== null) return usage;
    }
  }
  return firstUsage(reply.beginning);
}

function firstUsage(beginning: Buffer): UsageObject | null {
  const depths = new DepthFromStart(beginning, 0);
  for (let key = beginning.indexOf(USAGE_KEY); key !== NOT_FOUND; key = beginning.indexOf(USAGE_KEY, key + 1)) {
    const start = objectStart(beginning, key + USAGE_KEY.length);
    if (start === NOT_FOUND) continue;
    const depth = depths.at(key);
    if (depth === NO_DEPTH) return null;
    const usage = depth === 1 ? readObject(beginning, start) : null;
    if (usage !== null) return usage;
  }
  return null;
}

/** Asks `pick` for each complete event that holds a usage object, the last one first, until it finds one. */
export function lastEventUsage(reply: KeptReply, pick: (event: EventLine) => UsageObject | null): UsageObject | null {
  const bytes = reply.end;
  let key = bytes.lastIndexOf(USAGE_KEY);
  while (key !== NOT_FOUND) {
    const event = eventAround(bytes, key, reply.cut);
    const usage = event === null ? null : pick(event);
    if (usage !== null) return usage;
    const lineStart = bytes.lastIndexOf(LINE_FEED, key) + 1;
    key = lineStart === 0 ? NOT_FOUND : bytes.lastIndexOf(USAGE_KEY, lineStart - 1);
  }
  return null;
}

/** The first event that speaks of usage. */
export function firstEventWithUsage(reply: KeptReply): EventLine | null {
  const { beginning } = reply;
  const key = beginning.indexOf(USAGE_KEY);
  return key === NOT_FOUND ? null : eventAround(beginning, key, reply.cut || reply.end.length !== beginning.length);
}

/**
 * null where the line is not complete. JSON holds no raw line end, so the data of an event is the line its keys stand
 * in.
 */
function eventAround(bytes: Buffer, key: number, cut: boolean): EventLine | null {
  const lineEnd = bytes.indexOf(LINE_FEED, key);
  if (lineEnd === NOT_FOUND && cut) return null;
  return new EventLine(bytes, bytes.lastIndexOf(LINE_FEED, key) + 1, lineEnd === NOT_FOUND ? bytes.length : lineEnd);
}

const EVENT_NAME = /^event:[ \t]*([\w.]{1,64})/;
const EVENT_TYPE = /^data:[ \t]*\{[ \t]*"type"[ \t]*:[ \t]*"([\w.]{1,64})"/;
const TYPE_BYTES_MAX = 160;

/** The data line of one event. The kept bytes of a long reply may begin inside it. */
export class EventLine {
  /** Whether `usageAt` has met a usage object at all. */
  hasUsage = false;
  readonly #bytes: Buffer;
  readonly #start: number;
  readonly #end: number;

  constructor(bytes: Buffer, start: number, end: number) {
    this.#bytes = bytes;
    this.#start = start;
    this.#end = end;
  }

  /** The last usage object that lies no deeper than this. */
  usageAt(deepest: number): UsageObject | null {
    // A view of its own, since a search does not stop at the line's beginning.
    const line = this.#bytes.subarray(this.#start, this.#end);
    const depths = new DepthFromEnd(line, line.length);
    for (let key = line.lastIndexOf(USAGE_KEY); key !== NOT_FOUND; key = keyBefore(line, key)) {
      const start = objectStart(line, key + USAGE_KEY.length);
      if (start === NOT_FOUND) continue;
      const depth = depths.at(key);
      if (depth === NO_DEPTH) return null;
      this.hasUsage = true;
      const usage = depth > 0 && depth <= deepest ? readObject(line, start) : null;
      if (usage !== null) return usage;
    }
    return null;
  }

  /** What the event is called, in its own line or by the `type` its data begins with; null where neither is kept. */
  get type(): string | null {
    const line = this.#bytes.toString('latin1', this.#start, Math.min(this.#end, this.#start + TYPE_BYTES_MAX));
    const before = this.#start === 0 ? 0 : this.#bytes.lastIndexOf(LINE_FEED, Math.max(0, this.#start - 2)) + 1;
    const lineBefore = this.#bytes.toString('latin1', before, Math.min(this.#start, before + TYPE_BYTES_MAX));
    return EVENT_TYPE.exec(line)?.[1] ?? EVENT_NAME.exec(lineBefore)?.[1] ?? null;
  }

  /** The whole data, parsed. */
  json(): UsageObject | null {
    const text = this.#bytes.toString('utf8', this.#start, this.#end);
    return text.startsWith('data:') ? parseObject(text.slice('data:'.length)) : null;
  }
}

/** Whether a usage object begins somewhere in these bytes, however deep. */
export function namesUsageObject(bytes: Buffer): boolean {
  for (let key = bytes.indexOf(USAGE_KEY); key !== NOT_FOUND; key = bytes.indexOf(USAGE_KEY, key + USAGE_KEY.length)) {
    if (objectStart(bytes, key + USAGE_KEY.length) !== NOT_FOUND) return true;
  }
  return false;
}

function keyBefore(bytes: Buffer, key: number): number {
  return key === 0 ? NOT_FOUND : bytes.lastIndexOf(USAGE_KEY, key - 1);
}

/** Offset of the `{` after a key's colon, or -1: `"usage": null` stands in every event of a stream but the last. */
function objectStart(bytes: Buffer, afterKey: number): number {
  let offset = skipSpace(bytes, afterKey);
  if (bytes[offset] !== 0x3a) return NOT_FOUND;
  offset = skipSpace(bytes, offset + 1);
  return bytes[offset] === 0x7b ? offset : NOT_FOUND;
}

export function skipSpace(bytes: Buffer, offset: number): number {
  let at = offset;
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at += 1;
  return at;
}

function readObject(bytes: Buffer, start: number): UsageObject | null {
  const end = objectEnd(bytes, start);
  return end === NOT_FOUND ? null : parseObject(bytes.toString('latin1', start, end));
}

/** Offset after the `}` that closes the object at `start`, or -1 when it is cut or too long to be a usage object. */
export function objectEnd(bytes: Buffer, start: number): number {
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
  return NOT_FOUND;
}

export function parseObject(text: string): UsageObject | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as UsageObject) : null;
  } catch {
    return null;
  }
}
