// A provider's reply that cannot have a body, over both fronts and both clients: its head says no length, no byte
// follows it, and the connection goes on with the next request.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { chooseFront } from '../../src/http/fronts/choose-front.ts';
import { HTTP_FRONT } from '../support/http-front-name.ts';
import { modelServedBy, PlaneInProcess, providerAt } from '../support/plane-in-process.ts';
import { principalOf } from '../support/principals.ts';
import { RawClient } from '../support/raw-client.ts';
import { type RawProvider, startRawProvider } from '../support/raw-provider.ts';

const BODY = '{"model":"m","messages":[]}';
const HEAD = [
  'POST /v1/chat/completions HTTP/1.1',
  'host: gate.test',
  'authorization: Bearer key',
  'content-type: application/json',
];
const WITH_LENGTH = [...HEAD, `content-length: ${BODY.length}`, '', BODY].join('\r\n');
const IN_CHUNKS = [...HEAD, 'transfer-encoding: chunked', '', BODY.length.toString(16), BODY, '0', '', ''].join('\r\n');

const STREAM = 'content-type: text/event-stream\r\n';

/** What the provider answers, and the length that the client is told. */
const REPLIES: Readonly<Record<string, readonly [reply: string, length: string | undefined]>> = {
  'a 204': ['HTTP/1.1 204 No Content\r\n\r\n', undefined],
  'a 204 that says a length all the same': ['HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n', undefined],
  'a 304 with the length of what is known': ['HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n', undefined],
  'a 205, which ends by its length': ['HTTP/1.1 205 Reset Content\r\ncontent-length: 0\r\n\r\n', '0'],
  'a 204 that says it is a stream': [`HTTP/1.1 204 No Content\r\n${STREAM}\r\n`, undefined],
  'a 304 that says it is a stream': [`HTTP/1.1 304 Not Modified\r\n${STREAM}\r\n`, undefined],
  'a 205 that says it is a stream': [`HTTP/1.1 205 Reset Content\r\n${STREAM}content-length: 0\r\n\r\n`, '0'],
  'a 200 without a byte': ['HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n', '0'],
};

for (const front of HTTP_FRONT === 'uws' ? (['uws', 'node'] as const) : (['node'] as const))
  for (const client of ['own', 'undici'] as const) {
    describe(`over the front ${front} and the client ${client}`, () => {
      let reply = '';
      let provider: RawProvider;
      let plane: PlaneInProcess;

      before(async () => {
        provider = await startRawProvider((socket) => void socket.write(reply));
        const url = `http://127.0.0.1:${provider.port}`;
        plane = await PlaneInProcess.start({
          providerUrl: url,
          principals: new Map([['key', principalOf('acme')]]),
          models: [modelServedBy('m', providerAt(url))],
          front: (await chooseFront(front)).front,
          client,
        });
      });
      after(async () => {
        await plane?.stop();
        await provider?.close();
      });

      for (const [what, [text, length]] of Object.entries(REPLIES)) {
        test(what, async () => {
          reply = text;
          const raw = await RawClient.open(plane.port);
          for (const request of [WITH_LENGTH, WITH_LENGTH, IN_CHUNKS]) {
            raw.received = '';
            await raw.write(request);
            await raw.untilAnswered();
            const { received } = raw;
            assert.equal(received.split(' ')[1], text.split(' ')[1], received);
            assert.equal(/\r\ncontent-length: (\d+)/i.exec(received)?.[1], length, received);
            assert.doesNotMatch(received, /\r\ntransfer-encoding:/i);
          }
          assert.match(raw.received, /\r\nconnection: close\r\n/i);
          assert.ok(raw.received.endsWith('\r\n\r\n'), 'no byte behind the head');
          raw.leave();
        });
      }
    });
  }
