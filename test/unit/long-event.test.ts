// What stays of an event that is longer than what is kept of a long reply's end.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { LongEvent } from '../../src/generation/sse/long-event.ts';
import { type SplitPlan, splitBytes } from '../support/byte-splits.ts';

const LINE_BYTES_MIN = 1_000;
const LONG = `\\"{[${'\\\\'.repeat(10_000)}`;

const PLANS: readonly SplitPlan[] = [
  { kind: 'whole' },
  { kind: 'each_byte' },
  { kind: 'random', seed: 1, bytesMax: 100 },
  { kind: 'random', seed: 2, bytesMax: 10_000 },
];

function condensed(stream: string, plan: SplitPlan): string | null {
  const events = new LongEvent(LINE_BYTES_MIN);
  for (const piece of splitBytes(Buffer.from(stream), plan)) events.feed(piece);
  return events.read()?.toString() ?? null;
}

const line = (response: string): string => `data: {"type":"response.completed","response":{${response}}}`;
const short =
  '"service_tier":"flex","tool_usage":{"web_search":{"num_requests":1}},"x":["\\"}"],"usage":{"input_tokens":1}';
const WHOLE = line(`"output":[{"text":"${LONG}"}],${short},"text":"${LONG}","tools":{"a":[[{"${LONG}":1}]]},"last":1`);
const CONDENSED = line(`"output":null,${short},"text":null,"tools":null,"last":1`);

describe('what stays of a long event', () => {
  const ROWS: readonly (readonly [name: string, stream: string, found: string | null])[] = [
    ['its short members', `${WHOLE}\n\n`, CONDENSED],
    ['where it has no end of its line', `: a\n\n${WHOLE}`, CONDENSED],
    ['where others follow', `${WHOLE}\n\ndata: {"a":1}\n\ndata: [DONE]\n\n`, CONDENSED],
    ['nothing where it broke off', WHOLE.slice(0, -1), null],
    ['nothing where it broke off behind a whole one', `${WHOLE}\n\n${WHOLE.slice(0, -30)}`, null],
    ['nothing of a comment', `: ${WHOLE}\n\n`, null],
    ['nothing of a short one', 'data: {"a":1}\n\n', null],
    ['nothing where all of it is short, and too much', `data: {${'"a":1,'.repeat(20_000)}"b":1}\n`, null],
  ];
  for (const [name, stream, found] of ROWS) {
    test(name, () => {
      for (const plan of PLANS) assert.equal(condensed(stream, plan), found, JSON.stringify(plan));
    });
  }
});

test('however a stream is written, little of it stays and no byte is passed twice', (context) => {
  let bytes = 0;
  const slice = Buffer.prototype.toString;
  context.mock.method(Buffer.prototype, 'toString', function (this: Buffer, ...args: [BufferEncoding, number, number]) {
    const text = slice.apply(this, args);
    bytes += text.length;
    return text;
  });
  for (const unit of ['"', '{', '[', '{"a":[', '"a",', '\\', '{"a":{"b":"c', '"aaaa":{}}']) {
    bytes = 0;
    const piece = Buffer.from(unit.repeat(Math.ceil(65_536 / unit.length)));
    const events = new LongEvent(LINE_BYTES_MIN);
    events.feed(Buffer.from('data: {"response":{'));
    for (let times = 0; times < 100; times++) events.feed(piece);
    assert.equal(events.read(), null);
    assert.ok(bytes <= 65_536 * 3, `${bytes} bytes stay of ${unit}`);
  }
});
