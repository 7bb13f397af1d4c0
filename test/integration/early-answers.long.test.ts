// An answer that goes out before the request's body is in: real clients read it, although they are still sending, and
// nothing behind it on that connection reaches a handler unless the whole body was read.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import type { Exchange } from '../../src/http/exchange.ts';
import { httpCall } from '../support/http-call.ts';
import { type HttpFront, startHttpFront } from '../support/http-front.ts';
import {
  BODY_LIMIT_BYTES,
  bodyOf,
  COLD_KEY,
  digestOf,
  headOf,
  INTAKE_PATH,
  type IntakeFront,
  REFUSED_KEY,
  startIntakeFront,
  WARM_KEY,
} from '../support/intake-front.ts';
import { RawClient } from '../support/raw-client.ts';
import { finalStatuses } from '../support/raw-connection.ts';
import { waitFor } from '../support/waiting.ts';

const run = promisify(execFile);

interface Upload {
  readonly url: string;
  /** With a Transfer-Encoding instead of a length. */
  readonly isChunked: boolean;
  readonly key: string;
  readonly type: string;
  /** A file with the body. */
  readonly path: string;
  readonly body: Buffer;
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

const URLLIB = `
import sys, urllib.request, urllib.error
url, key, type, path, chunked = sys.argv[1:]
data = open(path, 'rb') if chunked else open(path, 'rb').read()
request = urllib.request.Request(url, data=data, headers={'Authorization': 'Bearer ' + key, 'Content-Type': type})
try:
    answer = urllib.request.urlopen(request)
except urllib.error.HTTPError as error:
    answer = error
sys.stdout.write(str(answer.status) + ' ' + answer.read().decode())
`;
const REQUESTS = `
import sys, requests
url, key, type, path, chunked = sys.argv[1:]
body = open(path, 'rb').read()
data = (body[at:at + 65536] for at in range(0, len(body), 65536)) if chunked else body
answer = requests.post(url, data=data, headers={'Authorization': 'Bearer ' + key, 'Content-Type': type})
sys.stdout.write(str(answer.status_code) + ' ' + answer.text)
`;

const python =
  (program: string) =>
  async ({ url, key, type, path, isChunked }: Upload): Promise<Answer> => {
    const { stdout } = await run('python3', ['-c', program, url, key, type, path, isChunked ? 'chunked' : '']);
    return { status: Number(stdout.slice(0, 3)), text: stdout.slice(4) };
  };

const CLIENTS: Readonly<
  Record<
    string,
    { readonly probe?: readonly [string, ...string[]]; readonly post: (upload: Upload) => Promise<Answer> }
  >
> = {
  'Node fetch': {
    post: async ({ url, key, type, body, isChunked }) => {
      // oxlint-disable-next-line no-restricted-globals -- this is a client under test, not a call to a provider
      const answer = await fetch(url, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': type },
        body: isChunked ? new Blob([new Uint8Array(body)]).stream() : new Uint8Array(body),
        ...(isChunked ? { duplex: 'half' } : {}),
      });
      return { status: answer.status, text: await answer.text() };
    },
  },
  'node:http': {
    post: async ({ url, key, type, body, isChunked }) => {
      const headers = { authorization: `Bearer ${key}`, 'content-type': type };
      const answer = await httpCall(url, { headers, body, isChunked });
      return { status: answer.status, text: answer.body.toString() };
    },
  },
  'Python urllib': { probe: ['python3', '-c', 'import urllib.request'], post: python(URLLIB) },
  'Python requests': { probe: ['python3', '-c', 'import requests'], post: python(REQUESTS) },
  curl: {
    probe: ['curl', '--version'],
    post: async ({ url, key, type, path, isChunked }) => {
      const headers = ['-H', `authorization: Bearer ${key}`, '-H', `content-type: ${type}`];
      if (isChunked) headers.push('-H', 'transfer-encoding: chunked');
      const { stdout } = await run('curl', ['-sS', '-w', '%{http_code}', ...headers, '--data-binary', `@${path}`, url]);
      return { status: Number(stdout.slice(-3)), text: stdout.slice(0, -3) };
    },
  },
};

