// Replies whose heads are odd and legal, that cannot have a body, or of which it is not sure where they end, over both
// fronts and both clients: what the client gets of each, and that its connection goes on with the next request.

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

/** What the provider answers without a body, and the length that the client is told. */
const WITHOUT_BODY: Readonly<Record<string, readonly [reply: string, length: string | undefined]>> = {
  'a 204': ['HTTP/1.1 204 No Content\r\n\r\n', undefined],
  'a 204 that says a length all the same': ['HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n', undefined],
  'a 304 with the length of what is known': ['HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n', undefined],
  'a 205, which ends by its length': ['HTTP/1.1 205 Reset Content\r\ncontent-length: 0\r\n\r\n', '0'],
  'a 204 that says it is a stream': [`HTTP/1.1 204 No Content\r\n${STREAM}\r\n`, undefined],
  'a 304 that says it is a stream': [`HTTP/1.1 304 Not Modified\r\n${STREAM}\r\n`, undefined],
  'a 205 that says it is a stream': [`HTTP/1.1 205 Reset Content\r\n${STREAM}content-length: 0\r\n\r\n`, '0'],
  'a 200 without a byte': ['HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n', '0'],
};

const REPLY_BODY = '{"choices":[]}';
const OK = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n';
const LENGTH = `content-length: ${REPLY_BODY.length}\r\n`;
const CHUNKS = `transfer-encoding: chunked\r\n\r\n${REPLY_BODY.length.toString(16)}\r\n${REPLY_BODY}\r\n0\r\n`;
/** 60 KB, which is more than nginx takes by default, and than uWebSockets.js writes at once. */
const MANY = Array.from({ length: 500 }, (_, index) => `x-ratelimit-${index}: ${'y'.repeat(100)}\r\n`).join('');

/** undici takes it for the end of the connection. */
const CONTINUE = 'a 100 Continue that nobody asked for before it';
/** What of the reply's head the client gets, in small letters; null: it is refused with a 502. */
const ODD_HEADS: Readonly<Record<string, readonly [reply: string, head: string | null]>> = {
  'interim replies before it': [
    `HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n${OK}${LENGTH}\r\n${REPLY_BODY}`,
    '',
  ],
  [CONTINUE]: [`HTTP/1.1 100 Continue\r\n\r\n${OK}${LENGTH}\r\n${REPLY_BODY}`, ''],
  'hints before it': [`HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n${OK}${LENGTH}\r\n${REPLY_BODY}`, ''],
  'names in odd case': [
    `${OK}CONTENT-LENGTH: ${REPLY_BODY.length}\r\nX-rEQUEST-iD: Rr\r\n\r\n${REPLY_BODY}`,
    'x-request-id: rr\r\n',
  ],
  'a name twice': [
    `${OK}${LENGTH}x-ratelimit-a: 1\r\nx-ratelimit-a: 2\r\n\r\n${REPLY_BODY}`,
    'x-ratelimit-a: 1\r\nx-ratelimit-a: 2\r\n',
  ],
  'many long headers': [`${OK}${LENGTH}${MANY}\r\n${REPLY_BODY}`, MANY],
  'trailers, which end here': [`${OK}trailer: x-request-id\r\n${CHUNKS}x-request-id: r\r\n\r\n`, ''],
  'a length twice, alike': [`${OK}${LENGTH}${LENGTH}\r\n${REPLY_BODY}`, null],
  'a length that is a list': [
    `${OK}content-length: ${REPLY_BODY.length}, ${REPLY_BODY.length}\r\n\r\n${REPLY_BODY}`,
    null,
  ],
  'a length beside chunks': [`${OK}${LENGTH}${CHUNKS}\r\n`, null],
  'a folded line': [`${OK}${LENGTH}x-request-id: a\r\n b\r\n\r\n${REPLY_BODY}`, null],
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

      for (const [what, [text, length]] of Object.entries(WITHOUT_BODY)) {
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

      for (const [what, [text, head]] of Object.entries(ODD_HEADS))
        test(what, async () => {
          reply = text;
          const raw = await RawClient.open(plane.port);
          for (let times = 0; times < 2; times++) {
            raw.received = '';
            await raw.write(WITH_LENGTH);
            if (head === null || (what === CONTINUE && client === 'undici')) {
              await raw.until('a refusal', ({ received }) => received.includes('upstream_unreachable'));
              assert.match(raw.received, /^HTTP\/1\.1 502 /);
              continue;
            }
            await raw.until('all of the reply', ({ received }) => /\r\n\r\n[^]*\{"choices":\[\]\}/.test(received));
            const lines = raw.received.toLowerCase();
            assert.match(lines, /^http\/1\.1 200 ok\r\n/);
            assert.ok(lines.includes(head));
            assert.doesNotMatch(lines, /\r\n(link|trailer): |\r\nx-request-id: r\r\n/);
          }
          raw.leave();
        });
    });
  }
