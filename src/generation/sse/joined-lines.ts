// Joins the lines of events whose data is written in several lines, so that a kept stream can be read as if the data of
// each event were in one line. No provider is known to write several, so this is done only once the stream is over, and
// only if its last report of usage is written so.

import { Buffer } from 'node:buffer';
import { skipSpace } from '../../platform/bytes/json-bytes.ts';
import { valueEnd } from '../../platform/bytes/json-members.ts';
import { matchesAt } from '../../platform/bytes/matches-at.ts';
import type { KeptReply } from '../dialects/dialect.ts';
import { DATA_FIELD, DATA_LINE, firstLineAt, LINE_FEED } from './syntax.ts';
import { isDocument } from './usage-window.ts';

const USAGE_KEY = Buffer.from('"usage"');
/** How much of a stream's end is searched for the last usage, since many a stream has none. */
const SEARCHED_BYTES = 32_768;
const OPEN_BRACE = 0x7b;
const SPACE = 0x20;

/** The same reply, with the data of each event in one line. */
export function withDataInOneLine(reply: KeptReply): KeptReply {
  const { beginning, end } = reply;
  if (isDocument(beginning) || !reportsInSeveralLines(end)) return reply;
  return { ...reply, beginning: joinLines(beginning), end: joinLines(end) };
}

/** Whether the last event with a usage has more data in the line before or after it. */
function reportsInSeveralLines(stream: Buffer): boolean {
  const searchedFrom = Math.max(0, stream.length - SEARCHED_BYTES);
  const found = stream.subarray(searchedFrom).lastIndexOf(USAGE_KEY);
  if (found === -1) return false;
  const key = searchedFrom + found;
  const start = stream.lastIndexOf(LINE_FEED, key) + 1;
  const lineFeed = stream.indexOf(LINE_FEED, key);
  const before = start < 2 ? start : stream.lastIndexOf(LINE_FEED, start - 2) + 1;
  // Some providers leave out the blank line between events. Then each line is an object of its own.
  const isBehindData = before < start && matchesAt(stream, before, DATA_FIELD);
  if (isBehindData && !(isObject(stream, before, start) && beginsObject(stream, start))) return true;
  return lineFeed !== -1 && matchesAt(stream, lineFeed, DATA_LINE) && !isObject(stream, start, lineFeed);
}

function isObject(stream: Buffer, start: number, end: number): boolean {
  if (!beginsObject(stream, start)) return false;
  return skipSpace(stream, valueEnd(stream, start + DATA_FIELD.length, end)) >= end;
}

function beginsObject(stream: Buffer, start: number): boolean {
  return matchesAt(stream, start, DATA_FIELD) && stream[skipSpace(stream, start + DATA_FIELD.length)] === OPEN_BRACE;
}

/** Clients join the lines by line ends, which are blanks in JSON. Here they are joined by spaces. */
function joinLines(stream: Buffer): Buffer {
  const joined = Buffer.from(stream);
  let isData = matchesAt(joined, firstLineAt(joined), DATA_FIELD);
  for (let end = joined.indexOf(LINE_FEED); end !== -1; end = joined.indexOf(LINE_FEED, end + 1)) {
    // A stream that broke off here may have gone on with a line of data. So that its last line is not taken for whole,
    // it loses its line end.
    const field = joined.subarray(end, end + DATA_LINE.length);
    const isMore = matchesAt(DATA_LINE, 0, field);
    if (isData && isMore) field.fill(SPACE);
    isData = isMore;
  }
  return joined;
}
