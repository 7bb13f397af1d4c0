// A stream whose lines end as the standard lets them: in line feeds, carriage returns or both, however it is split. It
// reaches the client byte for byte, ends where it ends, and is billed by what it reports.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { compilePolicy } from '../../src/domain/guardrails/compile-policy.ts';
import type { Model } from '../../src/domain/models/catalog.ts';
import type { Provider } from '../../src/domain/models/provider.ts';
import type { SplitPlan } from '../support/byte-splits.ts';
import { type FakeUpstream, type Script, startFakeUpstream } from '../support/fake-upstream.ts';
import { policyOf, ruleOf } from '../support/guardrail-policies.ts';
import { type HttpAnswer, httpCall } from '../support/http-call.ts';
import { modelServedBy, PlaneInProcess, providerAt } from '../support/plane-in-process.ts';
import { principalOf } from '../support/principals.ts';
import { RawClient } from '../support/raw-client.ts';
import { waitFor } from '../support/waiting.ts';

const MESSAGES = [{ role: 'user', content: 'hi' }];

interface Api {
  readonly request: object;
  /** Lines, of which the empty ones end an event. */
  readonly lines: readonly string[];
}

const APIS: Readonly<Record<string, Api>> = {
  '/v1/chat/completions': {
    request: { messages: MESSAGES },
    lines: [
      'data: {"choices":[{"delta":{"content":"hi"}}]}',
      '',
      'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}',
      '',
      'data: [DONE]',
      '',
    ],
  },
  '/v1/responses': {
    request: { input: 'hi', store: false },
    lines: [
      'event: response.output_text.delta',
      'data: {"type":"response.output_text.delta","delta":"hi"}',
      '',
      'event: response.completed',
      'data: {"type":"response.completed","response":{"usage":{"input_tokens":3,"output_tokens":2,"total_tokens":5}}}',
      '',
    ],
  },
  '/v1/messages': {
    request: { messages: MESSAGES, max_tokens: 50 },
    lines: [
      'event: message_start',
      'data: {"type":"message_start","message":{"usage":{"input_tokens":3,"output_tokens":1}}}',
      '',
      'event: message_delta',
      'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}',
      '',
      'event: message_stop',
      'data: {"type":"message_stop"}',
      '',
    ],
  },
};

/** By the number of the line. */
const ENDS: Readonly<Record<string, (line: number) => string>> = {
  'a line feed': () => '\n',
  both: () => '\r\n',
  'a carriage return': () => '\r',
  'now this, now that, a carriage return first': (line) => ['\r', '\r\n', '\n'][line % 3] as string,
};
const SPLITS: readonly SplitPlan[] = [
  { kind: 'whole' },
  { kind: 'each_byte' },
  { kind: 'random', seed: 7, bytesMax: 9 },
];

