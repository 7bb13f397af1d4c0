// The byte syntax of event streams (server-sent events), and `[DONE]`, after which nothing follows.

import { Buffer } from 'node:buffer';
import { matchesAt } from '../../platform/bytes/matches-at.ts';

export const LINE_FEED = 0x0a;
export const CARRIAGE_RETURN = 0x0d;
export const EVENT_FIELD = Buffer.from('event:');
export const DATA_FIELD = Buffer.from('data:');
/** A data line that is not the first line of the searched bytes. */
export const DATA_LINE = Buffer.from('\ndata:');
export const DONE_NAME = '[DONE]';
export const DONE = Buffer.from(DONE_NAME);

const BYTE_ORDER_MARK = Buffer.from('\ufeff');

/** Where the first line of a stream begins: after a byte order mark, which clients ignore. */
export function firstLineAt(stream: Buffer): number {
  return matchesAt(stream, 0, BYTE_ORDER_MARK) ? BYTE_ORDER_MARK.length : 0;
}
