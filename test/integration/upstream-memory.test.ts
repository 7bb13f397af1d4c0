// Memory that a provider's socket may still be reading: it has a holder until the socket's write has called back,
// whatever became of the call, and nothing of what lies there afterwards is ever sent.
//
// A process of its own: it changes whom the process trusts of TLS.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { createServer as createTlsServer, getCACertificates, setDefaultCACertificates } from 'node:tls';
import { BufferPool, type PooledBuffer } from '../../src/platform/buffer-pool.ts';
import type { UpstreamOrigin } from '../../src/upstream/origin.ts';
import { callTo, HeldClock, originAt, type ToldCall } from '../support/upstream-calls.ts';
import { pause, waitFor } from '../support/waiting.ts';

/** More than the system takes for a peer that reads nothing. */
const BODY_BYTES = 9_000_000;
const OWN = 'A';
const ANOTHERS = 'Z';
const HEAD = 'HTTP/1.1 503 Busy\r\ncontent-length: 2\r\n\r\n';
const SCHEMES = ['http', 'https'] as const;
type Scheme = (typeof SCHEMES)[number];

/**
 * Puts another tenant's body into a buffer as soon as nobody holds it: the earliest moment at which one might lie
 * there.
 */
class ReusedPool extends BufferPool {
  override release(pooled: PooledBuffer): void {
    super.release(pooled);
    if (this.lent === 0) pooled.buffer.fill(ANOTHERS);
  }
}

/** What becomes of a call while its request is not wholly written, and what the provider does for it. */
const ENDS: Readonly<
  Record<string, { readonly reply: string; readonly act?: (told: ToldCall, origin: UpstreamOrigin) => void }>
> = {
  'a refusal whose body never comes, after which another provider serves': {
    reply: HEAD,
    act: (told) => told.call.discard(),
  },
  'a whole refusal, after which another provider serves': { reply: `${HEAD}{}`, act: (told) => told.call.discard() },
  'a whole reply, long before the request is': { reply: `${HEAD}{}` },
  'an abort in the middle of the reply': { reply: HEAD, act: (told) => told.call.abort() },
  'a reply that cannot be read': { reply: 'SSH-2.0\r\n\r\n' },
  'a reply that stalls': {
    reply: HEAD,
    act: (_, origin) => {
      clock.timeMs += 90_001;
      origin.trim();
    },
  },
};

const clock = new HeldClock();

describe('memory that a socket sends from', () => {
  const providers = new Map<Scheme, SlowProvider>();

  before(async () => {
    setDefaultCACertificates([...getCACertificates('bundled'), pem('certificate')]);
    for (const scheme of SCHEMES) providers.set(scheme, await startSlowProvider(scheme));
  });

  after(async () => {
    for (const provider of providers.values()) await provider.close();
  });

  for (const scheme of SCHEMES) {
    for (const [name, { reply, act }] of Object.entries(ENDS)) {
      test(`${scheme}: ${name}`, async () => {
        const provider = providers.get(scheme) as SlowProvider;
        const origin = originAt(provider.url, clock);
        const pool = new ReusedPool();
        const pooled = pool.acquire(BODY_BYTES);
        pooled.buffer.fill(OWN);
        const body = { pieces: [pooled.buffer.subarray(0, BODY_BYTES)], pooled };
        provider.reply = reply;
        const told = callTo(origin, { body });
        if (act !== undefined) {
          await told.started;
          act(told, origin);
        } else {
          await told.ended;
        }
        // The request has ended elsewhere: its own hold is over.
        pool.release(pooled);
        await pause(20);
        const received = provider.readOn();
        const text = await received;
        await waitFor(
          'nobody to hold it',
          () => {
            // A reply that ended early leaves its connection a little time for the rest.
            clock.timeMs += 1_000;
            origin.trim();
            return pool.lent;
          },
          (lent) => lent === 0,
        );
        assert.ok(text.includes(OWN.repeat(100)));
        assert.ok(!text.includes(ANOTHERS), 'bytes of another tenant were sent');
        assert.equal(origin.openCalls, 0);
      });
    }

    test(`${scheme}: an abort before the connection is there holds nothing`, async () => {
      const origin = originAt((providers.get(scheme) as SlowProvider).url, clock);
      const pool = new BufferPool();
      const pooled = pool.acquire(1_000);
      const told = callTo(origin, {
        body: { pieces: [pooled.buffer.subarray(0, 1_000)], pooled },
      });
      assert.equal(pool.lent, 1);
      pool.release(pooled);
      assert.equal(pool.lent, 1, 'the connection holds what it will send');
      told.call.abort();
      assert.equal(pool.lent, 0);
    });
  }
});

const pem = (name: string): string =>
  readFileSync(new URL(`../support/tls/localhost-${name}.pem`, import.meta.url), 'latin1');

interface SlowProvider {
  readonly url: string;
  /** What it answers to the first bytes of a connection; it reads no more of them until `readOn`. */
  reply: string;
  /** All that the last connection brings. */
  readOn(): Promise<string>;
  close(): Promise<void>;
}

async function startSlowProvider(scheme: Scheme): Promise<SlowProvider> {
  const connections: { readonly socket: Socket; readonly pieces: Buffer[]; ended: boolean }[] = [];
  const accept = (socket: Socket): void => {
    const connection = { socket, pieces: [] as Buffer[], ended: false };
    connections.push(connection);
    const end = (): void => {
      connection.ended = true;
    };
    socket.on('error', end).on('end', end).on('close', end);
    socket.on('data', (piece: Buffer) => {
      if (connection.pieces.push(piece) > 1) return;
      socket.pause();
      socket.write(provider.reply);
    });
  };
  const server =
    scheme === 'http' ? createServer(accept) : createTlsServer({ key: pem('key'), cert: pem('certificate') }, accept);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const provider: SlowProvider = {
    url: `${scheme}://localhost:${(server.address() as AddressInfo).port}`,
    reply: '',
    async readOn() {
      const connection = connections.at(-1);
      assert.ok(connection !== undefined);
      connection.socket.resume();
      const bytes = (): number => connection.pieces.reduce((sum, piece) => sum + piece.length, 0);
      await waitFor('the end of what was sent', () => connection.ended || bytes() >= BODY_BYTES, Boolean);
      return Buffer.concat(connection.pieces).toString('latin1');
    },
    async close() {
      for (const { socket } of connections) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return provider;
}
