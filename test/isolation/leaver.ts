// A client that sends one request in one of several ways and leaves in one of several ways, whatever the answer.

import { connect, type Socket } from 'node:net';
import type { SeededRandom } from '../simulation/seeded-random.ts';
import { findMarks } from './marks.ts';
import type { Exchange } from './plan.ts';
import type { Watch } from './watch.ts';

/**
 * How the request is sent. `head first` and `in halves`: the rest is sent when the gateway knows of the request and has
 * stopped reading it. `behind another`: in one packet after a request that is answered at once.
 */
const SENDINGS = ['at once', 'head first', 'in halves', 'behind another'] as const;
/** How the client leaves. `ends with its last bytes`: the end is in the same packet as the last bytes. */
const DEPARTURES = ['ends', 'resets', 'ends', 'ends with its last bytes'] as const;
/** How the client leaves when its request must be complete first. */
const DEPARTURES_OF_WHOLE = ['ends', 'resets'] as const;

const REST_AFTER_MS = 3;
const LAST_BYTES = 40;
const OTHER_REQUEST = 'GET /v1/nothing-here HTTP/1.1\r\nhost: gateway.test\r\n\r\n';

export class Leaver {
  readonly exchange: Exchange;
  /** The time just before the first byte of the request was sent. */
  sentAtMs = 0;
  /** Resolves when the connection is open, or has failed. */
  readonly connected: Promise<void>;
  private readonly socket: Socket;
  private readonly sending: (typeof SENDINGS)[number];
  private readonly departure: (typeof DEPARTURES)[number];
  /** The bytes that are sent together with the end. */
  private readonly last: Buffer;

  constructor(port: number, exchange: Exchange, isWhole: boolean, random: SeededRandom, watch: Watch) {
    this.exchange = exchange;
    this.sending = random.pick(SENDINGS);
    this.departure = random.pick(isWhole ? DEPARTURES_OF_WHOLE : DEPARTURES);
    this.last = this.departure === 'ends with its last bytes' ? exchange.body.subarray(-LAST_BYTES) : EMPTY;
    this.socket = connect({ port, host: '127.0.0.1', noDelay: true });
    this.socket.on('error', () => undefined);
    this.socket.on('data', (bytes) => this.look(bytes, watch));
    const { promise, resolve } = Promise.withResolvers<void>();
    this.connected = promise;
    this.socket.on('close', () => resolve());
    this.socket.on('connect', () => {
      this.send();
      resolve();
    });
  }

  /** The client's port; 0: there is no connection. */
  get port(): number {
    return this.socket.localPort ?? 0;
  }

  get manner(): string {
    return `${this.sending}, ${this.exchange.body.length} bytes, ${this.departure}`;
  }

  private send(): void {
    const { exchange, socket, sending, last } = this;
    const head = Buffer.from(exchange.head, 'latin1');
    const body = exchange.body.subarray(0, exchange.body.length - last.length);
    this.sentAtMs = performance.now();
    const isLater = sending === 'head first' || sending === 'in halves';
    const first = !isLater ? body : body.subarray(0, sending === 'head first' ? 0 : body.length / 2);
    const other = sending === 'behind another' ? Buffer.from(OTHER_REQUEST) : EMPTY;
    socket.write(Buffer.concat([other, head, first]));
    if (isLater) setTimeout(() => socket.write(body.subarray(first.length)), REST_AFTER_MS);
  }

  leave(): void {
    const { socket, last, departure } = this;
    if (departure === 'resets') {
      socket.resetAndDestroy();
      return;
    }
    if (last.length > 0) {
      // With Nagle's algorithm the system keeps the second piece until the first is acknowledged, and sends the end
      // with it.
      socket.setNoDelay(false);
      socket.write(last.subarray(0, 1));
      socket.write(last.subarray(1));
    }
    socket.destroy();
  }

  private look(bytes: Buffer, watch: Watch): void {
    for (const mark of findMarks(bytes.toString('latin1'))) {
      if (mark.tenant !== this.exchange.tenant)
        watch.violation('foreign mark', `to whoever leaves exchange ${this.exchange.index}: ${JSON.stringify(mark)}`);
    }
  }
}

const EMPTY = Buffer.alloc(0);
