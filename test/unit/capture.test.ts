// What of a reply is whole where its provider ends it without a fault: a stream that broke off within its last event is
// cut, in every dialect and at every byte.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { chatCompletions } from '../../src/generation/dialects/chat-completions.ts';
import type { Dialect } from '../../src/generation/dialects/dialect.ts';
import { imageGenerations, readImageUsage } from '../../src/generation/dialects/images.ts';
import { messages } from '../../src/generation/dialects/messages.ts';
import { responses } from '../../src/generation/dialects/responses.ts';
import { Capture, CapturedReply } from '../../src/generation/reply/capture.ts';
import type { RelayParams } from '../../src/generation/reply/relay-params.ts';
import type { ImageStreamTally } from '../../src/generation/sse/image-tally.ts';
import { systemClock } from '../../src/platform/clock.ts';
import type { ReplyHandler } from '../../src/upstream/reply-handler.ts';

function endOf(
  dialect: Dialect,
  stream: Buffer,
  headers = ['content-type', 'text/event-stream'],
): { readonly isWhole: boolean; readonly reply: CapturedReply } {
  const told: string[] = [];
  const next: ReplyHandler = {
    onReplyStart: () => undefined,
    onReplyData: () => undefined,
    onReplyPause: () => undefined,
    onReplyEnd: () => told.push('end'),
    onKeyRefused: () => undefined,
    onReplyFault: (fault) => told.push(fault),
  };
  const read = { bounds: { streamed: true, outputTokensMax: null, answers: 1 } };
  const params = { dialect, read, execution: { firstByteAtMs: null } } as unknown as RelayParams;
  const reply = new CapturedReply();
  const capture = new Capture(next, reply, params, systemClock);
  capture.onReplyStart(200, headers);
  for (let at = 0; at < stream.length; at += 7) capture.onReplyData(stream.subarray(at, at + 7));
  capture.onReplyEnd();
  assert.ok(told[0] === 'end' || told[0] === 'cut');
  return { isWhole: told[0] === 'end', reply };
}

const LONG = 'A'.repeat(40_000);

/** `^` stands where what the provider has sent becomes whole. */
const STREAMS: Readonly<Record<string, readonly [dialect: Dialect, before: string, last: string]>> = {
  'chat, by [DONE]': [chatCompletions, 'data: {"choices":[{"delta":{}}]}\n\n', 'data: [DONE]^\n\n'],
  'chat, by the reason of its last chunk': [
    chatCompletions,
    'data: {"choices":[{"delta":{}}]}\n\n',
    'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}^\r\n\r\n',
  ],
  responses: [
    responses,
    'event: response.created\ndata: {"type":"response.created","response":{}}\n\n',
    'event: response.completed\ndata: {"type":"response.completed","response":{"output":[{}]}}^\n\n',
  ],
  'responses, failed': [responses, '', 'data: {"type":"response.failed","response":{}}^\n\n'],
  messages: [
    messages,
    'event: ping\ndata: {"type":"ping"}\n\n',
    'event: message_stop\ndata: {"type":"message_stop"}^\n\n',
  ],
};

describe('a stream that its provider ends', () => {
  for (const [name, [dialect, before, last]] of Object.entries(STREAMS)) {
    test(`${name}: is whole with the last byte of its last event's data, and not before`, () => {
      const stream = Buffer.from(before + last.replace('^', ''));
      const wholeAt = before.length + last.indexOf('^');
      for (let length = before.length; length <= stream.length; length++)
        assert.equal(endOf(dialect, stream.subarray(0, length)).isWhole, length >= wholeAt, `${length} bytes`);
    });
  }

  test('chat: a reason that is empty, or the word null, is none', () => {
    for (const [reason, isWhole] of [
      ['"stop"', true],
      ['""', false],
      ['"null"', false],
      ['null', false],
      ['"nullified"', true],
    ] as const) {
      const stream = Buffer.from(`data: {"choices":[{"delta":{"content":"a"},"finish_reason":${reason}}]}\n\n`);
      assert.equal(endOf(chatCompletions, stream).isWhole, isWhole, reason);
    }
  });

  test('is a stream in whatever letters its provider writes that, and encoded where any of its headers says so', () => {
    const begun = Buffer.from('data: {"choices":[{"delta":{"content":"a"}}]}\n\n');
    for (const type of ['text/event-stream', 'Text/Event-Stream; charset=utf-8', 'TEXT/EVENT-STREAM'])
      assert.equal(endOf(chatCompletions, begun, ['content-type', type]).isWhole, false, type);
    for (const [codings, encoding] of [
      [['gzip'], 'gzip'],
      [['identity', 'gzip'], 'gzip'],
      [['', 'Identity', 'br'], 'br'],
      [['gzip', 'br'], 'unknown'],
      [['identity', 'identity'], null],
      [['identity, gzip'], 'gzip'],
    ] as const) {
      const headers = codings.flatMap((coding) => ['content-encoding', coding]);
      assert.equal(endOf(chatCompletions, begun, headers).reply.encoding, encoding, codings.join());
    }
  });

  test('images: each costs once the last byte of its data has come, and a part of one is no end', () => {
    const event = (name: string): string =>
      `event: image_generation.${name}\ndata: {"type":"image_generation.${name}","b64_json":"${LONG}"}`;
    const before = `${event('partial_image')}\n\n`;
    const stream = Buffer.from(`${before}${event('completed')}\n\n`);
    const wholeAt = stream.length - 2;
    const names = Array.from({ length: 120 }, (_, index) => before.length + index);
    for (const length of [...names, wholeAt - 2, wholeAt - 1, wholeAt, wholeAt + 1, wholeAt + 2]) {
      const { isWhole, reply } = endOf(imageGenerations, stream.subarray(0, length));
      const kept = { beginning: reply.bytes.beginning(), end: reply.bytes.end(), cut: !isWhole };
      const { images } = readImageUsage(kept, reply.watch as ImageStreamTally, false);
      assert.deepEqual(
        [isWhole, images],
        [length >= wholeAt || length === before.length, length >= wholeAt ? 1 : length === before.length ? null : 0],
        `${length} bytes`,
      );
    }
  });
});
