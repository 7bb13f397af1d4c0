// A stream in carriage returns becomes one in line feeds, however it is split; any other one is handed on as it is.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { LineFeeds } from '../../src/generation/sse/line-feeds.ts';
import { type SplitPlan, splitBytes } from '../support/byte-splits.ts';

const IN_RETURNS = [
  'event: a\rdata: {}\r\r: b\r\r',
  '\r\rdata: 1\r\r',
  'data: 1\r\rdata: 2\r\n\r\ndata: 3\n\ndata: 4\r\r\n\n\r\r',
  'data: caf\u00e9\r\r\r\n',
];
const AS_THEY_ARE = ['event: a\ndata: {}\n\n', 'event: a\r\ndata: {}\r\n\r\n', '\n\r\r', '\r\n\r', 'data: 1', ''];

const plansFor = (bytes: Buffer): readonly SplitPlan[] => [
  { kind: 'whole' },
  { kind: 'each_byte' },
  ...Array.from({ length: Math.max(0, bytes.length - 1) }, (_, index) => ({ kind: 'two' as const, at: index + 1 })),
];
const asEvents = (text: string): string => text.replace(/\r\n|\r/g, '\n');

describe('the ends of lines', () => {
  for (const text of IN_RETURNS)
    test(`become line feeds in ${JSON.stringify(text)}`, () => {
      const bytes = Buffer.from(text);
      for (const plan of plansFor(bytes)) {
        const feeds = new LineFeeds();
        const read = Buffer.concat(splitBytes(bytes, plan).map((chunk) => feeds.feed(chunk))).toString();
        assert.equal(asEvents(read), asEvents(text), JSON.stringify(plan));
        // Behind the first line, which may be decided only when it has been handed on.
        assert.doesNotMatch(read.slice(read.indexOf('\n') + 1), /\r/);
      }
    });

  for (const text of AS_THEY_ARE)
    test(`stay as they are in ${JSON.stringify(text)}`, () => {
      const bytes = Buffer.from(text);
      for (const plan of plansFor(bytes)) {
        const feeds = new LineFeeds();
        for (const chunk of splitBytes(bytes, plan)) assert.equal(feeds.feed(chunk), chunk, JSON.stringify(plan));
      }
    });
});
