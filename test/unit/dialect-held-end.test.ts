// The bytes that show a client the end of a stream stay here until the end is recorded, in every dialect and however
// they come.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { chatCompletions } from '../../src/generation/dialects/chat-completions.ts';
import type { Dialect } from '../../src/generation/dialects/dialect.ts';
import { messages } from '../../src/generation/dialects/messages.ts';
import { responses } from '../../src/generation/dialects/responses.ts';
import { CapturedReply } from '../../src/generation/reply/capture.ts';
import { WithholdEnd } from '../../src/generation/reply/withhold-end.ts';
import { ReplyStage } from '../../src/upstream/reply-handler.ts';
import { splitBytes } from '../support/byte-splits.ts';
import { RelayInHand } from '../support/relay-in-hand.ts';

const STREAMS: readonly (readonly [dialect: Dialect, ordinary: string, end: string])[] = [
  [chatCompletions, 'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}\n\n', 'data: [DONE]\n\n'],
  [
    responses,
    'event: response.created\ndata: {"type":"response.created"}\n\n',
    'event: response.completed\ndata: {"type":"response.completed","response":{"usage":{"input_tokens":7,"output_tokens":2}}}\n\n',
  ],
  [
    messages,
    'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":7,"output_tokens":1}}}\n\nevent: message_delta\ndata: {"type":"message_delta","usage":{"output_tokens":2}}\n\n',
    'event: message_stop\ndata: {"type":"message_stop"}\n\n',
  ],
];

for (const [dialect, ordinary, end] of STREAMS) {
  for (const bytesMax of [1, 9, 10_000]) {
    test(`${dialect.api} in pieces of up to ${bytesMax}`, async () => {
      const client = new RelayInHand(dialect);
      const stream = Buffer.from(ordinary + end);
      for (const chunk of splitBytes(stream, { kind: 'random', seed: bytesMax, bytesMax })) {
        await client.receive(chunk);
        assert.ok(
          client.written.length < stream.length - 2 && stream.toString().startsWith(client.written),
          client.written,
        );
      }
      // The client saw all of what came before; the end waits, though the provider has said it all.
      if (bytesMax < 10) assert.ok(client.written.startsWith(ordinary));
      assert.equal(client.ending?.outcome, 'completed');
      assert.deepEqual(
        [client.ending?.measured.usage?.inputTokens, client.ending?.measured.usage?.outputTokens],
        [7, 2],
      );
      client.record();
      await new Promise((resolve) => setImmediate(resolve));
      assert.equal(client.written, ordinary + end);
      assert.equal(client.over, false, 'the provider has not closed');
      await client.end();
      assert.equal(client.over, true);
    });
  }
}

const CONTENT = 'data: {"choices":[{"index":0,"delta":{"content":"a"}}],"usage":null}\n\n';
const USAGE = 'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}\n\n';
const DONE = 'data: [DONE]\n\n';

for (const bytesMax of [1, 9, 10_000]) {
  for (const end of [DONE, '']) {
    test(`usage that the gateway asked for, in pieces of up to ${bytesMax}, ${end === '' ? 'ended by the provider' : 'ended by [DONE]'}`, async () => {
      const client = new RelayInHand(chatCompletions, true);
      const stop = CONTENT.replace('"delta"', '"finish_reason":"stop","delta"');
      // A last line without its end is a usage chunk too.
      const stream = Buffer.from(CONTENT + stop + (end === '' ? USAGE.trimEnd() : USAGE) + end);
      for (const chunk of splitBytes(stream, { kind: 'random', seed: bytesMax, bytesMax })) {
        await client.receive(chunk);
        assert.ok(
          (CONTENT + stop + DONE).startsWith(client.written) && !client.written.includes('[DONE]'),
          client.written,
        );
      }
      if (end === '') await client.end();
      // The client has the content, unless it came in one piece with the end; the record is written before it sees
      // more.
      if (bytesMax < 10 || end === '') assert.ok(client.written.startsWith(CONTENT + stop));
      assert.equal(client.ending?.outcome, 'completed');
      assert.deepEqual(
        [client.ending?.measured.usage?.inputTokens, client.ending?.measured.usage?.outputTokens],
        [7, 2],
      );
      assert.equal(client.over, false);
      client.record();
      await new Promise((resolve) => setImmediate(resolve));
      if (end !== '') await client.end();
      else await new Promise((resolve) => setImmediate(resolve));
      assert.deepEqual([client.written, client.over], [CONTENT + stop + end, true]);
    });
  }
}

