// A provider for tests on a real socket: it keeps the bytes of every request and answers by a script, byte by byte if
// asked, or stalls, cuts and resets. It decides nothing by itself; src/simulator is a provider that behaves.

import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { type SplitPlan, splitBytes } from './byte-splits.ts';
import { ByteSource, type ReceivedRequest, readRequest } from './request-reader.ts';

export type { ReceivedRequest } from './request-reader.ts';

/** The fault, and after how many bytes of the reply's body it occurs. */
export type ReplyFault =
  | { readonly kind: 'cut'; readonly afterBytes: number }
  | { readonly kind: 'reset'; readonly afterBytes: number }
  | { readonly kind: 'stall'; readonly afterBytes: number };

export interface ScriptedReply {
  readonly status?: number;
  readonly headers?: readonly (readonly [string, string])[];
  readonly body: Buffer | string;
  /** How the end of the body is marked: by content-length (default), by chunks, or by closing. */
  readonly framing?: 'length' | 'chunked' | 'close';
  /** How the body is cut into writes, and with chunked framing into chunks. Default: whole. */
  readonly split?: SplitPlan;
  /** Wait before the status line. */
  readonly delayMs?: number;
  readonly fault?: ReplyFault;
}

/** `reset` and `close`: no byte of a reply is sent. `silence`: the connection stays open without a reply. */
export type Script = ScriptedReply | { readonly instead: 'reset' | 'close' | 'silence' };

/** The smallest reply of a chat model that reports its usage: one token in, one out. */
export const ONE_TOKEN_REPLY: ScriptedReply = {
  body: JSON.stringify({ usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } }),
};

const UNKNOWN_KEY: ScriptedReply = { status: 401, body: '{"error":{"message":"Incorrect API key"}}' };

export interface FakeUpstream {
  readonly url: string;
  /** Every whole request, in the order in which they arrived. */
  readonly requests: readonly ReceivedRequest[];
  /** Bytes that were not valid HTTP; a test expects none. */
  readonly violations: readonly string[];
  /** Connections that are open now. */
  openConnections(): number;
  close(): Promise<void>;
}

export async function startFakeUpstream(
  handler: (request: ReceivedRequest) => Script | Promise<Script>,
): Promise<FakeUpstream> {
  const upstream = new ScriptedUpstream(handler);
  await upstream.listen();
  return upstream;
}

class ScriptedUpstream implements FakeUpstream {
  readonly requests: ReceivedRequest[] = [];
  readonly violations: string[] = [];
  readonly #handler: (request: ReceivedRequest) => Script | Promise<Script>;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #connections = 0;
  url = '';

  constructor(handler: (request: ReceivedRequest) => Script | Promise<Script>) {
    this.#handler = handler;
    this.#server = createServer({ noDelay: true, allowHalfOpen: true }, (socket) => this.#accept(socket));
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', 1024, resolve));
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  openConnections(): number {
    return this.#sockets.size;
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #accept(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => this.#sockets.delete(socket));
    const connection = this.#connections;
    this.#connections += 1;
    this.#serve(socket, connection).catch((fault: unknown) => {
      // A client may disconnect in the middle of a request, but may not send bytes that are not HTTP.
      if (!socket.destroyed && !isDisconnect(fault)) this.violations.push(String(fault));
      socket.destroy();
    });
  }

  async #serve(socket: Socket, connection: number): Promise<void> {
    const source = new ByteSource(socket);
    for (;;) {
      const request = await readRequest(source, connection);
      if (request === null) break;
      // Gateways send a key that nobody has, to find out whether the provider accepts any key. This provider refuses
      // it.
      const isNobody = (request.header('authorization') ?? '').includes('sk-nobodys-key-');
      if (!isNobody) this.requests.push(request);
      const script = isNobody ? UNKNOWN_KEY : await this.#handler(request);
      if ('instead' in script) {
        if (script.instead === 'reset') socket.resetAndDestroy();
        else if (script.instead === 'close') socket.destroy();
        else await left(socket);
        return;
      }
      if (!(await sendReply(socket, script))) return;
    }
    socket.end();
  }
}

/** True when the connection can carry another exchange. */
async function sendReply(socket: Socket, script: ScriptedReply): Promise<boolean> {
  if (script.delayMs !== undefined) await new Promise((resolve) => setTimeout(resolve, script.delayMs));
  const body = typeof script.body === 'string' ? Buffer.from(script.body) : script.body;
  const framing = script.framing ?? 'length';
  await write(socket, renderHead(script, framing, body.length));
  let sent = 0;
  for (const piece of splitBytes(body, script.split ?? { kind: 'whole' })) {
    const room = script.fault === undefined ? piece.length : Math.min(piece.length, script.fault.afterBytes - sent);
    if (room > 0) await write(socket, framing === 'chunked' ? chunk(piece.subarray(0, room)) : piece.subarray(0, room));
    sent += room;
    if (room < piece.length) break;
    if (socket.destroyed) return false;
  }
  if (script.fault !== undefined) return fail(socket, script.fault);
  if (framing === 'chunked') await write(socket, Buffer.from('0\r\n\r\n'));
  if (framing === 'close') socket.end();
  return framing !== 'close' && !socket.destroyed;
}

function renderHead(script: ScriptedReply, framing: 'length' | 'chunked' | 'close', bodyBytes: number): Buffer {
  const lines = [`HTTP/1.1 ${script.status ?? 200} Scripted`];
  for (const [name, value] of script.headers ?? [['content-type', 'application/json']]) lines.push(`${name}: ${value}`);
  if (framing === 'length') lines.push(`content-length: ${bodyBytes}`);
  if (framing === 'chunked') lines.push('transfer-encoding: chunked');
  if (framing === 'close') lines.push('connection: close');
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}

function chunk(piece: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]);
}

async function fail(socket: Socket, fault: ReplyFault): Promise<false> {
  // The system gets one tick to send what was written.
  await new Promise((resolve) => setImmediate(resolve));
  if (fault.kind === 'reset') socket.resetAndDestroy();
  else if (fault.kind === 'cut') socket.destroy();
  else await left(socket);
  return false;
}

/** One write is one segment: noDelay is on, and the next one waits for the event loop. */
async function write(socket: Socket, bytes: Buffer): Promise<void> {
  if (socket.destroyed) return;
  if (!socket.write(bytes))
    await Promise.race([new Promise<void>((resolve) => socket.once('drain', resolve)), left(socket)]);
  await new Promise((resolve) => setImmediate(resolve));
}

function left(socket: Socket): Promise<void> {
  if (socket.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      socket.off('close', done);
      socket.off('end', done);
      resolve();
    };
    socket.once('close', done);
    socket.once('end', done);
  });
}

function isDisconnect(fault: unknown): boolean {
  const code = (fault as { code?: string }).code;
  return code === 'ECONNRESET' || code === 'EPIPE' || code === 'ERR_STREAM_PREMATURE_CLOSE';
}
