// Reads the ids of a Responses reply and of its items, by which the caller may refer to them later (spec 4.2). A stream
// has one event for each item when the item begins. Its last event lists all items, but also repeats instructions and
// tools, and so may be longer than what is kept.

import { Buffer } from 'node:buffer';
import { isKeptItemId, KEPT_ID_BYTES_MAX, KEPT_ITEMS_MAX } from '../../domain/stored-objects/kept-ids.ts';
import { skipSpace, writtenString } from '../../platform/bytes/json-bytes.ts';
import { firstItemAt, memberAt, NOT_THERE, nextAfter } from '../../platform/bytes/json-members.ts';
import { matchesAt } from '../../platform/bytes/matches-at.ts';
import type { KeptReply, StoredReplyIds, StoredReplyWatch } from '../dialects/dialect.ts';
import { readResponseId } from './response-id.ts';
import { DATA_FIELD, DATA_LINE, LINE_FEED } from './syntax.ts';
import { isDocument } from './usage-window.ts';

/**
 * How much of an event is searched: the id is at its beginning, or after fields that are empty when the item begins.
 */
const EVENT_BYTES_MAX = 4_096;

const MARK = Buffer.from('response.output_item.');
/**
 * The possible beginnings of lines that contain the mark. JSON has no raw line ends, so nothing that a model or caller
 * writes can begin a line.
 */
const LINE_BEGINNINGS = ['event: ', 'event:', 'data: {"type":"', 'data:{"type":"', 'data: {"type": "'].map((before) =>
  Buffer.concat([Buffer.from(before), MARK]),
);
const LINE_BEGINNING_BYTES_MAX = Math.max(...LINE_BEGINNINGS.map(({ length }) => length));
const ID = Buffer.from('id');
const ITEM = Buffer.from('item');
const OUTPUT = Buffer.from('output');
const RESPONSE = Buffer.from('response');
const OPEN_BRACE = 0x7b;

export class StoredReply implements StoredReplyWatch {
  private readonly ids = new Set<string>();
  private atLineStart = true;
  /** The beginning of a line that continues in the next chunk. */
  private carry: Buffer | null = null;

  feed(chunk: Buffer): void {
    if (chunk.length === 0) return;
    const carry = this.carry;
    const bytes = carry === null ? chunk : Buffer.concat([carry, chunk]);
    const atLineStart = this.atLineStart || carry !== null;
    this.carry = null;
    let mark = bytes.indexOf(MARK);
    while (mark !== -1) {
      const line = lineBeginning(bytes, mark, atLineStart);
      if (line !== NOT_THERE && !this.takeEvent(bytes, line)) return;
      mark = bytes.indexOf(MARK, mark + MARK.length);
    }
    this.atLineStart = bytes.at(-1) === LINE_FEED;
    this.carry = unfinishedBeginning(bytes, atLineStart);
  }

  /** Takes an item's id from its event. False: the id may be in the next chunk, so the event is carried over. */
  private takeEvent(bytes: Buffer, line: number): boolean {
    const lineEnd = bytes.indexOf(LINE_FEED, line);
    const data = bytes[line] === DATA_FIELD[0] ? line : lineEnd === -1 ? bytes.length : lineEnd + 1;
    const dataEnd = bytes.indexOf(LINE_FEED, data);
    if (matchesAt(bytes, data, DATA_FIELD)) {
      // Only this event's line: otherwise all lines after it would be searched for a member that it lacks.
      const event = dataEnd === -1 ? bytes : bytes.subarray(0, dataEnd);
      const item = memberAt(event, skipSpace(event, data + DATA_FIELD.length), ITEM);
      if (item !== NOT_THERE && this.takeItem(event, item)) return true;
    }
    if (dataEnd !== -1 || bytes.length - line >= EVENT_BYTES_MAX) return true;
    this.carry = Buffer.from(bytes.subarray(line));
    return false;
  }

  /** Takes an item's id. False: the id could not be read, or is not one that is stored. */
  private takeItem(bytes: Buffer, item: number): boolean {
    const at = memberAt(bytes, item, ID);
    const id = at === NOT_THERE ? null : writtenString(bytes, at, KEPT_ID_BYTES_MAX);
    if (id === null || !isKeptItemId(id)) return false;
    if (this.ids.size < KEPT_ITEMS_MAX) this.ids.add(id);
    return true;
  }

  read({ beginning, end }: KeptReply): StoredReplyIds {
    if (isDocument(beginning)) this.takeOutput(beginning, memberAt(beginning, beginning.indexOf(OPEN_BRACE), OUTPUT));
    else {
      const event = lastEvent(end);
      const response = event === NOT_THERE ? NOT_THERE : memberAt(end, event, RESPONSE);
      if (response !== NOT_THERE) this.takeOutput(end, memberAt(end, response, OUTPUT));
    }
    return { responseId: readResponseId(beginning), itemIds: [...this.ids] };
  }

  private takeOutput(bytes: Buffer, output: number): void {
    for (let item = firstItemAt(bytes, output); bytes[item] === OPEN_BRACE; item = nextAfter(bytes, item))
      this.takeItem(bytes, item);
  }
}

/** Where the line with the mark begins; NOT_THERE if the mark is in the wrong place. */
function lineBeginning(bytes: Buffer, mark: number, atLineStart: boolean): number {
  for (const beginning of LINE_BEGINNINGS) {
    const start = mark + MARK.length - beginning.length;
    const isLineStart = start === 0 ? atLineStart : bytes[start - 1] === LINE_FEED;
    if (start >= 0 && isLineStart && matchesAt(bytes, start, beginning)) return start;
  }
  return NOT_THERE;
}

/** The last, unfinished line, if more of it could turn out to contain the mark. */
function unfinishedBeginning(bytes: Buffer, atLineStart: boolean): Buffer | null {
  const lineFeed = bytes.lastIndexOf(LINE_FEED);
  const start = lineFeed + 1;
  const { length } = bytes;
  if (start === length || length - start >= LINE_BEGINNING_BYTES_MAX || (lineFeed === -1 && !atLineStart)) return null;
  const line = bytes.subarray(start);
  const mayGoOn = LINE_BEGINNINGS.some((beginning) => line.length < beginning.length && matchesAt(beginning, 0, line));
  return mayGoOn ? Buffer.from(line) : null;
}

/** Where the data of the stream's last event begins, if all of it is kept. */
function lastEvent(end: Buffer): number {
  for (let line = end.lastIndexOf(DATA_LINE); line > 0; line = end.lastIndexOf(DATA_LINE, line - 1)) {
    const data = skipSpace(end, line + DATA_LINE.length);
    if (end[data] === OPEN_BRACE) return data;
  }
  return NOT_THERE;
}