describe('a stream whose lines end in', () => {
  let script: Script;
  let upstream: FakeUpstream;
  let plane: PlaneInProcess;

  before(async () => {
    upstream = await startFakeUpstream(() => script);
    plane = await PlaneInProcess.start({
      providerUrl: upstream.url,
      principals: new Map([['key', principalOf('acme', { billed: true })]]),
      models: [modelServedBy('m', providerAt(upstream.url)), modelWithUsage('asking', providerAt(upstream.url))],
    });
  });
  after(async () => {
    await plane?.stop();
    await upstream?.close();
  });

  const ask = (path: string, { request }: Api, model = 'm'): Promise<HttpAnswer> =>
    httpCall(`${plane.url}${path}`, {
      headers: { authorization: 'Bearer key', 'content-type': 'application/json' },
      body: JSON.stringify({ model, stream: true, ...request }),
    });

  for (const [name, endOf] of Object.entries(ENDS))
    for (const [path, api] of Object.entries(APIS)) {
      const body = api.lines.map((line, index) => line + endOf(index)).join('');
      const stream = { headers: [['content-type', 'text/event-stream']], framing: 'chunked' } as const;

      test(`${name}: ${path}`, async () => {
        for (const split of SPLITS) {
          const ended = plane.ends.length;
          script = { ...stream, body, split };
          const answer = await ask(path, api);
          assert.equal(answer.body.toString(), body, split.kind);
          const [end] = await waitFor(
            'the end',
            () => plane.ends.slice(ended),
            (found) => found.length > 0,
          );
          assert.deepEqual([end?.outcome, end?.usageSource], ['completed', 'reported'], split.kind);
          assert.deepEqual([end?.usage?.inputTokens, end?.usage?.outputTokens], [3, 2], split.kind);
        }
      });

      test(`${name}: ${path} that ends without its last event is cut`, async () => {
        const isEnd = /\[DONE\]|completed|message_stop/;
        script = { ...stream, body: api.lines.map((line, at) => (isEnd.test(line) ? '' : line + endOf(at))).join('') };
        assert.equal((await ask(path, api)).complete, false);
      });
    }

  const path = '/v1/chat/completions';
  const { request, lines } = APIS[path] as Api;
  for (const [name, endOf] of Object.entries(ENDS))
    test(`${name}, without the usage that the gateway asked for, and each event when it comes`, async () => {
      const ended = lines.map((line, index) => line + endOf(index));
      const left = asEvents(ended.toSpliced(2, 2).join(''));
      for (const split of SPLITS) {
        script = { headers: [['content-type', 'text/event-stream']], framing: 'chunked', body: ended.join(''), split };
        const answer = await ask(path, { request, lines }, 'asking');
        assert.equal(asEvents(answer.body.toString()), left, split.kind);
        assert.equal(answer.complete, true);
      }
      const afterBytes = ended.slice(0, 3).join('').length - 1;
      script = { ...script, body: ended.join(''), fault: { kind: 'stall', afterBytes } };
      const raw = await RawClient.open(plane.port);
      const body = JSON.stringify({ model: 'asking', stream: true, ...request });
      const head = `POST ${path} HTTP/1.1\r\nhost: gate.test\r\nauthorization: Bearer key\r\n`;
      const type = `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
      await raw.write(`${head}${type}${body}`);
      await raw.until('the first event', ({ received }) => received.includes('"content":"hi"'));
      raw.leave();
    });
});

describe('a saved response under a guardrail whose lines end in', () => {
  let script: Script;
  let upstream: FakeUpstream;
  let plane: PlaneInProcess;

  before(async () => {
    upstream = await startFakeUpstream(() => script);
    const rules = [ruleOf({ label: '[x]', detect: ['email'] })];
    const compiled = compilePolicy([policyOf(rules, { onFailure: 'pass' })], 'responses');
    plane = await PlaneInProcess.start({
      providerUrl: upstream.url,
      principals: new Map([['key', principalOf('acme')]]),
      models: [modelServedBy('m', providerAt(upstream.url))],
      policies: { of: () => compiled, ofOrganization: () => compiled, cloakKeyOf: () => new Uint8Array(32) },
    });
    plane.savedResponse = { provider: 'upstream', ownKeyId: null, model: 'm', inputTokens: 1, outputTokens: 1 };
  });
  after(async () => {
    await plane?.stop();
    await upstream?.close();
  });

  const lines = [
    'event: response.output_text.delta',
    'data: {"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"ask ann@acme.example "}',
    ...(APIS['/v1/responses'] as Api).lines.slice(2),
  ];
  for (const [name, endOf] of Object.entries(ENDS))
    test(`${name} is screened`, async () => {
      const body = lines.map((line, index) => line + endOf(index)).join('');
      for (const split of SPLITS) {
        script = { headers: [['content-type', 'text/event-stream']], framing: 'chunked', body, split };
        const answer = await httpCall(`${plane.url}/v1/responses/resp_1?stream=true`, {
          method: 'GET',
          headers: { authorization: 'Bearer key' },
        });
        const expected = asEvents(body).replace('ann@acme.example', '[x]');
        assert.equal(asEvents(answer.body.toString()), expected, split.kind);
        assert.equal(answer.complete, true);
      }
    });
});

function asEvents(text: string): string {
  return text.replace(/\r\n|\r/g, '\n');
}

function modelWithUsage(id: string, provider: Provider): Model {
  const model = modelServedBy(id, provider);
  return { ...model, servedBy: model.servedBy.map((one) => ({ ...one, streamUsage: 'request' })) };
}
