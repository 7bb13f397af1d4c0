// Replays recorded exchanges through a whole gateway. Each has a model of its own, so that a call at the fake provider
// shows its exchange, and a cost that is computed from plain JSON parsing of the recording and shares no code with the
// gateway.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import type { ApiName } from '../../src/domain/models/apis.ts';
import { agentRequests } from './agent-requests.ts';
import { howMany } from './at-length.ts';
import { type BodyWithHole, fillModel, findModelHole, oddBody } from './body-splices.ts';
import { type SplitPlan, splitBytes } from './byte-splits.ts';
import { type FakeUpstream, type ReceivedRequest, type ScriptedReply, startFakeUpstream } from './fake-upstream.ts';
import { type Front, startFront } from './front.ts';
import { type GenerationView, settledGeneration } from './generation-lookup.ts';
import { answerTo, type HttpAnswer } from './http-call.ts';
import { type ExpectedUsage, loadRecordedExchanges, type RecordedExchange } from './recorded-exchanges.ts';
import { parseDocument } from './recorded-usage.ts';
import { sharedAssets } from './shared-assets.ts';
import { decimalOfPico, KEYS, PICO_PER_TOKEN, type TestModel, testConfiguration } from './test-configuration.ts';

export const SEED = Number(process.env.TEST_SEED ?? 20_261_120);
export const SKIP_WITHOUT_RECORDINGS = sharedAssets() === null ? 'no recordings beside the repository' : false;
const PARALLEL = 8;

export interface Replay {
  readonly name: string;
  readonly api: ApiName;
  /** The path and query that the client calls. */
  readonly path: string;
  readonly publicModel: string;
  readonly providerModel: string;
  /**
   * The body with a model's name in it: the client sends it with the public name, and the provider must get it with its
   * own.
   */
  readonly bodyOf: (model: string) => Buffer;
  readonly contentType: string;
  readonly requestSplit: SplitPlan;
  readonly key: string;
  readonly reply: ScriptedReply & { readonly body: Buffer };
  readonly replyContentType: string;
  readonly stream: boolean;
  readonly status: number;
  readonly expectedUsage: ExpectedUsage | null;
}

const PATHS = {
  responses: '/v1/responses',
  messages: '/v1/messages',
  count_tokens: '/v1/messages/count_tokens',
} as const;

/**
 * Loads every recorded exchange of a format, and the recorded requests of coding agents, each with some recorded reply.
 */
export function loadReplays(api: 'responses' | 'messages' | 'count_tokens'): Replay[] {
  const recorded = loadRecordedExchanges(api);
  return [...recorded, ...agentExchanges(api, recorded)].map((exchange, index) => makeReplay(exchange, api, index));
}

function makeReplay(recorded: RecordedExchange, api: 'responses' | 'messages' | 'count_tokens', index: number): Replay {
  const hole = holeOf(recorded);
  const query = recorded.path.includes('?') ? recorded.path.slice(recorded.path.indexOf('?')) : '';
  return {
    name: recorded.name,
    api,
    path: PATHS[api] + query,
    ...modelsOf(api, index),
    bodyOf: (model) => Buffer.from(fillModel(hole, model)),
    contentType: 'application/json',
    requestSplit: splitRequest(index + 1, recorded.requestBody?.length ?? 1000),
    key: isInBackground(recorded.requestBody) || hasNoPrice(recorded) ? KEYS.free : KEYS.acme,
    reply: scriptReply(recorded.responseBody, recorded.status, recorded.contentType, recorded.stream, index),
    replyContentType: recorded.contentType,
    stream: recorded.stream,
    status: recorded.status,
    expectedUsage: recorded.expectedUsage,
  };
}

function holeOf(recorded: RecordedExchange): BodyWithHole {
  if (recorded.requestBody !== null) return findModelHole(recorded.requestBody.toString('utf8'));
  // The body is long enough for the recording's input tokens.
  return oddBody({ stream: recorded.stream, padBytes: recorded.expectedUsage?.inputTokens ?? 0 });
}

/** Billed organizations are refused background requests, because nobody would report their usage. */
function isInBackground(body: Buffer | null): boolean {
  return body !== null && (JSON.parse(body.toString('utf8')) as { background?: unknown }).background === true;
}

