// Replies whose heads are odd and legal, or of which it is not sure where they end, over both fronts and both clients:
// what the client gets of each, and that the next request on its connection is answered, too.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { chooseFront } from '../../src/http/fronts/choose-front.ts';
import { HTTP_FRONT } from '../support/http-front-name.ts';
import { modelServedBy, PlaneInProcess, providerAt } from '../support/plane-in-process.ts';
import { principalOf } from '../support/principals.ts';
import { RawClient } from '../support/raw-client.ts';
import { type RawProvider, startRawProvider } from '../support/raw-provider.ts';

const REQUEST_BODY = '{"model":"m","messages":[]}';
const REQUEST = [
  'POST /v1/chat/completions HTTP/1.1',
  'host: gate.test',
  'authorization: Bearer key',
  'content-type: application/json',
  `content-length: ${REQUEST_BODY.length}`,
  '',
  REQUEST_BODY,
].join('\r\n');

const BODY = '{"choices":[]}';
const OK = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n';
const LENGTH = `content-length: ${BODY.length}\r\n`;
const CHUNKS = `transfer-encoding: chunked\r\n\r\n${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n`;
/** 60 KB, which is more than nginx takes by default, and than uWebSockets.js writes at once. */
const MANY = Array.from({ length: 500 }, (_, index) => `x-ratelimit-${index}: ${'y'.repeat(100)}\r\n`).join('');

/** What of the reply's head the client gets, in small letters; null: the reply is refused, and so a 502. */
const REPLIES: Readonly<Record<string, readonly [reply: string, head: string | null]>> = {
  'interim replies before it': [
    `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n${OK}${LENGTH}\r\n${BODY}`,
    '',
  ],
  'hints before it': [`HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n${OK}${LENGTH}\r\n${BODY}`, ''],
  'names in odd case': [
    `${OK}CONTENT-LENGTH: ${BODY.length}\r\nX-rEQUEST-iD: Rr\r\n\r\n${BODY}`,
    'x-request-id: rr\r\n',
  ],
  'a name twice': [
    `${OK}${LENGTH}x-ratelimit-a: 1\r\nx-ratelimit-a: 2\r\n\r\n${BODY}`,
    'x-ratelimit-a: 1\r\nx-ratelimit-a: 2\r\n',
  ],
  'many long headers': [`${OK}${LENGTH}${MANY}\r\n${BODY}`, MANY],
  'trailers, which end here': [`${OK}trailer: x-request-id\r\n${CHUNKS}x-request-id: r\r\n\r\n`, ''],
  'a length twice, alike': [`${OK}${LENGTH}${LENGTH}\r\n${BODY}`, null],
  'a length that is a list': [`${OK}content-length: ${BODY.length}, ${BODY.length}\r\n\r\n${BODY}`, null],
  'a length beside chunks': [`${OK}${LENGTH}${CHUNKS}\r\n`, null],
  'a folded line': [`${OK}${LENGTH}x-request-id: a\r\n b\r\n\r\n${BODY}`, null],
};

for (const front of HTTP_FRONT === 'uws' ? (['uws', 'node'] as const) : (['node'] as const))
  for (const client of ['own', 'undici'] as const) {
    describe(`over the front ${front} and the client ${client}, a reply with`, () => {
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

      for (const [what, [text, head]] of Object.entries(REPLIES))
        test(what, async () => {
          reply = text;
          const raw = await RawClient.open(plane.port);
          for (let times = 0; times < 2; times++) {
            raw.received = '';
            await raw.write(REQUEST);
            if (head === null) {
              await raw.until('a refusal', ({ received }) => received.includes('upstream_unreachable'));
              assert.match(raw.received, /^HTTP\/1\.1 502 /);
              continue;
            }
            await raw.until('all of the reply', ({ received }) => /\r\n\r\n[^]*\{"choices":\[\]\}/.test(received));
            const lines = raw.received.toLowerCase();
            assert.match(lines, /^http\/1\.1 200 ok\r\n/);
            assert.ok(lines.includes(head));
            assert.doesNotMatch(lines, /\r\n(link|trailer):|x-request-id: r\r\n$/);
          }
          raw.leave();
        });
    });
  }
