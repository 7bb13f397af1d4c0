// The HTTP server of the simulated provider: reads a call, lets the API plan it, applies the faults that are
// independent of the API, and logs it.

import { createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  type Api,
  type CallBody,
  emptyTally,
  type Planned,
  type ProviderError,
  type ReplyHeaders,
} from './apis/api.ts';
import { renderModels } from './apis/models.ts';
import { OPENAI_UNAUTHENTICATED, renderOpenaiError } from './apis/openai-errors.ts';
import type { CallLog } from './call-log.ts';
import { type Directives, readDirectives, withoutFaults } from './directives.ts';
import { isObject, type Json } from './json-fields.ts';
import { providerHeaders } from './provider-headers.ts';
import { ReplySocket } from './reply-socket.ts';
import { createRoutes, findRoute } from './routes.ts';
import { addressOf, keyFor, refusalOf, shapedApi } from './shapes/shaped-call.ts';

const BODY_BYTES_MAX = 64 * 1024 * 1024;
const CONNECTIONS_MAX = 20_000;
/** Paths that answer with the list of models. Clients of OpenRouter test a key at the second. */
const LISTINGS = ['/v1/models', '/v1/key'];
/** How many different requests are counted for `times=`; the oldest is forgotten first. */
const REMEMBERED_REQUESTS_MAX = 10_000;

export interface SimulatorOptions {
  readonly host: string;
  readonly port: number;
  readonly log: CallLog;
  /** The pause between tokens if the request does not set one. */
  readonly delayMs: number;
  /** The shape (shapes/shapes.ts) for all calls; absent: host and path decide. */
  readonly as?: string | undefined;
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
  private readonly options: SimulatorOptions;
  private readonly routes = createRoutes();
  // Ids stay unique when the simulator is restarted with the same log.
  private readonly run = randomBytes(4).toString('hex');
  private readonly timesSeen = new Map<string, number>();
  private calls = 0;

  constructor(options: SimulatorOptions) {
    this.options = options;
  }

  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const search = (request.url ?? '').split('?', 2)[1] ?? '';
    const { shape, path, model } = addressOf(request, this.options.as ?? null);
    const found = findRoute(this.routes, request.method ?? '', path);
    const route = found === null || shape === null ? found : { ...found, api: shapedApi(found.api, shape, model) };
    this.calls += 1;
    const callName = `sim-${this.run}-${this.calls}`;
    const requestId = `req_${callName}`;
    const headers = providerHeaders(route?.api.family ?? 'openai', requestId);
    const body = await readBody(request);
    if (body === null) {
      response.writeHead(413, { connection: 'close' }).end();
      return;
    }
    const credential = shape === null ? readCredential(request) : keyFor(shape, request);
    const refusal = shape === null ? null : refusalOf(shape, credential);
    if (refusal !== null) return answer(response, refusal.status, headers, refusal.body);
    if (credential === null) {
      const error = route?.api.unauthenticated ?? OPENAI_UNAUTHENTICATED;
      return answer(
        response,
        error.status,
        headers,
        route?.api.renderError(error, requestId) ?? renderOpenaiError(error),
      );
    }
    if (request.method === 'GET' && LISTINGS.includes(path)) return answer(response, 200, headers, renderModels());
    if (route === null) {
      const error = unknownUrl(request);
      const own = shape?.error?.(error);
      return answer(response, 404, headers, own === undefined ? renderOpenaiError(error) : JSON.stringify(own));
    }
    const { api, pathId } = route;
    const read = api.readForm?.(body, request.headers['content-type'] ?? '');
    const { json, parts } =
      read === undefined ? { json: parseObject(body), parts: null } : (read ?? { json: null, parts: null });
    const caller = createHash('sha256').update(credential).digest('hex');
    const call = { body, json, parts, headers: request.headers, pathId, query: new URLSearchParams(search), caller };
    await this.serveCall({ api, id: api.idPrefix + callName, call, response, headers, requestId });
  }

  private async serveCall({ api, id, call, response, headers, requestId }: ReceivedCall): Promise<void> {
    const startedMs = performance.now();
    const { body, json, parts, pathId } = call;
    const requestSha256 = createHash('sha256').update(body).digest('hex');
    const named = {
      id,
      api: api.name,
      model: typeof json?.model === 'string' ? json.model : null,
      stream: json?.stream === true,
      requestSha256,
      ...(pathId === '' ? {} : { responseId: pathId }),
    };
    this.options.log.write({ type: 'start', at: new Date().toISOString(), ...named, requestBytes: body.length });
    const asked = readDirectives(api.readText(call), api.scopesOf?.(call) ?? api.scopes);
    const directives = this.faultsAreOver(`${api.name} ${requestSha256}`, asked) ? withoutFaults(asked) : asked;
    const planned = api.plan({ ...call, id, directives, defaultDelayMs: this.options.delayMs });
    const tally = planned.ok ? planned.plan.tally : emptyTally();
    const reply = new ReplySocket(response, { splitEachByte: directives.splitUtf8 });
    let completed = false;
    try {
      completed = await sendReply(reply, { api, planned, directives, headers, requestId });
    } finally {
      this.options.log.write({
        type: 'end',
        at: new Date().toISOString(),
        ...named,
        status: reply.status,
        ...tally,
        ...(parts === null ? {} : { parts }),
        completed,
        bytesSent: reply.bytesSent,
        durationMs: Math.round(performance.now() - startedMs),
      });
    }
  }

  /** `times=N`: the requested faults happen for the first N calls with this body. */
  private faultsAreOver(call: string, directives: Directives): boolean {
    if (directives.times === null) return false;
    const seen = (this.timesSeen.get(call) ?? 0) + 1;
    this.timesSeen.delete(call);
    this.timesSeen.set(call, seen);
    for (const oldest of this.timesSeen.keys()) {
      if (this.timesSeen.size <= REMEMBERED_REQUESTS_MAX) break;
      this.timesSeen.delete(oldest);
    }
    return seen > directives.times;
  }
}