const JSON_TYPE = 'application/json';
const REFUSALS: readonly {
  readonly name: string;
  readonly status: number;
  readonly path?: string;
  readonly key: string;
  readonly type?: string;
  readonly isChunked?: true;
  readonly bytes: number;
}[] = [
  { name: 'a body over the limit', status: 413, key: WARM_KEY, bytes: BODY_LIMIT_BYTES + 500_000 },
  { name: 'a key that is refused at once', status: 401, key: REFUSED_KEY, bytes: 8_000_000 },
  { name: 'a key that is looked up and unknown', status: 401, key: COLD_KEY, bytes: 8_000_000 },
  { name: 'another media type', status: 415, key: WARM_KEY, type: 'text/plain', bytes: 8_000_000 },
  { name: 'no memory for it', status: 503, key: WARM_KEY, bytes: 8_000_000 },
  { name: 'a body in chunks, no memory for it', status: 503, key: WARM_KEY, isChunked: true, bytes: 8_000_000 },
  { name: 'a body in chunks, refused at once', status: 401, key: REFUSED_KEY, isChunked: true, bytes: 8_000_000 },
  { name: 'a body in chunks, looked up', status: 401, key: COLD_KEY, isChunked: true, bytes: 8_000_000 },
  { name: 'an unknown path', status: 404, path: '/v1/nothing', key: WARM_KEY, bytes: 8_000_000 },
];

describe('a client that is answered while it sends', () => {
  let front: IntakeFront;
  let lookingUp: NodeJS.Timeout;
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-bodies-'));
  /** By length; the clients share them, because they are long to make. */
  const bodies = new Map<number, { readonly path: string; readonly body: Buffer }>();

  before(async () => {
    for (const { bytes } of REFUSALS) {
      if (bodies.has(bytes)) continue;
      const made = { path: join(directory, String(bytes)), body: bodyOf(bytes) };
      writeFileSync(made.path, made.body);
      bodies.set(bytes, made);
    }
    front = await startIntakeFront({ lentBytesMax: 4_000_000 });
    lookingUp = setInterval(() => front.answerLookUps(false), 20);
  });

  after(async () => {
    clearInterval(lookingUp);
    await front?.stop();
    rmSync(directory, { recursive: true });
  });

  for (const [client, { probe, post }] of Object.entries(CLIENTS)) {
    test(`${client} reads every refusal`, async (context) => {
      if (probe !== undefined && !(await isThere(probe))) return context.skip(`${probe.join(' ')} does not run here`);
      for (const refusal of REFUSALS) {
        const made = bodies.get(refusal.bytes);
        assert.ok(made !== undefined);
        const answer = await post({
          url: `${front.url}${refusal.path ?? INTAKE_PATH}`,
          key: refusal.key,
          type: refusal.type ?? JSON_TYPE,
          isChunked: refusal.isChunked ?? false,
          ...made,
        });
        assert.equal(answer.status, refusal.status, `${refusal.name}: ${answer.text}`);
        assert.ok('error' in (JSON.parse(answer.text) as object), refusal.name);
      }
    });
  }
});

async function isThere([command, ...args]: readonly [string, ...string[]]): Promise<boolean> {
  return run(command, args).then(
    () => true,
    () => false,
  );
}