/**
 * Matches replies that report more than the model's use: tools that the provider ran, and models besides the requested
 * one.
 */
const UNPRICED_REPORTS = [
  /"server_tool_use"\s*:\s*\{[^{}]*:\s*[1-9]/,
  /"iterations"\s*:\s*\[\s*\{/,
  /"num_server_side_tools_used"\s*:\s*[1-9]/,
  /"server_side_tool_usage_details"\s*:\s*\{[^{}]*:\s*[1-9]/,
];

/** A billed organization is refused such a request, or charged as held for such a reply. */
function hasNoPrice({ requestBody, responseBody }: RecordedExchange): boolean {
  const request =
    requestBody === null ? {} : (JSON.parse(requestBody.toString('utf8')) as { readonly tools?: unknown });
  const tools = Array.isArray(request.tools) ? (request.tools as readonly { readonly type?: unknown }[]) : [];
  const runsTools = tools.some(({ type }) => typeof type === 'string' && PROVIDER_RUN_TOOLS.test(type));
  const reply = responseBody.toString('utf8');
  return runsTools || UNPRICED_REPORTS.some((report) => report.test(reply));
}

const PROVIDER_RUN_TOOLS =
  /^(web_search|web_fetch|code_execution|code_interpreter|file_search|image_generation|mcp|x_search)/;

export function modelsOf(api: ApiName, index: number): { publicModel: string; providerModel: string } {
  return { publicModel: `replay/${api}-${index}`, providerModel: `replayed-${api}-${index}-2026-11-20` };
}

export function scriptReply(
  body: Buffer,
  status: number,
  contentType: string,
  stream: boolean,
  index: number,
): Replay['reply'] {
  return {
    status,
    headers: [
      ['Content-Type', contentType],
      ['Request-Id', `req_${index}`],
      ['Set-Cookie', 'session=provider'],
      ['X-Provider-Internal', 'secret'],
      // A real provider also sends this header with successful replies, which must not cause a cooldown.
      ['Retry-After', '30'],
    ],
    body,
    framing: stream
      ? index % 7 === 0
        ? 'close'
        : 'chunked'
      : ((['length', 'chunked', 'length', 'close'] as const)[index % 4] ?? 'length'),
    split: splitReply(index, body.length),
  };
}

interface Pieces {
  /** Half of the bodies up to this length are sent byte by byte. */
  readonly eachByteMax: number;
  /** The approximate number of pieces of a longer body. */
  readonly most: number;
}

const REPLY_PIECES: Pieces = howMany({
  short: { eachByteMax: 300, most: 12 },
  long: { eachByteMax: 3_000, most: 400 },
});
/** uWebSockets.js waits ten seconds for each 16 KB of a body; a busy machine may take milliseconds for each piece. */
const REQUEST_PIECES: Pieces = { eachByteMax: 400, most: 100 };

export function splitReply(index: number, bytes: number): SplitPlan {
  return splitInto(REPLY_PIECES, index, bytes);
}

export function splitRequest(index: number, bytes: number): SplitPlan {
  return splitInto(REQUEST_PIECES, index, bytes);
}

function splitInto({ eachByteMax, most }: Pieces, index: number, bytes: number): SplitPlan {
  if (bytes < eachByteMax && index % 2 === 0) return { kind: 'each_byte' };
  const pieceBytesMax = [8, 64, 700, 5000][index % 4] ?? 64;
  // On average a piece has a quarter of its largest size.
  return { kind: 'random', seed: SEED + index, bytesMax: Math.max(pieceBytesMax, Math.ceil((bytes * 4) / most)) };
}

/** Bodies that coding agents sent to `/v1/<api>`, each with the reply of a recorded exchange of the same kind. */
export function agentExchanges(api: string, recorded: readonly RecordedExchange[]): RecordedExchange[] {
  return agentRequests().flatMap(({ name, url, body }) => {
    const { pathname, search } = new URL(url, 'http://agent');
    if (body.model === undefined || !pathname.endsWith(`/${api}`)) return [];
    const answer = recorded.find(
      (exchange) =>
        exchange.status === 200 && exchange.stream === (body.stream === true) && exchange.requestBody !== null,
    );
    if (answer === undefined) return [];
    return [
      {
        ...answer,
        name: `agents/${name}`,
        path: `/v1/${api}${search}`,
        requestBody: Buffer.from(JSON.stringify(body)),
      },
    ];
  });
}

export interface ReplayInstallation {
  readonly tollgate: Front;
  readonly upstream: FakeUpstream;
  /** The requests for a provider's model. */
  received(providerModel: string): readonly ReceivedRequest[];
  stop(): Promise<void>;
}

export type OtherReply = (request: ReceivedRequest) => ScriptedReply | null;

/** `other` answers requests that name no replay. */
export async function startReplayInstallation(
  replays: readonly Replay[],
  other: OtherReply = () => null,
): Promise<ReplayInstallation> {
  const byModel = new Map(replays.map((replay) => [replay.providerModel, replay]));
  const received = new Map<string, ReceivedRequest[]>();
  const upstream = await startFakeUpstream((request) => {
    const model = modelIn(request);
    received.set(model, [...(received.get(model) ?? []), request]);
    return byModel.get(model)?.reply ?? other(request) ?? { status: 500, body: '{"error":"no replay"}' };
  });
  const models = replays.map(({ publicModel, providerModel, api }): TestModel => {
    return {
      id: publicModel,
      providerModel,
      outputCap: api === 'images' ? null : 16_384,
      apis: [api],
      kind: api === 'images' ? 'image' : 'text',
    };
  });
  try {
    const tollgate = await startFront({
      configurationYaml: testConfiguration({ upstreamUrl: upstream.url, models, storedObjects: 'shared' }),
    });
    return {
      tollgate,
      upstream,
      received: (providerModel) => received.get(providerModel) ?? [],
      async stop() {
        await tollgate.stop();
        await upstream.close();
      },
    };
  } catch (fault) {
    await upstream.close();
    throw fault;
  }
}

/** Texts of users may look the same, but a provider's form field begins like this. */
const MODEL_PART = /name="model"\r\n\r\n(replayed-[^\r\n]*)\r\n/;

function modelIn(request: ReceivedRequest): string {
  if (request.body.length === 0) return '';
  if (request.header('content-type')?.startsWith('multipart/') === true)
    return MODEL_PART.exec(request.body.toString('latin1'))?.[1] ?? '';
  const model = (JSON.parse(request.body.toString('utf8')) as { model?: unknown }).model;
  return typeof model === 'string' ? model : '';
}

/**
 * Sends a replay's request in its pieces, and asserts that each side got exactly the other's bytes; returns the
 * response's headers.
 */
export async function assertRelayed(
  installation: ReplayInstallation,
  replay: Replay,
  headers: Readonly<Record<string, string>> = {},
): Promise<HttpAnswer> {
  const answer = await sendSplit(`${installation.tollgate.url}${replay.path}`, replay, headers);
  const where = `${replay.name} (${replay.publicModel})`;
  if (replay.status === 401) return assertKeyRefusalIsHidden(answer, where);
  assert.equal(answer.status, replay.status, `${where}: ${answer.body.toString('utf8').slice(0, 300)}`);
  assert.ok(answer.complete, `${where}: the response came whole`);
  assert.equal(answer.headers['content-type'], replay.replyContentType, where);
  assert.equal(answer.headers['set-cookie'], undefined, where);
  assert.equal(answer.headers['x-provider-internal'], undefined, where);
  assert.equal(answer.headers['x-service-execution-id']?.length, 36, where);
  assert.equal(sha256(answer.body), sha256(replay.reply.body), `${where}: response bytes`);
  const got = installation.received(replay.providerModel);
  assert.equal(got.length, 1, `${where}: one call at the provider`);
  assert.equal(got[0]?.method, 'POST', where);
  assert.equal(got[0]?.path, replay.path, where);
  assert.equal(got[0]?.header('content-type'), replay.contentType, where);
  assert.equal(
    sha256(got[0]?.body ?? Buffer.alloc(0)),
    sha256(replay.bodyOf(replay.providerModel)),
    `${where}: request bytes`,
  );
  return answer;
}

/** Clients must not see a refusal of the service's own key: they are told that nobody could serve the request. */
function assertKeyRefusalIsHidden(answer: HttpAnswer, where: string): HttpAnswer {
  assert.equal(answer.status, 502, where);
  assert.ok(answer.body.includes('No provider of this model could serve the request.'), where);
  return answer;
}

function sendSplit(url: string, replay: Replay, headers: Readonly<Record<string, string>>): Promise<HttpAnswer> {
  const body = replay.bodyOf(replay.publicModel);
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${replay.key}`,
        'content-type': replay.contentType,
        'content-length': String(body.length),
        ...headers,
      },
      agent: false,
    });
    request.setNoDelay(true);
    answerTo(request).then(resolve, reject);
    void writePieces(request, splitBytes(body, replay.requestSplit));
  });
}

async function writePieces(request: ReturnType<typeof httpRequest>, pieces: readonly Buffer[]): Promise<void> {
  for (const piece of pieces) {
    request.write(piece);
    await new Promise((resolve) => setImmediate(resolve));
  }
  request.end();
}

/** Asserts the tokens and the rated cost of a replay's settled record, to the last digit. */
export async function assertBill(
  installation: ReplayInstallation,
  replay: Replay,
  id: string,
): Promise<GenerationView> {
  const record = await settledGeneration(installation.tollgate.url, replay.key, id);
  assert.equal(record.model, replay.publicModel, replay.name);
  if (replay.status >= 400) {
    assert.equal(record.totalCost ?? '0', '0', `${replay.name}: a provider's refusal costs nothing`);
    return record;
  }
  const usage = replay.expectedUsage;
  if (usage === null) return record;
  if (usage.inputTokens !== null)
    assert.equal(record.tokensPrompt, String(usage.inputTokens), `${replay.name}: input tokens`);
  if (usage.outputTokens !== null)
    assert.equal(record.tokensCompletion, String(usage.outputTokens), `${replay.name}: output tokens`);
  if (usage.inputTokens === null || usage.outputTokens === null) return record;
  const cost = costPico(usage);
  assert.equal(record.ratedCost, decimalOfPico(cost), `${replay.name}: rated cost`);
  if (replay.key !== KEYS.acme) return record;
  const held = picoOfDecimal(record.authorizedAmount ?? '0');
  assert.equal(record.totalCost, decimalOfPico(cost < held ? cost : held), `${replay.name}: charge`);
  return record;
}

function costPico(usage: ExpectedUsage): bigint {
  const [cached, written] = [usage.cachedTokens ?? 0, usage.cacheWriteTokens ?? 0];
  const plain = (usage.inputTokens ?? 0) - cached - written;
  return (
    BigInt(plain) * PICO_PER_TOKEN.input +
    BigInt(cached) * PICO_PER_TOKEN.cachedInput +
    BigInt(written) * PICO_PER_TOKEN.cacheWrite +
    BigInt(usage.outputTokens ?? 0) * PICO_PER_TOKEN.output
  );
}

/** The inverse of `decimalOfPico`. */
function picoOfDecimal(decimal: string): bigint {
  const [whole = '0', fraction = ''] = decimal.split('.');
  return BigInt(whole) * 10n ** 12n + BigInt(fraction.padEnd(12, '0'));
}

/** Runs all, some of them at a time; throws an error that names every failure and contains the first one. */
export async function inParallel<T>(items: readonly T[], run: (item: T) => Promise<void>): Promise<void> {
  const failures: unknown[] = [];
  const queue = [...items];
  const worker = async (): Promise<void> => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift())
      await run(item).catch((failure: unknown) => failures.push(failure));
  };
  await Promise.all(Array.from({ length: PARALLEL }, worker));
  const [first] = failures;
  if (first === undefined) return;
  throw new Error(
    `${failures.length} failed:\n${failures.map((failure) => String(failure).split('\n', 1)[0]).join('\n')}`,
    { cause: first },
  );
}

/** The `id` of a recorded Responses reply, whole or streamed. */
export function responseIdIn(replay: Replay): string | null {
  const text = replay.reply.body.toString('utf8');
  const document = replay.stream
    ? parseDocument(/^data: ?(.*)$/m.exec(text)?.[1] ?? '')?.response
    : parseDocument(text);
  return typeof document?.id === 'string' ? document.id : null;
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
