// A provider that answers 200 and says in its reply that it has failed: what it says reaches the client as it is, and
// where it reported no usage nobody pays for it, however the dialect says it and whatever came before.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type FakeUpstream, type ScriptedReply, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { httpCall } from '../support/http-call.ts';
import { type LedgerView, openLedgerView } from '../support/ledger-view.ts';
import { KEYS, type TestModel, testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

const TEXT_APIS = ['chat_completions', 'responses', 'messages'] as const;
const MODELS: readonly TestModel[] = [
  { id: 'sim/small', providerModel: 'small', outputCap: 4_096, apis: TEXT_APIS },
  { id: 'sim/image', providerModel: 'image', outputCap: null, kind: 'image', apis: ['images'] },
];
const MESSAGES = [{ role: 'user', content: 'hi' }];
const BODIES: Readonly<Record<string, object>> = {
  '/v1/chat/completions': { messages: MESSAGES, max_tokens: 1_000 },
  '/v1/responses': { input: 'hi', max_output_tokens: 1_000, store: false },
  '/v1/messages': { messages: MESSAGES, max_tokens: 1_000 },
  '/v1/images/generations': { model: 'sim/image', prompt: 'a cat' },
};
const [CHAT, RESPONSES, MESSAGES_PATH] = ['/v1/chat/completions', '/v1/responses', '/v1/messages'] as const;
const IMAGES = '/v1/images/generations';

const stream = (...events: readonly object[]): ScriptedReply => streamOf(events.map(eventOf).join(''));
const streamOf = (body: string): ScriptedReply => ({
  headers: [['content-type', 'text/event-stream']],
  body,
  framing: 'chunked',
});
const eventOf = (data: object): string => `data: ${JSON.stringify(data)}\n\n`;
const DONE = 'data: [DONE]\n\n';

const ERROR = { error: { message: `The engine is overloaded. ${'x'.repeat(700)}`, type: 'server_error' } };
const TEXT = { choices: [{ index: 0, delta: { content: 'Hello there, said the "error".' } }] };
const USAGE = { choices: [], usage: { prompt_tokens: 40, completion_tokens: 3 } };
const STOP = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] };

interface Case {
  readonly name: string;
  readonly path: string;
  readonly reply: ScriptedReply;
  readonly outcome: string;
  /** The client may take what it got for the whole response. Absent: it may. */
  readonly complete?: false;
}

const failed = (name: string, path: string, reply: ScriptedReply, more: Partial<Case> = {}): Case => ({
  name,
  path,
  reply,
  outcome: 'provider_failed',
  ...more,
});
const served = (name: string, path: string, reply: ScriptedReply, outcome: string): Case => ({
  name,
  path,
  reply,
  outcome,
});

const STREAMS: readonly Case[] = [
  failed('an error, and the end', CHAT, streamOf(eventOf(ERROR) + DONE)),
  failed('an error alone', CHAT, stream(ERROR), { complete: false }),
  failed('text, an error, and the end', CHAT, streamOf(eventOf(TEXT) + eventOf(ERROR) + DONE)),
  failed('an error with a name', CHAT, streamOf(`event: error\n${eventOf(ERROR)}${DONE}`)),
  failed('an error as a text', CHAT, streamOf(eventOf({ error: 'overloaded' }) + DONE)),
  failed('lines that end in CRLF', CHAT, streamOf((eventOf(ERROR) + DONE).replaceAll('\n', '\r\n'))),
  failed('half of the end behind it', CHAT, streamOf(`${eventOf(ERROR)}data: [DO`), { complete: false }),
  failed('comments behind it', CHAT, streamOf(`${eventOf(ERROR)}: keep-alive\n\n${DONE}`)),
  failed(
    'an error beside a choice',
    CHAT,
    stream(TEXT, { ...ERROR, choices: [{ index: 0, delta: { content: '' }, finish_reason: 'error' }] }),
  ),
  failed('behind more than is kept', CHAT, streamOf(eventOf(TEXT).repeat(4_000) + eventOf(ERROR) + DONE)),
  failed('messages', MESSAGES_PATH, stream({ type: 'error', ...ERROR })),
  failed('images', IMAGES, stream({ type: 'image_generation.partial_image' }, { ...ERROR, type: 'error' })),
  served('images, one of which is whole', IMAGES, stream({ type: 'image_generation.completed' }, ERROR), 'completed'),
  failed('responses', RESPONSES, stream({ type: 'response.failed', response: { id: 'resp_1', usage: null } })),
  served('an error behind its usage', CHAT, streamOf(eventOf(USAGE) + eventOf(ERROR) + DONE), 'completed'),
  served('an error that is null', CHAT, streamOf(eventOf({ ...STOP, error: null }) + DONE), 'completed_without_usage'),
  served('an error that is empty', CHAT, streamOf(eventOf({ ...STOP, error: '' }) + DONE), 'completed_without_usage'),
  served('an error of nothing', CHAT, streamOf(eventOf({ ...STOP, error: {} }) + DONE), 'completed_without_usage'),
  served(
    'an error of something inside',
    CHAT,
    streamOf(eventOf({ choices: [{ ...STOP.choices[0], error: ERROR.error }] }) + DONE),
    'completed_without_usage',
  ),
  served('text behind an error', CHAT, streamOf(eventOf(ERROR) + eventOf(TEXT) + DONE), 'completed_without_usage'),
];

