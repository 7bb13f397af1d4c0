// A relay whose client and provider are controlled by the test: what is written, when the record is written, whether
// the client has room or leaves.

import assert from 'node:assert/strict';
import type { Dialect } from '../../src/generation/dialects/dialect.ts';
import type { ExecutionOwner } from '../../src/generation/execution/execution.ts';
import type { ObservedEnd } from '../../src/generation/execution/observed-end.ts';
import { Cooldowns } from '../../src/generation/pauses/cooldowns.ts';
import { OpenRelays } from '../../src/generation/reply/open-relays.ts';
import { relay } from '../../src/generation/reply/relay.ts';
import type { RelayContext, RelayParams } from '../../src/generation/reply/relay-params.ts';
import { RequestScanner } from '../../src/generation/request/scan/request-scanner.ts';
import type { ClientWatch } from '../../src/http/client-watch.ts';
import type { ReplyHandler } from '../../src/upstream/reply-handler.ts';

const scanner = new RequestScanner();

/** A relay whose client and provider are arrays, and whose record is written when the test says so. */
export class RelayInHand {
  written = '';
  over = false;
  /** The client's socket accepts the bytes, but has no room for more. */
  clientIsFull = false;
  clientLeaves: () => void = () => undefined;
  readonly open = new OpenRelays();
  ending: ObservedEnd | null = null;
  record: () => void = () => assert.fail('the end is not being recorded');
  readonly provider: ReplyHandler;
  /** The number of calls to the provider. */
  calls = 0;

  /** `hasLeft`: the client has left before the relay begins. */
  constructor(dialect: Dialect, asksForUsage = false, hasLeft = false) {
    const body = Buffer.from('{"model":"m","stream":true}');
    const execution = {
      admission: { walletId: null },
      firstByteAtMs: null,
      onCall: () => undefined,
      end: (ending: ObservedEnd, owner: ExecutionOwner) => {
        this.ending = ending;
        this.record = () => owner.onRecorded();
      },
    };
    const listeners: ReplyHandler[] = [];
    const take = (chunk: Uint8Array): boolean => {
      this.written += Buffer.from(chunk).toString('latin1');
      return !this.clientIsFull;
    };
    const exchange = {
      headers: [],
      closed: hasLeft,
      aborted: hasLeft,
      watchClient: (watch: ClientWatch | null) => {
        this.clientLeaves = (): void => {
          exchange.closed = true;
          watch?.onClientLeft();
        };
        if (exchange.aborted) watch?.onClientLeft();
      },
      onWritable: () => undefined,
      cork: (write: () => void) => write(),
      begin: () => undefined,
      addReadHeader: () => undefined,
      write: take,
      end: (chunk?: Uint8Array) => {
        if (chunk !== undefined) take(chunk);
        this.over = true;
        exchange.closed = true;
      },
      cut: () => {
        exchange.closed = true;
      },
      refuse: () => {
        exchange.closed = true;
      },
      fail: (fault: unknown) => assert.fail(String(fault)),
    };
    let nowMs = 0;
    const pooled = { buffer: body };
    const scanned = scanner.scan(body);
    const modelAt = scanned.valueOf('model');
    const read = { requestedModel: 'm', modelAt, bounds: { streamed: true, outputTokensMax: null, answers: 1 } };
    const params = {
      exchange,
      dialect,
      request: { pooled, body, scanned, form: null },
      headers: [],
      read,
      execution,
      tokenizer: 'o200k_base',
      ownHeaders: [],
    };
    const context = {
      buffers: { release: () => undefined },
      // Pieces come with pauses between them, so none are combined.
      clock: { nowMs: () => 0, monotonicMs: () => (nowMs += 10) },
      open: this.open,
      cooldowns: new Cooldowns(),
      reportFailedCall: () => undefined,
      providers: {
        call: (_provider: unknown, _request: unknown, handler: ReplyHandler) => {
          listeners.push(handler);
          this.calls += 1;
          return { sent: true, pause: () => undefined, resume: () => undefined, abort: () => undefined };
        },
      },
    };
    const deployments = [
      {
        provider: { auth: 'bearer', apiKey: 'k' },
        modelJson: Buffer.from('"m"'),
        insteadOfModel: null,
        modelText: Buffer.from('m'),
        asksForUsage,
      },
    ];
    relay({ ...params, deployments } as unknown as RelayParams, context as unknown as RelayContext);
    this.provider = listeners[0] as ReplyHandler;
    if (!hasLeft) this.provider.onReplyStart(200, ['content-type', 'text/event-stream']);
  }

  /** Ends the provider's reply, in the tick after its last byte. */
  async end(): Promise<void> {
    this.provider.onReplyEnd();
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** Delivers a chunk as the provider's socket would: work that is due is done before the next chunk. */
  async receive(chunk: Buffer): Promise<void> {
    this.provider.onReplyData(chunk);
    this.provider.onReplyPause();
    await new Promise((resolve) => setImmediate(resolve));
  }
}
