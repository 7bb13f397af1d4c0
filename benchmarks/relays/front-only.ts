// Our own HTTP front and upstream client with every feature of the product off, as a comparison: no keys, no scan, no
// splice, no metering. Run: node benchmarks/relays/front-only.ts <upstream origin> [port]. It prints the port it
// listens on and ends when its parent does.

import type { ClientWatch } from '../../src/http/client-watch.ts';
import type { Exchange } from '../../src/http/exchange.ts';
import { chooseFront } from '../../src/http/fronts/choose-front.ts';
import type { BodySink } from '../../src/http/request-body.ts';
import { Server } from '../../src/http/server.ts';
import { BufferPool, type PooledBuffer } from '../../src/platform/buffer-pool.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { createExecutionIdSource } from '../../src/platform/execution-id.ts';
import type { UpstreamCall } from '../../src/upstream/call.ts';
import { type ReplyHeaders, replyHeader } from '../../src/upstream/http1/reply-head.ts';
import { UpstreamOrigin } from '../../src/upstream/origin.ts';
import type { ReplyHandler } from '../../src/upstream/reply-handler.ts';
import { findFreePort } from '../../test/support/free-port.ts';
import { endWithParent } from '../harness/end-with-parent.ts';

const origin = new UpstreamOrigin(process.argv[2] ?? 'http://127.0.0.1:9');
const buffers = new BufferPool();

class PlainRelay implements ReplyHandler, BodySink, ClientWatch {
  private readonly exchange: Exchange;
  private readonly pooled: PooledBuffer;
  private call: UpstreamCall | null = null;
  private received = 0;
  private status = 0;
  private headers: string[] = [];
  private knownLength = false;
  private begun = false;
  private ended = false;
  private blocked = false;
  private pending: Buffer[] = [];

  constructor(exchange: Exchange, pooled: PooledBuffer) {
    this.exchange = exchange;
    this.pooled = pooled;
  }

  take(bytes: Uint8Array, isLast: boolean): void {
    this.pooled.buffer.set(bytes, this.received);
    this.received += bytes.length;
    if (isLast) this.send(this.received);
  }

  onClientLeft(): void {
    this.call?.abort();
  }

  private send(bodyBytes: number): void {
    const exchange = this.exchange;
    exchange.watchClient(this);
    const headers = ['content-type', exchange.contentType, 'authorization', exchange.authorization];
    const body = { pieces: [this.pooled.buffer.subarray(0, bodyBytes)], pooled: this.pooled };
    this.call = origin.call({ method: 'POST', path: exchange.path, headers, body }, this);
  }

  onReplyStart(status: number, headers: ReplyHeaders): void {
    this.status = status;
    this.knownLength = replyHeader(headers, 'content-length') !== undefined;
    this.headers = [
      'content-type',
      replyHeader(headers, 'content-type') ?? '',
      'x-request-id',
      replyHeader(headers, 'x-request-id') ?? '',
    ];
  }

  onReplyData(chunk: Buffer): void {
    this.pending.push(chunk);
  }

  onReplyPause(): void {
    // A reply of known length is sent whole by onReplyEnd.
    if (!this.knownLength) this.flush();
    this.keepNewest();
  }

  /** Copies the newest bytes that the client has no room for: their memory is reused after this read. */
  private keepNewest(): void {
    const newest = this.pending.pop();
    if (newest !== undefined) this.pending.push(Buffer.from(newest));
  }

  onReplyEnd(): void {
    this.ended = true;
    buffers.release(this.pooled);
    this.flush();
    this.keepNewest();
  }

  onKeyRefused(): void {
    this.onReplyFault();
  }

  onReplyFault(): void {
    buffers.release(this.pooled);
    if (this.begun) this.exchange.cut();
    else this.exchange.refuse({ kind: 'upstream_unreachable' });
  }

  private readonly flush = (): void => {
    if (!this.blocked) this.exchange.cork(this.writeOut);
  };

  private readonly writeOut = (): void => {
    const exchange = this.exchange;
    if (!this.begun) {
      this.begun = true;
      exchange.begin(this.status, this.headers);
    }
    const bytes = this.pending.length === 1 ? (this.pending[0] as Buffer) : Buffer.concat(this.pending);
    this.pending = [];
    if (this.ended) {
      if (bytes.length > 0) exchange.end(bytes);
      else exchange.end();
    } else if (!exchange.write(bytes)) {
      this.blocked = true;
      this.call?.pause();
      exchange.onWritable(() => {
        this.blocked = false;
        this.call?.resume();
        queueMicrotask(this.flush);
      });
    }
  };
}

function handle(exchange: Exchange): void {
  exchange.body.receive(new PlainRelay(exchange, buffers.acquire(exchange.contentLength)));
}

const server = new Server({
  front: (await chooseFront(process.env['HTTP_FRONT'] === 'node' ? 'node' : 'uws')).front,
  // A route of all methods has the path as it was sent.
  routes: [{ method: 'POST', anyMethod: true, path: '/*', envelope: 'openai', handle }],
  renderContext: { publicUrl: '' },
  nextRequestId: createExecutionIdSource(systemClock),
  onRefusal: () => undefined,
  onFault: (fault) => console.error(fault),
});

endWithParent();
const port = Number(process.argv[3] ?? (await findFreePort()));
await server.listen('127.0.0.1', port);
console.log(`listening ${port}`);
