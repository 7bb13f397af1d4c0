// The events of a stream are counted the same wherever its bytes are cut, and its end and its errors are seen.

import assert from 'node:assert/strict';
import { Buffer } from 'node:buffer';
import { test } from 'node:test';
import { StreamEvents } from '../../src/load/stream-events.ts';

const CASES = [
  {
    name: 'Chat Completions',
    end: 'data: [DONE]',
    text: 'data: {"a":1}\n\ndata: {"b":2}\n\ndata: [DONE]\n\n',
    events: 3,
  },
  {
    name: 'Messages, with carriage returns and a comment',
    end: 'event: message_stop',
    text: 'event: message_start\r\ndata: {}\r\n\r\n: ping\r\n\r\nevent: message_stop\r\ndata: {}\r\n\r\n',
    events: 2,
  },
  {
    name: 'a last event that only its beginning is kept of',
    end: 'event: response.completed',
    text: `event: response.completed\ndata: ${'x'.repeat(500)}\n\n`,
    events: 1,
  },
];

for (const { name, end, text, events } of CASES) {
  test(`${name}: cut at every byte`, () => {
    const bytes = Buffer.from(text);
    for (let cut = 0; cut <= bytes.length; cut++) {
      const found = new StreamEvents(end);
      assert.equal(found.push(bytes.subarray(0, cut)) + found.push(bytes.subarray(cut)), events, `cut at ${cut}`);
      assert.equal(found.isWhole, true);
      assert.equal(found.hasError, false);
    }
  });
}

test('a stream without its last event is not whole; an error in it is seen', () => {
  const cut = new StreamEvents('data: [DONE]');
  assert.equal(cut.push(Buffer.from('data: {"a":"data: [DONE]"}\n\ndata: [DON')), 1);
  assert.equal(cut.isWhole, false);
  const failed = new StreamEvents('event: message_stop');
  failed.push(Buffer.from('event: error\ndata: {"type":"error"}\n\n'));
  assert.equal(failed.hasError, true);
});
