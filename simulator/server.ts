// The simulated provider's HTTP side: reads a call, lets the API plan it, applies the faults that no API needs to know of, and logs it.

import { createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Api, CallPlan, CallTally, ProviderError } from './apis/api.ts';
import { chatCompletions } from './apis/chat-completions.ts';
import { renderModels } from './apis/models.ts';
import type { CallLog } from './call-log.ts';
import { type Directives, readDirectives } from './directives.ts';
import { ReplySocket } from './reply-socket.ts';

const BODY_BYTES_MAX = 64 * 1024 * 1024;
const CONNECTIONS_MAX = 20_000;
/** How many distinct requests `times=` remembers; the oldest is forgotten first. */
const REMEMBERED_REQUESTS_MAX = 10_000;

const APIS: ReadonlyMap<string, Api> = new Map([['/v1/chat/completions', chatCompletions]]);

export interface SimulatorOptions {
  readonly host: string;
  readonly port: number;
  readonly log: CallLog;
  /** Pause between tokens when the request does not say. */
  readonly delayMs: number;
}

export interface Simulator {
  readonly url: string;
  readonly server: Server;
}

export async function startSimulator(options: SimulatorOptions): Promise<Simulator> {
  const provider = new SimulatedProvider(options);
  const server = createServer({ keepAliveTimeout: 75_000, maxHeaderSize: 65_536 }, (request, response) => {
    provider.serve(request, response).catch((fault: unknown) => {
      process.stderr.write(`simulator: ${String(fault)}\n`);
      response.destroy();
    });
  });
  server.maxConnections = CONNECTIONS_MAX;
  server.on('connection', (socket) => socket.setNoDelay(true));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, 1024, resolve);
  });
  const { port } = server.address() as AddressInfo;
  const host = options.host.includes(':') ? `[${options.host}]` : options.host;
  return { url: `http://${host}:${port}`, server };
}

class SimulatedProvider {
  readonly #options: SimulatorOptions;
  // Ids stay unique when the simulator is restarted on the same log.
  readonly #run = randomBytes(4).toString('hex');
  readonly #timesSeen = new Map<string, number>();
  #calls = 0;

  constructor(options: SimulatorOptions) {
    this.#options = options;
  }

  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? '').split('?', 1)[0] ?? '';
    const headers = this.#headers();
    const body = await readBody(request);
    if (body === null) {
      response.writeHead(413, { connection: 'close' }).end();
      return;
    }
    if (!hasCredential(request)) return answer(response, 401, headers, renderError(UNAUTHENTICATED));
    if (request.method === 'GET' && path === '/v1/models') return answer(response, 200, headers, renderModels());
    const api = APIS.get(path);
    if (api === undefined || request.method !== 'POST') return answer(response, 404, headers, renderError(unknownUrl(request)));
    await this.#serveCall(api, body, response, headers);
  }

  async #serveCall(api: Api, body: Buffer, response: ServerResponse, headers: Readonly<Record<string, string>>): Promise<void> {
    const startedMs = performance.now();
    this.#calls += 1;
    const id = `${api.name === 'chat_completions' ? 'chatcmpl' : api.name}-sim-${this.#run}-${this.#calls}`;
    const requestSha256 = createHash('sha256').update(body).digest('hex');
    const json = parseObject(body);
    const named = {
      id,
      api: api.name,
      model: typeof json?.model === 'string' ? json.model : null,
      stream: json?.stream === true,
      requestSha256,
    };
    this.#options.log.write({ type: 'start', at: new Date().toISOString(), ...named, requestBytes: body.length });
    const asked = readDirectives(json === null ? '' : api.readText(json));
    const directives = this.#faultsAreOver(requestSha256, asked) ? withoutFaults(asked) : asked;
    const planned = api.plan({ id, body, json, directives, defaultDelayMs: this.#options.delayMs });
    const tally: CallTally = planned.ok ? planned.plan.tally : { promptTokens: 0, cachedTokens: 0, completionTokens: 0, usageSent: false };
    const reply = new ReplySocket(response, { splitEachByte: directives.splitUtf8 });
    let completed = false;
    try {
      completed = await sendReply(reply, api, planned, directives, headers);
    } finally {
      this.#options.log.write({
        type: 'end',
        at: new Date().toISOString(),
        ...named,
        status: reply.status,
        ...tally,
        completed,
        bytesSent: reply.bytesSent,
        durationMs: Math.round(performance.now() - startedMs),
      });
    }
  }

  /** `times=N`: the faults asked for happen on the first N calls with this body. */
  #faultsAreOver(requestSha256: string, directives: Directives): boolean {
    if (directives.times === null) return false;
    const seen = (this.#timesSeen.get(requestSha256) ?? 0) + 1;
    this.#timesSeen.delete(requestSha256);
    this.#timesSeen.set(requestSha256, seen);
    for (const oldest of this.#timesSeen.keys()) {
      if (this.#timesSeen.size <= REMEMBERED_REQUESTS_MAX) break;
      this.#timesSeen.delete(oldest);
    }
    return seen > directives.times;
  }

  /** What real providers send along; the cookie and the `x-internal` field must never reach a gateway's client. */
  #headers(): Record<string, string> {
    return {
      'x-request-id': `req_sim_${this.#run}_${this.#calls + 1}`,
      'openai-version': '2020-10-01',
      'openai-processing-ms': '1',
      'openai-organization': 'sim-organization',
      'x-ratelimit-limit-requests': '10000',
      'x-ratelimit-remaining-requests': '9999',
      'set-cookie': '__sim=provider-cookie; Path=/; HttpOnly',
      'x-internal': 'provider-internal',
    };
  }
}

