// Replies lie in memory that many of them use one after the other and at once: every client gets the bytes of its own
// reply, exactly, whoever else is slow, leaves in the middle or is served meanwhile, and in whatever pieces the replies
// come.

import assert from 'node:assert/strict';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { howMany } from '../support/at-length.ts';
import { seededRandom } from '../support/byte-splits.ts';
import { type FakeUpstream, type ScriptedReply, startFakeUpstream } from '../support/fake-upstream.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { waitForQuiet } from '../support/gateway-gauges.ts';
import { KEYS, testConfiguration } from '../support/test-configuration.ts';
import { pause } from '../support/waiting.ts';

const SEED = Number(process.env.TEST_SEED ?? 20_261_122);
const REQUESTS = howMany({ short: 80, long: 160 });
const AT_ONCE = 40;

type Client = 'prompt' | 'slow' | 'leaves';

interface Planned {
  readonly client: Client;
  readonly isStream: boolean;
  readonly body: Buffer;
  readonly reply: ScriptedReply;
}

const random = seededRandom(SEED);
const below = (limit: number): number => Math.floor(random() * limit);
const oneOf = <T>(values: readonly T[]): T => values[below(values.length)] as T;

/** Every hundred bytes of it say whose they are, and where. */
function contentOf(index: number, bytes: number): string {
  let text = '';
  for (let at = 0; at < bytes; at += 100) text += `${index}@${at};`.padEnd(100, String.fromCharCode(97 + (index % 26)));
  return text.slice(0, bytes);
}

function plan(index: number): Planned {
  const client = oneOf<Client>(['prompt', 'prompt', 'prompt', 'slow', 'leaves']);
  const isStream = below(2) === 0;
  // Beyond what the sockets' own buffers take, for a client that does not read.
  const bytes =
    client === 'slow' && below(2) === 0
      ? 4_000_000
      : oneOf([1, 300, 3_000, 8_000, 9_000, 40_000, 250_000, 300_000, 600_000]);
  const content = contentOf(index, bytes);
  const usage = '"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}';
  const events = (content.match(/.{1,1700}/g) ?? [])
    .map((part) => `data: {"choices":[{"index":0,"delta":{"content":"${part}"}}]}\n\n`)
    .join('');
  const text = isStream
    ? `${events}data: {"choices":[],${usage}}\n\ndata: [DONE]\n\n`
    : `{"choices":[{"message":{"content":"${content}"}}],${usage}}`;
  const reply: ScriptedReply = {
    headers: [['content-type', isStream ? 'text/event-stream' : 'application/json']],
    body: text,
    framing: isStream ? 'chunked' : oneOf(['length', 'chunked', 'close']),
    split: {
      kind: 'random',
      seed: SEED + index,
      bytesMax: Math.max(oneOf([500, 5_000, 9_000, 70_000]), text.length / 400),
    },
    delayMs: below(5),
  };
  return { client, isStream, body: Buffer.from(text), reply };
}

describe('replies that lie in the same memory', () => {
  const planned = Array.from({ length: REQUESTS }, (_, index) => plan(index));
  let upstream: FakeUpstream;
  let tollgate: Tollgate;

  before(async () => {
    upstream = await startFakeUpstream(
      (request) => (planned[Number(JSON.parse(String(request.body)).user)] as Planned).reply,
    );
    const models = [{ id: 'm', providerModel: 'provided', outputCap: 1_000 }];
    tollgate = await startTollgate({
      clickhouse: 'away',
      configurationYaml: testConfiguration({ upstreamUrl: upstream.url, models }),
    });
  });

  after(async () => {
    await tollgate?.stop();
    await upstream?.close();
  });

  test(
    `${REQUESTS} replies, ${AT_ONCE} at once, a fifth of them to slow clients and a fifth to some that ` +
      `leave (TEST_SEED=${SEED})`,
    async () => {
      let next = 0;
      const served: Record<Client, number> = { prompt: 0, slow: 0, leaves: 0 };
      const serve = async (): Promise<void> => {
        for (let index = next++; index < planned.length; index = next++) {
          const { client, isStream, body } = planned[index] as Planned;
          const got = await receive(index, client, isStream);
          served[client] += 1;
          if (client === 'leaves')
            assert.ok(body.subarray(0, got.length).equals(got), `${index}: what came before it left is its own`);
          else
            assert.ok(
              got.equals(body),
              `${index}, ${client}: ${got.length} of ${body.length} bytes, other from ${firstDifference(got, body)} on`,
            );
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, serve));
      assert.ok(
        Object.values(served).every((count) => count > REQUESTS / 10),
        JSON.stringify(served),
      );
      await waitForQuiet(tollgate);
      assert.deepEqual(upstream.violations, []);
      assert.doesNotMatch(tollgate.output(), /internal_error|uncaught|unhandled|fault while/i);
    },
  );

  function receive(index: number, client: Client, stream: boolean): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const body = JSON.stringify({
        model: 'm',
        messages: [{ role: 'user', content: 'Hello.' }],
        max_tokens: 10,
        stream,
        user: String(index),
      });
      const headers = {
        authorization: `Bearer ${KEYS.acme}`,
        'content-type': 'application/json',
        'content-length': String(body.length),
      };
      const request = httpRequest(`${tollgate.url}/v1/chat/completions`, { method: 'POST', headers, agent: false });
      request.on('error', reject);
      request.on('response', (response) => {
        if (response.statusCode !== 200) reject(new Error(`${index}: ${response.statusCode}`));
        take(response, client).then(resolve, reject);
      });
      request.end(body);
    });
  }
});

async function take(response: IncomingMessage, client: Client): Promise<Buffer> {
  if (client === 'slow') await pause(400);
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of response as AsyncIterable<Buffer>) {
    pieces.push(piece);
    bytes += piece.length;
    if (client === 'leaves' && bytes > 2_000) break;
    if (client === 'slow' && pieces.length % 8 === 0) await pause(5);
  }
  response.destroy();
  return Buffer.concat(pieces);
}

function firstDifference(left: Buffer, right: Buffer): number {
  let at = 0;
  while (at < left.length && left[at] === right[at]) at += 1;
  return at;
}