interface ReceivedCall {
  readonly api: Api;
  readonly id: string;
  readonly call: CallBody;
  readonly response: ServerResponse;
  readonly headers: ReplyHeaders;
  readonly requestId: string;
}

interface PlannedReply extends Pick<ReceivedCall, 'api' | 'headers' | 'requestId'> {
  readonly planned: Planned;
  readonly directives: Directives;
}

async function sendReply(
  reply: ReplySocket,
  { api, planned, directives, headers, requestId }: PlannedReply,
): Promise<boolean> {
  await reply.pause(directives.firstByteMs ?? 0);
  if (directives.blackhole) await reply.stall();
  if (directives.resetBeforeReply || directives.closeBeforeReply)
    await reply.cut({ reset: directives.resetBeforeReply });
  if (reply.closed) return false;
  const extra: Record<string, string> = { ...headers };
  if (directives.retryAfter !== null) extra['retry-after'] = directives.retryAfter;
  if (directives.headerBytes > 0) extra['x-padding'] = 'p'.repeat(directives.headerBytes);
  const error = planned.ok ? askedError(directives) : planned.error;
  if (error === null && planned.ok) return planned.plan.send(reply, extra);
  const shown = error ?? api.unauthenticated;
  const body = api.renderError(shown, requestId);
  reply.start(shown.status, {
    ...extra,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  });
  await reply.write(body);
  await reply.end();
  return false;
}

function askedError(directives: Directives): ProviderError | null {
  const { status } = directives;
  const form = directives.settings.get('detail');
  if (status === null) return null;
  if (status === 429) {
    return {
      status,
      message: 'Rate limit reached for requests.',
      type: 'requests',
      param: null,
      code: 'rate_limit_exceeded',
      form,
    };
  }
  const type = status >= 500 ? 'server_error' : 'invalid_request_error';
  return {
    status,
    message: `The simulated provider was asked to answer ${status}.`,
    type,
    param: null,
    code: null,
    form,
  };
}

function unknownUrl(request: IncomingMessage): ProviderError {
  const message = `Invalid URL (${request.method} ${request.url})`;
  return { status: 404, message, type: 'invalid_request_error', param: null, code: null };
}

function readCredential(request: IncomingMessage): string | null {
  const key = request.headers['x-api-key'];
  if (typeof key === 'string' && key.length > 0) return key;
  return /^Bearer (\S+)$/.exec(request.headers.authorization ?? '')?.[1] ?? null;
}

function answer(response: ServerResponse, status: number, headers: ReplyHeaders, body: string): void {
  response.writeHead(status, {
    ...headers,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  });
  response.end(body);
}

/** null: the body is larger than the limit. */
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

function parseObject(body: Buffer): Json | null {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}
