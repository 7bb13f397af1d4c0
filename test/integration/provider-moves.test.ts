// How providers are found and followed, over our own client and over undici: names that are looked up with a name
// server that moves them, fails and hangs, several addresses of which some do not answer, and connections that are
// lent for ten minutes at most.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import type { Provider } from '../../src/domain/models/provider.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import { providerCredential } from '../../src/upstream/credential.ts';
import { ProviderCalls } from '../../src/upstream/providers.ts';
import { NameServer } from '../support/name-server.ts';
import { HeldClock } from '../support/upstream-calls.ts';

const MINUTE_MS = 60_000;
const PLACES = ['127.0.0.1', '127.0.0.2'] as const;
/** Nobody answers there, ever (RFC 5737). */
const BLACK_HOLE = '192.0.2.1';

interface Place {
  readonly server: Server;
  readonly sockets: Set<Socket>;
}

for (const client of ['own', 'undici'] as const) {
  describe(`a provider that moves, over ${client}`, () => {
    const places: Place[] = [];
    const clock = new HeldClock();
    let names: NameServer;
    let calls: ProviderCalls;
    let provider: Provider;
    let keeps = false;

    before(async () => {
      let port = 0;
      for (const address of PLACES) {
        const sockets = new Set<Socket>();
        const server = createServer((_, response) => {
          response.writeHead(200, keeps ? {} : { connection: 'close' }).end(address);
        });
        server.on('connection', (socket) => sockets.add(socket));
        server.keepAliveTimeout = 60_000;
        server.listen(port, address);
        await once(server, 'listening');
        port = (server.address() as AddressInfo).port;
        places.push({ server, sockets });
      }
      const baseUrl = `http://provider.test:${port}`;
      provider = { id: 'p', baseUrl, apiKey: 'k', auth: 'bearer', onDisconnect: 'cancel' };
    });
    after(() => {
      for (const { server, sockets } of places) {
        server.close();
        for (const socket of sockets) socket.destroy();
      }
    });
    beforeEach(async () => {
      names = await NameServer.start();
      names.addresses = [PLACES[0]];
      keeps = false;
      clock.timeMs = 1_000_000;
      calls = new ProviderCalls(new MetricsRegistry(), clock, { client, resolve: names.resolve });
    });
    afterEach(async () => {
      await calls.close();
      await names.close();
    });

    /** The place that has answered, or why none has. */
    function call(): Promise<string> {
      const { promise, resolve } = Promise.withResolvers<string>();
      let body = '';
      const request = {
        method: 'GET',
        api: 'verify',
        path: '/v1/models',
        query: '',
        providerModel: '',
        streamed: false,
        credential: providerCredential(provider),
        headers: [],
        body: null,
      } as const;
      calls.call(provider, request, {
        onReplyStart: () => undefined,
        onReplyData: (chunk) => {
          body += chunk.toString();
        },
        onReplyPause: () => undefined,
        onReplyEnd: () => resolve(body),
        onKeyRefused: () => resolve('key_refused'),
        onReplyFault: (fault) => resolve(fault),
      });
      return promise;
    }

    test('is looked up once in five seconds, and then found where it is', async () => {
      for (let count = 0; count < 5; count += 1) assert.equal(await call(), PLACES[0]);
      assert.equal(names.questions, 1);
      names.addresses = [PLACES[1]];
      clock.timeMs += 4_999;
      assert.equal(await call(), PLACES[0]);
      clock.timeMs += 1;
      assert.equal(await call(), PLACES[1]);
      assert.equal(names.questions, 2);
    });

    test('alternates with every answer: for five seconds all calls go where the last one said', async () => {
      names.turns = PLACES.map((place) => [place]);
      const windows = 12;
      for (let window = 0; window < windows; window += 1) {
        const expected = PLACES[window % 2];
        for (const offsetMs of [0, 1, 2_500, 4_999]) {
          clock.timeMs = 1_000_000 + window * 5_000 + offsetMs;
          assert.deepEqual(await Promise.all([call(), call(), call()]), [expected, expected, expected], `${window}`);
        }
      }
      assert.equal(names.questions, windows);
      // And the last answer holds where there is no other one.
      names.mode = 'fails';
      clock.timeMs += 9 * MINUTE_MS;
      assert.equal(await call(), PLACES[(windows - 1) % 2]);
    });

    test('is found for ten minutes where the name server fails, and not after', async () => {
      assert.equal(await call(), PLACES[0]);
      names.mode = 'fails';
      for (const minutes of [1, 5, 9]) {
        clock.timeMs = 1_000_000 + minutes * MINUTE_MS;
        assert.equal(await call(), PLACES[0], `${minutes}`);
      }
      clock.timeMs = 1_000_000 + 10 * MINUTE_MS;
      assert.equal(await call(), 'connect_failed');
      names.mode = 'answers';
      clock.timeMs += 5_000;
      assert.equal(await call(), PLACES[0]);
    });

    test('is found where the name server hangs, and its calls wait for it once', async () => {
      assert.equal(await call(), PLACES[0]);
      names.mode = 'hangs';
      clock.timeMs += MINUTE_MS;
      assert.deepEqual(await Promise.all([call(), call(), call()]), [PLACES[0], PLACES[0], PLACES[0]]);
      assert.equal(await call(), PLACES[0]);
      assert.equal(names.questions, 2);
    });

    for (const [what, first] of [
      ['that refuses', '::1'],
      ['that says nothing', BLACK_HOLE],
    ] as const) {
      test(`is found behind an address ${what}`, async () => {
        names.addresses = [first, PLACES[0]];
        assert.equal(await call(), PLACES[0]);
      });
    }

    test('a connection in steady use is lent for ten minutes, and then the provider is where its name says', async () => {
      keeps = true;
      const opened = places.map(({ sockets }) => sockets.size);
      assert.equal(await call(), PLACES[0]);
      names.addresses = [PLACES[1]];
      for (let seconds = 3; seconds < 600; seconds += 3) {
        clock.timeMs = 1_000_000 + seconds * 1_000;
        calls.trim();
        assert.equal(await call(), PLACES[0], `${seconds}`);
      }
      clock.timeMs = 1_000_000 + 600_000;
      assert.equal(await call(), PLACES[1]);
      assert.deepEqual(
        places.map(({ sockets }, index) => sockets.size - (opened[index] ?? 0)),
        [1, 1],
      );
    });
  });
}