describe('what follows an early answer on its connection', () => {
  let front: IntakeFront;
  before(async () => {
    front = await startIntakeFront({ limits: { droppedBytesMax: 1 << 20 } });
  });
  after(() => front?.stop());

  const smuggled = bodyOf(60, 'smuggled');
  const SMUGGLED = headOf(WARM_KEY, smuggled.length) + smuggled.toString();

  test('the refusal goes out when it is known, and what follows is not looked at', async () => {
    const client = await RawClient.open(front.port);
    await client.write(headOf(COLD_KEY, 100_000) + SMUGGLED);
    await waitFor(
      'the look-up',
      () => front.waiting,
      (waiting) => waiting === 1,
    );
    assert.equal(client.received, '');
    front.answerLookUps(false);
    await client.untilAnswered();
    assert.deepEqual(finalStatuses(client.received), [401]);
    assert.match(client.received, /\r\nconnection: close\r\n/i);
    assert.equal(front.buffers.lent, 0);
    await client.write(Buffer.alloc(100_000 - SMUGGLED.length, 'x'));
    await client.write(SMUGGLED);
    await client.untilClosed();
    assert.deepEqual(finalStatuses(client.received), [401]);
    assert.deepEqual(front.received, []);
  });

  for (const [name, key] of [
    ['at once', REFUSED_KEY],
    ['after a look-up', COLD_KEY],
  ] as const) {
    test(`a request in the packet that ends a refused body reaches no handler: refused ${name}`, async () => {
      const client = await RawClient.open(front.port);
      const refused = bodyOf(100_000);
      await client.write(headOf(key, refused.length));
      if (key === COLD_KEY) {
        await waitFor(
          'the look-up',
          () => front.waiting,
          (waiting) => waiting === 1,
        );
        front.answerLookUps(false);
      }
      await client.untilAnswered();
      await client.write(Buffer.concat([refused, Buffer.from(SMUGGLED)]));
      await client.untilClosed();
      assert.deepEqual(finalStatuses(client.received), [401]);
      assert.deepEqual(front.received, []);
    });
  }

  test('a refused request that came whole leaves the connection to the next', async () => {
    const client = await RawClient.open(front.port);
    const body = bodyOf(500);
    await client.write(headOf(REFUSED_KEY, body.length) + body.toString());
    await client.untilAnswered();
    await client.write(headOf(WARM_KEY, body.length) + body.toString());
    await client.until('the second answer', ({ received }) => received.includes(digestOf(body)));
    assert.deepEqual(finalStatuses(client.received), [401, 200]);
    client.leave();
  });

  test('an endless body is read for so many bytes and no more', async () => {
    const client = await RawClient.open(front.port);
    await client.write(headOf(REFUSED_KEY, 1e12));
    await client.untilAnswered();
    const piece = Buffer.alloc(1 << 18);
    for (let pieces = 0; pieces < 1000 && !client.isClosed; pieces += 1) await client.write(piece);
    await client.untilClosed();
    assert.equal(front.server.arrivingBodies, 0);
  });

  test('a body that stops is waited for so long and no longer', async () => {
    const client = await RawClient.open(front.port);
    await client.write(headOf(REFUSED_KEY, 10_000));
    await client.untilAnswered();
    front.server.tick(1000);
    assert.equal(front.server.arrivingBodies, 1);
    front.server.tick(31_000);
    assert.equal(front.server.arrivingBodies, 0);
    await client.untilClosed();
  });

  test('a client that leaves while its body is dropped is forgotten', async () => {
    const client = await RawClient.open(front.port);
    await client.write(headOf(REFUSED_KEY, 10_000));
    await client.untilAnswered();
    client.leave();
    await waitFor(
      'nothing to arrive',
      () => front.server.arrivingBodies,
      (bodies) => bodies === 0,
    );
  });
});

describe('a refused request whose framing cannot be trusted', () => {
  let front: IntakeFront;
  before(async () => {
    front = await startIntakeFront({ limits: { droppedBytesMax: 1 << 20 } });
  });
  after(() => front?.stop());

  const PIECE = bodyOf(1000).toString();
  const chunkOf = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;
  const IN_CHUNKS = {
    name: 'in a coding beside chunks',
    status: 411,
    head: headOf(WARM_KEY, 1).replace('Content-Length: 1', 'Transfer-Encoding: gzip, chunked'),
    piece: chunkOf(PIECE),
    end: '0\r\n\r\n',
  };
  const REPEATED = {
    name: 'with a header twice',
    status: 400,
    head: headOf(WARM_KEY, 5001).replace('Host:', 'Host: another\r\nHost:'),
    piece: PIECE,
    end: '.',
  };

  /** The server has done what it had to do on other connections before. */
  const serveAnother = (): Promise<unknown> => httpCall(`${front.url}/v1/nothing`);
  const bodiesAre = (count: number): Promise<unknown> =>
    waitFor(
      `${count} bodies that arrive`,
      () => front.server.arrivingBodies,
      (bodies) => bodies === count,
    );
  const untilSettled = (): Promise<unknown> => bodiesAre(0);

  for (const { name, status, head, piece, end } of [IN_CHUNKS, REPEATED]) {
    test(`whoever still sends it ${name} reads why`, async () => {
      const client = await RawClient.open(front.port);
      await client.write(head);
      for (let pieces = 0; pieces < 5; pieces += 1) {
        await serveAnother();
        assert.ok(!client.isClosed, 'who is cut off while sending may not read the answer');
        await client.write(piece);
      }
      await client.write(end);
      await client.untilClosed();
      assert.deepEqual(finalStatuses(client.received), [status]);
      assert.match(client.received, /\r\nconnection: close\r\n/i);
      await untilSettled();
    });

    test(`who stops sending it ${name} is answered after a while`, async () => {
      const client = await RawClient.open(front.port);
      await client.write(head + piece);
      await bodiesAre(1);
      front.server.tick(1000);
      await serveAnother();
      assert.equal(client.received, '');
      front.server.tick(6000);
      await client.untilClosed();
      assert.deepEqual(finalStatuses(client.received), [status]);
      await untilSettled();
    });

    test(`who leaves while sending it ${name} is forgotten`, async () => {
      const client = await RawClient.open(front.port);
      await client.write(head + piece);
      await bodiesAre(1);
      client.leave();
      await untilSettled();
    });

    test(`a request in the packet that ends it ${name} reaches no handler`, async () => {
      const client = await RawClient.open(front.port);
      const smuggled = bodyOf(60, 'smuggled');
      await client.write(head + piece);
      await serveAnother();
      await client.write(piece.repeat(4) + end + headOf(WARM_KEY, smuggled.length) + smuggled.toString());
      await client.untilClosed();
      assert.ok(finalStatuses(client.received).every((answered) => answered === status));
      assert.deepEqual(front.received, []);
    });
  }

  test('it is read for so many bytes and no more', async () => {
    const client = await RawClient.open(front.port);
    await client.write(IN_CHUNKS.head);
    const pieces = IN_CHUNKS.piece.repeat(100);
    for (let round = 0; round < 1000 && !client.isClosed; round += 1) await client.write(pieces);
    await client.untilClosed();
    await untilSettled();
  });

  test('chunks that are none get one response, whoever writes it', async () => {
    const client = await RawClient.open(front.port);
    await client.write(IN_CHUNKS.head + IN_CHUNKS.piece);
    await serveAnother();
    await client.write('none\r\n');
    await client.untilClosed();
    assert.equal(finalStatuses(client.received).length, 1);
    await untilSettled();
  });
});