const json = (data: unknown): ScriptedReply => ({
  headers: [['content-type', 'application/json']],
  body: JSON.stringify(data),
});
const text = (body: string, contentType = 'text/html'): ScriptedReply => ({
  headers: [['content-type', contentType]],
  body,
});
const PAGE = `<html><body>${'Sign in to continue. '.repeat(200)}</body></html>`;
const RESPONSE = { id: 'resp_1', object: 'response', output: [], usage: null };
const CHOICES = { choices: [{ index: 0, message: { content: 'Hello there.' }, finish_reason: 'stop' }] };
const RESPONSES_USAGE = { input_tokens: 40, output_tokens: 3 };

const DOCUMENTS: readonly Case[] = [
  failed('an error', CHAT, json(ERROR)),
  failed('an error as a text', CHAT, json({ error: 'overloaded' })),
  failed('an error beside choices', CHAT, json({ ...CHOICES, ...ERROR })),
  failed('an error where a stream was asked for', CHAT, {
    ...json(ERROR),
    headers: [['content-type', 'text/event-stream']],
  }),
  failed('an error', MESSAGES_PATH, json({ type: 'error', ...ERROR })),
  failed('a failed response with its error', RESPONSES, json({ ...RESPONSE, status: 'failed', ...ERROR })),
  failed('a failed response without one', RESPONSES, json({ ...RESPONSE, status: 'failed', error: null })),
  ...[CHAT, MESSAGES_PATH, RESPONSES].flatMap((path) => [
    failed('a page of somebody else', path, text(PAGE)),
    failed('nothing', path, text('', 'application/json')),
  ]),
  served('an error beside its usage', CHAT, json({ ...ERROR, usage: USAGE.usage }), 'completed'),
  served(
    'a failed response with usage',
    RESPONSES,
    json({ ...RESPONSE, status: 'failed', usage: RESPONSES_USAGE }),
    'completed',
  ),
  served('no error', CHAT, json({ ...CHOICES, error: null }), 'completed_without_usage'),
  served('an error of nothing', CHAT, json({ ...CHOICES, error: {} }), 'completed_without_usage'),
  served(
    'an error that says nothing',
    CHAT,
    json({ ...CHOICES, error: { code: null, message: '', status: 0 } }),
    'completed_without_usage',
  ),
  served(
    'a response that is whole',
    RESPONSES,
    json({ ...RESPONSE, status: 'completed', error: null }),
    'completed_without_usage',
  ),
  served(
    'JSON without an end',
    CHAT,
    text(JSON.stringify(CHOICES).slice(0, -1), 'application/json'),
    'completed_without_usage',
  ),
  served('a list', CHAT, json([CHOICES]), 'completed_without_usage'),
  served('events with another type', CHAT, text(eventOf(TEXT) + DONE, 'text/plain'), 'completed_without_usage'),
  served('such behind a line end', CHAT, text(`\n${eventOf(TEXT)}${DONE}`, 'text/plain'), 'completed_without_usage'),
];

describe('a failure that a reply tells', () => {
  let reply: ScriptedReply = stream();
  let upstream: FakeUpstream;
  let tollgate: Front;
  let ledger: LedgerView;

  before(async () => {
    upstream = await startFakeUpstream(() => reply);
    tollgate = await startFront({
      configurationYaml: testConfiguration({ upstreamUrl: upstream.url, models: MODELS }),
    });
    ledger = openLedgerView(tollgate.postgresUrl);
  });
  after(async () => {
    await ledger?.close();
    await tollgate?.stop();
    await upstream?.close();
  });

  async function assertEnds(item: Case, isStream: boolean): Promise<void> {
    reply = item.reply;
    const answer = await httpCall(`${tollgate.url}${item.path}`, {
      headers: { authorization: `Bearer ${KEYS.acme}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'sim/small', stream: isStream, ...BODIES[item.path] }),
      isOffFormat: true,
    });
    assert.deepEqual([answer.status, answer.complete], [200, item.complete ?? true]);
    assert.equal(answer.body.toString(), item.reply.body);
    const id = String(answer.headers['x-service-execution-id']);
    const [row] = await waitFor(
      `${id} to be posted`,
      () =>
        ledger.query(
          'SELECT outcome, billing_status, charge::text FROM generations WHERE id = $1 AND outcome IS NOT NULL',
          [id],
        ),
      (rows) => rows.length === 1,
    );
    const isFree = item.outcome === 'provider_failed';
    assert.deepEqual([row?.outcome, row?.billing_status], [item.outcome, isFree ? 'not_billed' : 'final']);
    assert.equal(row?.charge === null, isFree);
  }

  for (const item of DOCUMENTS) test(`${item.path}, ${item.name}`, () => assertEnds(item, false));
  for (const item of STREAMS) test(`${item.path}, stream, ${item.name}`, () => assertEnds(item, true));
});
