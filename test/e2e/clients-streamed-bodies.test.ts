// Clients that send a body without knowing its length: fetch and undici with a stream, curl from its standard input,
// each with a whole and a streamed reply, and a refusal.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { request as undiciRequest } from 'undici';
import { type ClientInstallation, startClientInstallation } from '../support/client-installation.ts';
import { httpCall } from '../support/http-call.ts';
import { KEYS } from '../support/test-configuration.ts';

interface Sent {
  readonly url: string;
  readonly key: string;
  /** Of the body, in order. */
  readonly pieces: readonly string[];
}

interface Received {
  readonly status: number;
  readonly text: string;
}

const headersOf = (key: string) => ({ authorization: `Bearer ${key}`, 'content-type': 'application/json' });

const CLIENTS: Readonly<Record<string, (sent: Sent) => Promise<Received | null>>> = {
  fetch: async ({ url, key, pieces }) => {
    const body = ReadableStream.from(pieces.map((piece) => Buffer.from(piece)));
    // oxlint-disable-next-line no-restricted-globals -- this is a client under test, not a call to a provider
    const answer = await fetch(url, { method: 'POST', headers: headersOf(key), body, duplex: 'half' });
    return { status: answer.status, text: await answer.text() };
  },
  undici: async ({ url, key, pieces }) => {
    const body = Readable.from(pieces);
    const answer = await undiciRequest(url, { method: 'POST', headers: headersOf(key), body });
    return { status: answer.statusCode, text: await answer.body.text() };
  },
  'node:http': async ({ url, key, pieces }) => {
    const answer = await httpCall(url, { headers: headersOf(key), body: pieces.join(''), isChunked: true });
    assert.ok(answer.complete);
    return { status: answer.status, text: answer.body.toString() };
  },
  curl: async ({ url, key, pieces }) => {
    const headers = Object.entries(headersOf(key)).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
    const curl = spawn('curl', ['-sS', '-X', 'POST', '-T', '-', '-w', '%{http_code}', ...headers, url]);
    const failure = once(curl, 'error').then(() => null);
    curl.stdin.on('error', () => undefined);
    for (const piece of pieces) curl.stdin.write(piece);
    curl.stdin.end();
    let output = '';
    curl.stdout.on('data', (text: Buffer) => (output += text.toString()));
    const end = once(curl, 'close').then(([code]) => ({ code: code as number }));
    const ended = await Promise.race([end, failure]);
    if (ended === null) return null;
    assert.equal(ended.code, 0, output);
    return { status: Number(output.slice(-3)), text: output.slice(0, -3) };
  },
};

describe('a client that streams its request', () => {
  let installation: ClientInstallation;
  before(async () => {
    installation = await startClientInstallation();
  });
  after(() => installation?.stop());

  const bodyOf = (fields: object, padding = 0): string[] => {
    const text = 'x'.repeat(padding);
    const json = JSON.stringify({
      model: 'sim/small',
      messages: [{ role: 'user', content: `Hello ${text}` }],
      ...fields,
    });
    const middle = Math.floor(json.length / 2);
    return [json.slice(0, 9), json.slice(9, middle), json.slice(middle)];
  };

  for (const [name, post] of Object.entries(CLIENTS)) {
    test(`${name} is served, whole and as a stream, and refused`, async (context) => {
      const url = `${installation.url}/v1/chat/completions`;
      const whole = await post({ url, key: KEYS.acme, pieces: bodyOf({ max_tokens: 10 }) });
      if (whole === null) return context.skip(`${name} is not on this machine`);
      assert.equal(whole.status, 200, whole.text);
      assert.equal((JSON.parse(whole.text) as { object: string }).object, 'chat.completion');

      const streamed = await post({ url, key: KEYS.acme, pieces: bodyOf({ max_tokens: 50, stream: true }, 300_000) });
      assert.equal(streamed?.status, 200, streamed?.text);
      assert.ok(streamed.text.endsWith('data: [DONE]\n\n'), streamed.text.slice(-200));

      const refused = await post({ url, key: 'tg-wrong', pieces: bodyOf({}) });
      assert.equal(refused?.status, 401, refused?.text);
      const unknown = await post({ url, key: KEYS.acme, pieces: bodyOf({ model: 'sim/none' }, 300_000) });
      assert.equal(unknown?.status, 404, unknown?.text);
    });
  }

  test('one connection after the other: each request in chunks has its own', async () => {
    for (let round = 0; round < 20; round += 1) {
      const pieces = bodyOf({ max_tokens: 3, stream: round % 2 === 0 });
      const answer = await CLIENTS['undici']?.({
        url: `${installation.url}/v1/chat/completions`,
        key: KEYS.acme,
        pieces,
      });
      assert.equal(answer?.status, 200);
    }
  });
});
