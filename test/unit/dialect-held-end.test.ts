// The bytes that show a client the end of a stream stay here until the end is recorded, in every dialect and however they come.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { chatCompletions } from '../../src/data-plane/dialects/chat-completions.ts';
import type { Dialect } from '../../src/data-plane/dialects/dialect.ts';
import { messages } from '../../src/data-plane/dialects/messages.ts';
import { RequestScanner } from '../../src/data-plane/dialects/request-scan/request-scanner.ts';
import { responses } from '../../src/data-plane/dialects/responses.ts';
import type { Ending } from '../../src/data-plane/metering/execution.ts';
import { HeldBytes } from '../../src/data-plane/relay/held-bytes.ts';
import { OpenRelays } from '../../src/data-plane/relay/open-relays.ts';
import { relay } from '../../src/data-plane/relay/relay.ts';
import type { RelayContext, RelayQuestion } from '../../src/data-plane/relay/relay-question.ts';
import type { ReplyListener } from '../../src/data-plane/relay/upstream.ts';
import { splitBytes } from '../support/byte-splits.ts';

const scanner = new RequestScanner();

/** A relay between a client and a provider that are arrays, whose record is written when the test says so. */
class RelayInHand {
  written = '';
  over = false;
  ending: Ending | null = null;
  record: () => void = () => assert.fail('the end is not being recorded');
  readonly provider: ReplyListener;

  constructor(dialect: Dialect, asksForUsage = false) {
    const body = Buffer.from('{"model":"m","stream":true}');
    const execution = {
      settled: false,
      firstByteAtMs: null,
      end: (ending: Ending, recorded: () => void) => {
        this.ending = ending;
        this.record = () => {
          execution.settled = true;
          recorded();
        };
      },
    };
    const listeners: ReplyListener[] = [];
    const take = (chunk: Uint8Array): boolean => {
      this.written += Buffer.from(chunk).toString('latin1');
      return true;
    };
    const exchange = {
      headers: [],
      closed: false,
      aborted: false,
      onAbort: () => undefined,
      cork: (write: () => void) => write(),
      begin: () => undefined,
      write: take,
      end: (chunk?: Uint8Array) => {
        if (chunk !== undefined) take(chunk);
        this.over = true;
        exchange.closed = true;
      },
      cut: () => {
        exchange.closed = true;
      },
      fail: (fault: unknown) => assert.fail(String(fault)),
    };
    let nowMs = 0;
    const slab = { buffer: body, bodyStart: 0 };
    const scanned = scanner.scan(body);
    const modelAt = scanned.valueOf('model');
    const read = { requestedModel: 'm', modelAt, bounds: { streamed: true, outputTokensMax: null, answers: 1 } };
    const question = { exchange, dialect, request: { slab, body, scanned, form: null }, read, execution, tokenizer: 'o200k_base', ownHeaders: [] };
    const context = {
      slabs: { release: () => undefined, discard: () => undefined },
      // No piece comes close behind another, so none is gathered.
      clock: { nowMs: () => 0, monotonicMs: () => (nowMs += 10) },
      open: new OpenRelays(),
      originOf: () => ({ call: (_request: unknown, listener: ReplyListener) => listeners.push(listener) }),
      pathPrefixOf: () => '',
      onUpstreamFault: () => undefined,
    };
    const offers = [{ provider: { auth: 'bearer', apiKey: 'k' }, modelJson: Buffer.from('"m"'), modelText: Buffer.from('m'), asksForUsage }];
    relay({ ...question, offers } as unknown as RelayQuestion, context as unknown as RelayContext);
    this.provider = listeners[0] as ReplyListener;
    this.provider.onReplyStart(200, ['content-type', 'text/event-stream']);
  }

  /** As the provider's socket would deliver it: what is due is done before the next chunk. */
  async receive(chunk: Buffer): Promise<void> {
    this.provider.onReplyData(chunk);
    this.provider.onReplyPause();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

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
        assert.ok(client.written.length < stream.length - 2 && stream.toString().startsWith(client.written), client.written);
      }
      // The client saw all of what came before; the end waits, though the provider has said it all.
      if (bytesMax < 10) assert.ok(client.written.startsWith(ordinary));
      assert.equal(client.ending?.outcome, 'completed');
      assert.deepEqual([client.ending?.measured.usage?.inputTokens, client.ending?.measured.usage?.outputTokens], [7, 2]);
      client.record();
      await new Promise((resolve) => setImmediate(resolve));
      assert.equal(client.written, ordinary + end);
      assert.equal(client.over, false, 'the provider has not closed');
      client.provider.onReplyEnd(true);
      await new Promise((resolve) => setImmediate(resolve));
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
        assert.ok((CONTENT + stop + DONE).startsWith(client.written) && !client.written.includes('[DONE]'), client.written);
      }
      if (end === '') client.provider.onReplyEnd(true);
      // The client has the content, unless it came in one piece with the end; the record is written before it sees more.
      if (bytesMax < 10 || end === '') assert.ok(client.written.startsWith(CONTENT + stop));
      assert.equal(client.ending?.outcome, 'completed');
      assert.deepEqual([client.ending?.measured.usage?.inputTokens, client.ending?.measured.usage?.outputTokens], [7, 2]);
      assert.equal(client.over, false);
      client.record();
      await new Promise((resolve) => setImmediate(resolve));
      if (end !== '') client.provider.onReplyEnd(true);
      await new Promise((resolve) => setImmediate(resolve));
      assert.deepEqual([client.written, client.over], [CONTENT + stop + end, true]);
    });
  }
}

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
  const part = 'event: response.completed\ndata: {"type":"response.completed","response":{"usage":{"input_tokens":7,"output_tokens":2}}}';
  await client.receive(Buffer.from(part));
  assert.equal(client.written, '');
  client.provider.onReplyEnd(true);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(client.written, '');
  client.record();
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(client.written, part);
});

describe('held bytes', () => {
  test('go in the order they came', () => {
    const held = new HeldBytes();
    const out: Buffer[] = [];
    held.hold(Buffer.from('a'), { push: (chunk) => out.push(chunk) });
    held.hold(Buffer.from('b'), { push: (chunk) => out.push(chunk) });
    assert.equal(out.length, 0);
    held.release({ push: (chunk) => out.push(chunk) });
    held.release({ push: (chunk) => out.push(chunk) });
    assert.equal(Buffer.concat(out).toString(), 'ab');
  });

  test('of an endless last event all but the newest go', () => {
    const held = new HeldBytes();
    let bytes = 0;
    for (let chunk = 1; chunk <= 1000; chunk++) {
      held.hold(Buffer.alloc(10_000), { push: (out) => (bytes += out.length) });
      assert.ok(chunk * 10_000 - bytes <= 1_048_576 && bytes < chunk * 10_000);
    }
  });
});