async function sendReply(
  reply: ReplySocket,
  api: Api,
  planned: { ok: true; plan: CallPlan } | { ok: false; error: ProviderError },
  directives: Directives,
  headers: Readonly<Record<string, string>>,
): Promise<boolean> {
  await reply.pause(directives.firstByteMs ?? 0);
  if (directives.blackhole) await reply.stall();
  if (directives.resetBeforeReply || directives.closeBeforeReply) await reply.cut({ reset: directives.resetBeforeReply });
  if (reply.closed) return false;
  const extra: Record<string, string> = { ...headers };
  if (directives.retryAfter !== null) extra['retry-after'] = directives.retryAfter;
  if (directives.headerBytes > 0) extra['x-padding'] = 'p'.repeat(directives.headerBytes);
  const error = planned.ok ? askedError(directives) : planned.error;
  if (error === null && planned.ok) return planned.plan.send(reply, extra);
  const body = api.renderError(error ?? UNAUTHENTICATED);
  reply.start(error?.status ?? 401, { ...extra, 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
  await reply.write(body);
  await reply.end();
  return false;
}

function askedError(directives: Directives): ProviderError | null {
  const { status } = directives;
  if (status === null) return null;
  if (status === 429) {
    return { status, message: 'Rate limit reached for requests.', type: 'requests', param: null, code: 'rate_limit_exceeded' };
  }
  const type = status >= 500 ? 'server_error' : 'invalid_request_error';
  return { status, message: `The simulated provider was asked to answer ${status}.`, type, param: null, code: null };
}

/** What is left of a request's directives when `times=` has run out: its shape, none of its faults. */
function withoutFaults(directives: Directives): Directives {
  const { tokens, bytes, delayMs, cached, cacheWrite, reasoning, splitUtf8 } = directives;
  return { ...readDirectives(''), tokens, bytes, delayMs, cached, cacheWrite, reasoning, splitUtf8 };
}

const UNAUTHENTICATED: ProviderError = {
  status: 401,
  message: "You didn't provide an API key.",
  type: 'invalid_request_error',
  param: null,
  code: null,
};

function unknownUrl(request: IncomingMessage): ProviderError {
  const message = `Invalid URL (${request.method} ${request.url})`;
  return { status: 404, message, type: 'invalid_request_error', param: null, code: null };
}

function renderError(error: ProviderError): string {
  return chatCompletions.renderError(error);
}

function hasCredential(request: IncomingMessage): boolean {
  const { authorization } = request.headers;
  const key = request.headers['x-api-key'];
  return (authorization !== undefined && /^Bearer \S+$/.test(authorization)) || (typeof key === 'string' && key.length > 0);
}

function answer(response: ServerResponse, status: number, headers: Readonly<Record<string, string>>, body: string): void {
  response.writeHead(status, { ...headers, 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
  response.end(body);
}

/** null: larger than the limit. */
async function readBody(request: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, bytes);
}

function parseObject(body: Buffer): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
