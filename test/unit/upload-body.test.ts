// What is kept in memory of an upload's body: no more than it may have, and of a client that left nothing.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { UploadBody } from '../../src/control-plane/media/upload-body.ts';
import type { Exchange } from '../../src/http/exchange.ts';
import type { BodySink } from '../../src/http/request-body.ts';
import { TimeSlices } from '../../src/platform/event-loop/time-slices.ts';

const SLICES = new TimeSlices({ monotonicMs: () => 0 });

/** An exchange whose client sends the next of these pieces each time that its body is let come, and then leaves. */
class SendingClient {
  readonly pieces: string[];
  readonly exchange: Exchange;
  isHeld = false;
  private sink: BodySink | null = null;
  private leave: () => void = () => undefined;

  constructor(pieces: readonly string[], contentLength: number, leavesBehind: boolean) {
    this.pieces = [...pieces];
    const body = {
      hold: () => (this.isHeld = true),
      resume: () => {
        this.isHeld = false;
        setImmediate(() => this.send(leavesBehind));
      },
      receive: (sink: BodySink) => (this.sink = sink),
    };
    const watchClient = (watch: { onClientLeft(): void }) => (this.leave = () => watch.onClientLeft());
    this.exchange = { body, watchClient, contentLength, isChunked: contentLength < 0 } as unknown as Exchange;
  }

  get isReceived(): boolean {
    return this.sink !== null;
  }

  send(leavesBehind = false): void {
    const piece = this.pieces.shift();
    if (piece !== undefined) this.sink?.take(Buffer.from(piece), false);
    else if (leavesBehind) this.leave();
  }
}

describe('the body of an upload', () => {
  test('that declares more than it may have is left where it is', async () => {
    const client = new SendingClient(['xxx'], 101, false);
    const body = new UploadBody(client.exchange, 100);
    assert.deepEqual([body.isTooLong, client.isReceived, client.isHeld], [true, false, true]);
    assert.equal(await body.next(), 'too_long');
  });

  test('that has more than it may have is kept no longer, although it comes unasked', async () => {
    const client = new SendingClient(['x'.repeat(60), 'x'.repeat(40), 'x', 'x'.repeat(50)], -1, false);
    const body = new UploadBody(client.exchange, 100);
    client.send();
    client.send();
    assert.equal(body.isTooLong, false);
    client.send();
    client.send();
    assert.deepEqual([body.isTooLong, client.isHeld], [true, true]);
    assert.equal(await body.next(), 'too_long');
  });

  test('of a client that left is read until that shows', async () => {
    const client = new SendingClient(['a', 'b', 'c'], 100, true);
    const body = new UploadBody(client.exchange, 100);
    await body.lookForClient(SLICES);
    assert.equal(body.hasLeft, true);
    assert.equal(await body.next(), 'left');
  });

  test('of a client that is there is read as far as it has come', async () => {
    const client = new SendingClient(['a', 'b'], 100, false);
    const body = new UploadBody(client.exchange, 100);
    await body.lookForClient(SLICES);
    assert.deepEqual([body.hasLeft, client.pieces], [false, []]);
    assert.deepEqual([String(await body.next()), String(await body.next())], ['a', 'b']);
  });

  test('that is long is not read as a whole to see whether its client is there', async () => {
    const client = new SendingClient(
      Array.from({ length: 9 }, () => 'x'.repeat(1_048_576)),
      100_000_000,
      true,
    );
    const body = new UploadBody(client.exchange, 100_000_000);
    await body.lookForClient(SLICES);
    assert.deepEqual([body.hasLeft, client.pieces.length, client.isHeld], [false, 5, true]);
  });
});
