// Tells whether a reply ended because its limit on output tokens was reached (spec 2.5, `truncated`), without parsing
// the reply: a native search finds the value that says so, and only then its key and depth are checked. Callers'
// schemas and tools' arguments may contain the same words.

import { Buffer } from 'node:buffer';
import { keyBefore, skipSpaceBack } from '../../../platform/bytes/json-bytes.ts';
import { DepthFromEnd, DepthFromStart, NO_DEPTH } from '../../../platform/bytes/json-depth.ts';
import { LINE_FEED } from '../../sse/syntax.ts';
import { isDocument } from '../../sse/usage-window.ts';
import type { KeptReply } from '../dialect.ts';

const NOT_FOUND = -1;
const OPEN_BRACE = 0x7b;
/** The reason is in one of the last three events, which are short: usage and the end follow it. */
const STREAM_SEARCH_BYTES = 8_192;

/** How a dialect reports that the limit was reached. The names and the value include their quotes. */
export interface LimitMark {
  readonly key: Buffer;
  readonly value: Buffer;
  /**
   * The part of the value that is searched for; it begins `probeAt` bytes after the value's start. It begins at a
   * letter that is rare in texts, and is shorter than eight bytes, since Node's search prepares a table for longer
   * patterns (0.8 µs for 1 KB, instead of 0.2).
   */
  readonly probe: Buffer;
  readonly probeAt: number;
  /** The key of the object in which `key` is the first member; null: the depth suffices. */
  readonly parent: Buffer | null;
  /** How many objects and arrays are open at the key, in a JSON body and in an event's data. */
  readonly documentDepth: number;
  readonly eventDepth: number;
}

/** False also when it is not known, because the reply broke off before it gave a reason. */
export function endedAtLimit(reply: KeptReply, mark: LimitMark): boolean {
  const { beginning, end, cut } = reply;
  if (!isDocument(beginning)) return inEvents(end.subarray(Math.max(0, end.length - STREAM_SEARCH_BYTES)), cut, mark);
  if (inBeginning(beginning, mark)) return true;
  return !cut && end.length !== beginning.length && inEnd(end, mark, mark.documentDepth);
}

/** Like `endedAtLimit`, for a stream whose last event may be longer than what `endedAtLimit` searches. */
export function lastEventSaysLimit(reply: KeptReply, mark: LimitMark): boolean {
  return inEvents(reply.end, reply.cut, mark);
}

function inBeginning(bytes: Buffer, mark: LimitMark): boolean {
  const depths = new DepthFromStart(bytes, 0);
  for (let value = findValue(bytes, mark, 0); value !== NOT_FOUND; value = findValue(bytes, mark, value + 1)) {
    const key = keyOf(bytes, value, mark);
    if (key === NOT_FOUND) continue;
    const depth = depths.at(key);
    if (depth === mark.documentDepth) return true;
    if (depth === NO_DEPTH) return false;
  }
  return false;
}

/** The next place at or after `from` where the mark's value begins; -1: there is none. */
function findValue(bytes: Buffer, { value, probe, probeAt }: LimitMark, from: number): number {
  for (let at = bytes.indexOf(probe, from + probeAt); at !== NOT_FOUND; at = bytes.indexOf(probe, at + 1)) {
    const start = at - probeAt;
    if (
      start + value.length <= bytes.length &&
      bytes.compare(value, 0, value.length, start, start + value.length) === 0
    )
      return start;
  }
  return NOT_FOUND;
}

/** Searches events line by line: JSON contains no raw line end, so the data of an event is one line. */
function inEvents(bytes: Buffer, cut: boolean, mark: LimitMark): boolean {
  let value = findValue(bytes, mark, 0);
  while (value !== NOT_FOUND) {
    const lineEnd = bytes.indexOf(LINE_FEED, value);
    // A line that broke off has no end to count depths from.
    if (lineEnd === NOT_FOUND && cut) return false;
    const line = bytes.subarray(
      bytes.lastIndexOf(LINE_FEED, value) + 1,
      lineEnd === NOT_FOUND ? bytes.length : lineEnd,
    );
    if (inEnd(line, mark, mark.eventDepth)) return true;
    value = lineEnd === NOT_FOUND ? NOT_FOUND : findValue(bytes, mark, lineEnd);
  }
  return false;
}

/** Searches a document whose end is complete. */
function inEnd(bytes: Buffer, mark: LimitMark, wantedDepth: number): boolean {
  const depths = new DepthFromEnd(bytes, bytes.length);
  for (let value = bytes.lastIndexOf(mark.value); value > 0; value = bytes.lastIndexOf(mark.value, value - 1)) {
    const key = keyOf(bytes, value, mark);
    if (key === NOT_FOUND) continue;
    const depth = depths.at(key);
    if (depth === wantedDepth) return true;
    if (depth === NO_DEPTH) return false;
  }
  return false;
}

/** Where the mark's key begins, if the value at `value` belongs to it; else -1. */
function keyOf(bytes: Buffer, value: number, { key, parent }: LimitMark): number {
  const start = keyBefore(bytes, value, key);
  if (start === NOT_FOUND || parent === null) return start;
  const brace = skipSpaceBack(bytes, start - 1);
  return bytes[brace] === OPEN_BRACE && keyBefore(bytes, brace, parent) !== NOT_FOUND ? start : NOT_FOUND;
}
