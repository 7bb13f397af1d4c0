// Streams that are written as the standard of server-sent events lets them, and as few providers do: each reaches the
// client byte for byte, is whole, and is billed by what it reports, also under a guardrail and without the usage that
// the gateway asked for.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { compilePolicy } from '../../src/domain/guardrails/compile-policy.ts';
import type { SplitPlan } from '../support/byte-splits.ts';
import { type FakeUpstream, type Script, startFakeUpstream } from '../support/fake-upstream.ts';
import { policyOf, ruleOf } from '../support/guardrail-policies.ts';
import { httpCall } from '../support/http-call.ts';
import { modelServedBy, PlaneInProcess, providerAt } from '../support/plane-in-process.ts';
import { principalOf } from '../support/principals.ts';
import { waitFor } from '../support/waiting.ts';

const MESSAGES = [{ role: 'user', content: 'hi' }];

interface Api {
  readonly request: object;
  /** An event each: its lines. */
  readonly events: readonly (readonly string[])[];
}

const CHAT = '/v1/chat/completions';
const APIS: Readonly<Record<string, Api>> = {
  [CHAT]: {
    request: { messages: MESSAGES },
    events: [
      ['data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}'],
      ['data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}'],
      ['data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}'],
      ['data: [DONE]'],
    ],
  },
  '/v1/responses': {
    request: { input: 'hi', store: false },
    events: [
      [
        'event: response.output_text.delta',
        'data: {"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"hi"}',
      ],
      [
        'event: response.completed',
        'data: {"type":"response.completed","response":{"usage":{"input_tokens":3,"output_tokens":2,"total_tokens":5}}}',
      ],
    ],
  },
  '/v1/messages': {
    request: { messages: MESSAGES, max_tokens: 50 },
    events: [
      [
        'event: message_start',
        'data: {"type":"message_start","message":{"usage":{"input_tokens":3,"output_tokens":1}}}',
      ],
      [
        'event: content_block_delta',
        'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}',
      ],
      [
        'event: message_delta',
        'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}',
      ],
      ['event: message_stop', 'data: {"type":"message_stop"}'],
    ],
  },
};

type Events = Api['events'];
const written = (events: Events, end = '\n'): string => events.map((lines) => [...lines, end].join(end)).join('');
const eachLine = (events: Events, change: (line: string) => readonly string[]): Events =>
  events.map((lines) => lines.flatMap(change));

const TWO_LINES = 'data in two lines';
const MANY_LINES = 'data in many lines';
/** Each event's data as an indented document, a line of data for each of its lines. */
const indented = (events: Events): Events =>
  eachLine(events, (line) => {
    if (!line.startsWith('data: {')) return [line];
    const lines = JSON.stringify(JSON.parse(line.slice('data: '.length)), null, 2).split('\n');
    return lines.map((one) => `data: ${one}`);
  });
const ODDITIES: Readonly<Record<string, (events: Events) => string>> = {
  'a byte order mark': (events) => `\ufeff${written(events)}`,
  'a byte order mark, and names in its data alone': (events) =>
    `\ufeff${written(events.map((lines) => lines.slice(-1)))}`,
  'no space behind its colons': (events) => written(eachLine(events, (line) => [line.replace(': ', ':')])),
  'comments in its events and between them': (events) =>
    `: OPENROUTER PROCESSING\n\n${written(eachLine(events, (line) => [':', line, ': ping'])).replaceAll('\n\n', '\n\n:\n\n')}`,
  'an id, a time to wait and another field before its data': (events) =>
    written(eachLine(events, (line) => (line.startsWith('data') ? ['id: 7', 'retry: 3000', 'more', line] : [line]))),
  'fields behind its data': (events) =>
    written(eachLine(events, (line) => (line.startsWith('data') ? [line, 'id: 7', 'retry: 3000'] : [line]))),
  [TWO_LINES]: (events) => written(eachLine(events, (line) => line.replace(',', ',\ndata: ').split('\n'))),
  [MANY_LINES]: (events) => written(indented(events)),
  [`${MANY_LINES} that end in two bytes`]: (events) => written(indented(events), '\r\n'),
  [`${MANY_LINES} that end in carriage returns`]: (events) => written(indented(events), '\r'),
  'more blank lines than it needs': (events) => `\n\n${written(events).replaceAll('\n\n', '\n\n\n\n')}`,
  'no blank line at its end': (events) => written(events).slice(0, -1),
  'no line end at its end': (events) => written(events).slice(0, -2),
  'line ends of two bytes, and a mark': (events) => `\ufeff${written(events, '\r\n')}`,
};
const SPLITS: readonly SplitPlan[] = [
  { kind: 'whole' },
  { kind: 'each_byte' },
  { kind: 'random', seed: 7, bytesMax: 9 },
];
const POLICY = policyOf([ruleOf({ detect: ['email'] })], { onFailure: 'pass' });
const STREAM = { headers: [['content-type', 'text/event-stream']], framing: 'chunked' } as const;