test('[DONE] with more behind it, in one read: the client sees it once the record is written', async () => {
  const client = new RelayInHand(chatCompletions);
  await client.receive(Buffer.from(CONTENT + DONE + USAGE));
  assert.ok(!client.written.includes('[DONE]'), client.written);
  assert.equal(client.ending?.outcome, 'completed');
  client.record();
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(client.written, CONTENT + DONE + USAGE);
});

test('usage that the gateway asked for, of a stream that is cut: metered, and kept from the client', async () => {
  const client = new RelayInHand(chatCompletions, true);
  await client.receive(Buffer.from(CONTENT + USAGE));
  client.provider.onReplyFault('cut');
  assert.equal(client.ending?.outcome, 'usage_then_cut');
  client.record();
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([client.written, client.over], [CONTENT, false]);
});

test('a provider that closes inside its last event: what came goes out after the record', async () => {
  const client = new RelayInHand(responses);
  const part =
    'event: response.completed\ndata: {"type":"response.completed","response":{"usage":{"input_tokens":7,"output_tokens":2}}}';
  await client.receive(Buffer.from(part));
  assert.equal(client.written, '');
  await client.end();
  assert.equal(client.written, '');
  client.record();
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(client.written, part);
});

/** What a stage passes on. */
class Passed extends ReplyStage {
  readonly chunks: Buffer[] = [];
  bytes = 0;
  protected readonly next = null as never;
  override onReplyData(chunk: Buffer): void {
    this.chunks.push(chunk);
    this.bytes += chunk.length;
  }
  override onReplyPause(): void {
    // There is nothing to write to.
  }
  override onKeyRefused(): void {
    assert.fail('the key is good');
  }
}

describe('the withheld tail', () => {
  const begin = () => {
    const passed = new Passed();
    const reply = new CapturedReply();
    reply.state = 'relaying';
    reply.progress = 'ending';
    const stage = new WithholdEnd(passed, reply, { settle: () => undefined, isScreening: false });
    return { passed, reply, stage };
  };

  test('goes in the order it came', () => {
    const { passed, reply, stage } = begin();
    stage.onReplyData(Buffer.from('a'));
    stage.onReplyData(Buffer.from('b'));
    assert.equal(passed.bytes, 0);
    reply.state = 'settled';
    stage.onRecorded();
    stage.onReplyPause();
    assert.equal(Buffer.concat(passed.chunks).toString(), 'ab');
  });

  test('is not recorded while a guardrail still looks at it, whatever wakes the writer meanwhile', () => {
    const ends: string[] = [];
    const recorder = { settle: (end: string) => void ends.push(end), isScreening: true };
    const reply = new CapturedReply();
    reply.state = 'relaying';
    reply.progress = 'ended';
    const stage = new WithholdEnd(new Passed(), reply, recorder);
    stage.onReplyPause();
    assert.deepEqual(ends, []);
    recorder.isScreening = false;
    stage.onReplyPause();
    assert.deepEqual(ends, ['clean']);
  });

  test('of an endless last event is its newest chunk', () => {
    const { passed, stage } = begin();
    for (let chunk = 1; chunk <= 1000; chunk++) {
      stage.onReplyData(Buffer.alloc(10_000));
      assert.ok(chunk * 10_000 - passed.bytes <= 1_048_576 && passed.bytes < chunk * 10_000);
    }
  });
});