describe('a body that nobody asked for', () => {
  let front: HttpFront;
  const waiting: Exchange[] = [];
  let handled = 0;
  before(async () => {
    const handle = (exchange: Exchange): void => {
      handled += 1;
      if (exchange.query === 'wait') waiting.push(exchange);
      else exchange.answerJson(200, '{"a":1}');
    };
    front = await startHttpFront([{ method: 'GET', path: '/v1/models', envelope: 'platform', handle }]);
  });
  after(() => front?.stop());

  test('a GET with a small one is answered, and so is the next request', async () => {
    const client = await RawClient.open(front.port);
    for (const _ of [1, 2]) {
      client.received = '';
      await client.write(`${headOf('k', 5, 'GET', '/v1/models')}hello`);
      await client.until('the answer', ({ received }) => received.endsWith('{"a":1}'));
    }
    client.leave();
  });

  test(
    'a GET with an endless one is answered and its connection closed, and what is in it reaches no ' + 'handler',
    async () => {
      const before = handled;
      const client = await RawClient.open(front.port);
      await client.write(headOf('k', 100_000, 'GET', '/v1/models') + headOf('k', 0, 'GET', '/v1/models'));
      await client.untilAnswered();
      assert.deepEqual(finalStatuses(client.received), [200]);
      assert.match(client.received, /\r\nconnection: close\r\n/i);
      await client.write('x'.repeat(100_000));
      await client.untilClosed();
      assert.equal(handled, before + 1);
    },
  );

  test('while a GET waits for its answer its body is not read', async () => {
    const client = await RawClient.open(front.port);
    await client.write(headOf('k', 1e12, 'GET', '/v1/models?wait'));
    await waitFor(
      'the request',
      () => waiting.length,
      (count) => count === 1,
    );
    let taken = false;
    void client.write(Buffer.alloc(1 << 26)).then(() => {
      taken = true;
    });
    for (let round = 0; round < 5; round += 1) assert.equal((await httpCall(`${front.url}/v1/models`)).status, 200);
    assert.equal(taken, false);
    waiting.pop()?.answerJson(200, '{"a":2}');
    await client.until('the answer', ({ received }) => received.includes('{"a":2}'));
    client.leave();
  });

  test('a HEAD with one is answered without a body', async () => {
    const client = await RawClient.open(front.port);
    await client.write(headOf('k', 5000, 'HEAD', '/v1/models'));
    await client.untilAnswered();
    assert.match(client.received, /^HTTP\/1\.1 405 [^]*\r\n\r\n$/);
    await client.write('x'.repeat(5000));
    await client.untilClosed();
    assert.match(client.received, /^HTTP\/1\.1 405 [^]*\r\n\r\n$/);
  });
});
