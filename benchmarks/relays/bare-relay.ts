// The lower bound: a relay on uWebSockets.js and undici that only relays. It has no keys, no scan and no metering, only
// what makes a relay fast: a free list of single-connection clients, one cork for head and first bytes, and the chunks
// of one tick sent together. Run: node benchmarks/relays/bare-relay.ts <upstream origin> [port]. It prints the port it
// listens on and ends when its parent does.

import { App, type HttpResponse, us_socket_local_port as localPort } from 'uWebSockets.js';
import { Client, type Dispatcher } from 'undici';
import { endWithParent } from '../harness/end-with-parent.ts';

const upstreamOrigin = process.argv[2];
if (upstreamOrigin === undefined) throw new Error('usage: bare-relay.ts <upstream origin> [port]');

const freeClients: Client[] = [];

function takeClient(): Client {
  return (
    freeClients.pop() ??
    new Client(upstreamOrigin as string, {
      pipelining: 1,
      bodyTimeout: 0,
      headersTimeout: 60_000,
      keepAliveTimeout: 60_000,
    })
  );
}

class RelayHandler implements Dispatcher.DispatchHandler {
  private readonly response: HttpResponse;
  private readonly client: Client;
  private controller: Dispatcher.DispatchController | null = null;
  private status = 0;
  private contentType = 'application/json';
  private requestId = '';
  private headSent = false;
  private contentLength = -1;
  private pending: Buffer[] = [];
  private flushScheduled = false;
  aborted = false;

  constructor(response: HttpResponse, client: Client) {
    this.response = response;
    this.client = client;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
  }

  abort(): void {
    this.aborted = true;
    this.controller?.abort(new Error('the client left'));
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    this.status = status;
    this.contentType = String(headers['content-type']);
    this.requestId = String(headers['x-request-id']);
    this.contentLength = headers['content-length'] === undefined ? -1 : Number(headers['content-length']);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.pending.push(chunk);
    // If the length is known, the whole body is awaited: onResponseEnd sends it with its head in one write.
    if (this.contentLength >= 0 || this.flushScheduled) return;
    this.flushScheduled = true;
    setImmediate(this.flush);
  }

  private readonly flush = (): void => {
    this.flushScheduled = false;
    if (this.aborted || this.pending.length === 0) return;
    this.response.cork(() => {
      this.writeHead();
      if (!this.response.write(this.takePending())) this.waitForDrain();
    });
  };

  private takePending(): Buffer {
    const bytes = this.pending.length === 1 ? (this.pending[0] as Buffer) : Buffer.concat(this.pending);
    this.pending = [];
    return bytes;
  }

  private writeHead(): void {
    if (this.headSent) return;
    this.headSent = true;
    this.response.writeStatus(String(this.status));
    this.response.writeHeader('content-type', this.contentType);
    this.response.writeHeader('x-request-id', this.requestId);
  }

  private waitForDrain(): void {
    this.controller?.pause();
    this.response.onWritable(() => {
      this.controller?.resume();
      return true;
    });
  }

  onResponseEnd(): void {
    freeClients.push(this.client);
    if (this.aborted) return;
    this.aborted = true;
    this.response.cork(() => {
      this.writeHead();
      if (this.pending.length === 0) this.response.end();
      else this.response.end(this.takePending());
    });
  }

  onResponseError(_controller: Dispatcher.DispatchController, _error: Error): void {
    void this.client.destroy();
    if (this.aborted) return;
    this.aborted = true;
    if (this.headSent) this.response.close();
    else this.response.cork(() => this.response.writeStatus('502 Bad Gateway').end());
  }
}

const app = App();
app.post('/*', (response, request) => {
  const path = request.getUrl();
  const headers = {
    'content-type': request.getHeader('content-type'),
    authorization: request.getHeader('authorization'),
  };
  const client = takeClient();
  const handler = new RelayHandler(response, client);
  const parts: Buffer[] = [];
  response.onAborted(() => handler.abort());
  response.onData((chunk, isLast) => {
    // uWebSockets.js owns the chunk's memory and reuses it when this callback returns.
    parts.push(Buffer.from(Buffer.from(chunk)));
    if (!isLast || handler.aborted) return;
    const body = parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
    client.dispatch({ path, method: 'POST', headers, body }, handler);
  });
});

endWithParent();
app.listen('127.0.0.1', Number(process.argv[3] ?? 0), (socket) => {
  if (!socket) throw new Error('the bare relay cannot listen');
  console.log(`listening ${localPort(socket)}`);
});