describe('a stream with', () => {
  let script: Script;
  let upstream: FakeUpstream;
  let plane: PlaneInProcess;

  before(async () => {
    upstream = await startFakeUpstream(() => script);
    const { servedBy, ...asking } = modelServedBy('asking', providerAt(upstream.url));
    plane = await PlaneInProcess.start({
      providerUrl: upstream.url,
      principals: new Map([
        ['key', principalOf('acme')],
        ['guarded', principalOf('guarded')],
      ]),
      models: [
        modelServedBy('m', providerAt(upstream.url)),
        { ...asking, servedBy: servedBy.map((one) => ({ ...one, streamUsage: 'request' })) },
      ],
      policies: {
        // On a busy machine screening may take more time than it has.
        of: ({ organizationId }, api) => (organizationId === 'guarded' ? compilePolicy([POLICY], api) : null),
        ofOrganization: () => null,
        cloakKeyOf: () => new Uint8Array(32),
      },
    });
  });
  after(async () => {
    await plane?.stop();
    await upstream?.close();
  });

  async function ask(path: string, key: string, model: string): Promise<string> {
    const ended = plane.ends.length;
    const answer = await httpCall(`${plane.url}${path}`, {
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, stream: true, ...APIS[path]?.request }),
    });
    const [end] = await waitFor(
      'the end',
      () => plane.ends.slice(ended),
      (found) => found.length > 0,
    );
    assert.deepEqual(
      [answer.status, answer.complete, end?.outcome, end?.usageSource],
      [200, true, 'completed', 'reported'],
    );
    assert.deepEqual([end?.usage?.inputTokens, end?.usage?.outputTokens], [3, 2]);
    return answer.body.toString();
  }

  for (const [name, write] of Object.entries(ODDITIES))
    for (const [path, { events }] of Object.entries(APIS))
      test(`${name}: ${path}`, async () => {
        const body = write(events);
        // A screened stream whose lines end in carriage returns alone gets line feeds for them. Where a piece ended
        // behind the first one, that has been passed on already, and its line feed follows it.
        const screened = body.replaceAll(/\r(?!\n)/g, '\n');
        const ofReturns = (text: string): string => (screened === body ? text : text.replace('\r\n', '\n'));
        for (const split of SPLITS) {
          script = { ...STREAM, body, split };
          assert.equal(await ask(path, 'key', 'm'), body, split.kind);
          assert.equal(ofReturns(await ask(path, 'guarded', 'm')), screened, `guarded ${split.kind}`);
          // Of an event in several lines nothing is left out: its usage goes to the client, too.
          if (path !== CHAT || name === TWO_LINES || name.startsWith(MANY_LINES)) continue;
          const left = dataOf(body).filter((data) => !data.includes('usage'));
          for (const key of ['key', 'guarded'])
            assert.deepEqual(dataOf(await ask(path, key, 'asking')), left, `asking ${key} ${split.kind}`);
        }
      });
});

/** Of the events that a client hands on; one without its blank line is one to most of them. */
function dataOf(stream: string): string[] {
  const events: string[] = [];
  let lines: string[] = [];
  for (const line of [...stream.replace(/^\ufeff/, '').split(/\r\n|\r|\n/), '']) {
    if (line.startsWith('data:')) lines.push(line.slice('data:'.length).replace(/^ /, ''));
    if (line !== '' || lines.length === 0) continue;
    events.push(lines.join('\n'));
    lines = [];
  }
  return events;
}
