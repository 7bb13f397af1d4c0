// CORS by setting: what a browser is told about pages of other origins, on every kind of answer; nothing unless the
// operator said so, and never that a page of any origin is trusted with credentials of the browser.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { type HttpAnswer, httpCall } from '../support/http-call.ts';
import { KEYS, testConfiguration } from '../support/test-configuration.ts';

const APP = 'https://app.example';
const EVIL = 'https://evil.example';
const REPLY = '{"id":"c","object":"chat.completion","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}';

interface Seen {
  readonly status: number;
  readonly origin: string | undefined;
  readonly credentials: string | undefined;
  readonly vary: string | undefined;
  readonly exposed: boolean;
}

const seen = ({ status, headers }: HttpAnswer): Seen => ({
  status,
  origin: headers['access-control-allow-origin'],
  credentials: headers['access-control-allow-credentials'] as string | undefined,
  vary: headers.vary,
  exposed: /X-Service-Execution-Id.*retry-after/.test(String(headers['access-control-expose-headers'])),
});

const SETTINGS = {
  'no setting': { env: {}, allowed: {}, other: {} },
  origins: {
    env: { CORS_ORIGINS: `${APP},http://localhost:3000` },
    allowed: { origin: APP, credentials: 'true', vary: 'origin', exposed: true },
    other: { vary: 'origin' },
  },
  'a star': {
    env: { CORS_ORIGINS: '*' },
    allowed: { origin: '*', exposed: true },
    other: { origin: '*', exposed: true },
  },
} as const;
const NOTHING = { origin: undefined, credentials: undefined, vary: undefined, exposed: false };

for (const [name, { env, allowed, other }] of Object.entries(SETTINGS)) {
  describe(`with ${name}, a browser`, () => {
    let upstream: FakeUpstream;
    let tollgate: Front;
    before(async () => {
      upstream = await startFakeUpstream(() => ({
        headers: [
          ['content-type', 'application/json'],
          ['access-control-allow-origin', EVIL],
        ],
        body: REPLY,
      }));
      tollgate = await startFront({
        configurationYaml: testConfiguration({ upstreamUrl: upstream.url }),
        env: { ...env, BODY_LIMIT_BYTES: '65536' },
      });
    });
    after(async () => {
      await tollgate?.stop();
      await upstream?.close();
    });

    const ask = (path: string, origin: string | null, body?: string, key: string = KEYS.acme): Promise<HttpAnswer> =>
      httpCall(`${tollgate.url}${path}`, {
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          ...(origin === null ? {} : { origin }),
        },
        ...(body === undefined ? {} : { body }),
      });
    const CHAT = '{"model":"sim/small","messages":[],"max_tokens":5}';
    const ANSWERS: readonly [what: string, status: number, ask: (origin: string) => Promise<HttpAnswer>][] = [
      ['a reply', 200, (origin) => ask('/v1/chat/completions', origin, CHAT)],
      ['a list', 200, (origin) => ask('/v1/models', origin)],
      ['a refusal', 401, (origin) => ask('/v1/chat/completions', origin, CHAT, 'tg-wrong')],
      ['an early refusal', 413, (origin) => ask('/v1/chat/completions', origin, `{"x":"${'x'.repeat(300_000)}"}`)],
      ['an unknown path', 404, (origin) => ask('/v1/nothing', origin)],
    ];
    for (const [what, status, askFrom] of ANSWERS) {
      test(`is told of ${what} who may read it`, async () => {
        assert.deepEqual(seen(await askFrom(APP)), { ...NOTHING, ...allowed, status });
        assert.deepEqual(seen(await askFrom(EVIL)), { ...NOTHING, ...other, status });
      });
    }

    test('that asks before it sends is answered', async () => {
      const preflight = (origin: string) =>
        httpCall(`${tollgate.url}/v1/chat/completions`, {
          method: 'OPTIONS',
          headers: {
            origin,
            'access-control-request-method': 'POST',
            'access-control-request-headers': 'authorization,content-type,x-stainless-os',
          },
        });
      const { status, headers } = await preflight(APP);
      if (Object.keys(env).length === 0) {
        assert.equal(status, 405);
        assert.ok(Object.keys(headers).every((header) => !header.startsWith('access-control-')));
        return;
      }
      assert.equal(status, 200);
      assert.equal(headers['access-control-allow-origin'], name === 'a star' ? '*' : APP);
      assert.match(String(headers['access-control-allow-methods']), /POST.*DELETE/);
      assert.equal(headers['access-control-allow-headers'], 'authorization,content-type,x-stainless-os');
      assert.ok(Number(headers['access-control-max-age']) > 0);
      const refused = (await preflight(EVIL)).headers;
      assert.equal(
        refused['access-control-allow-methods'],
        name === 'a star' ? 'GET, POST, PUT, PATCH, DELETE' : undefined,
      );
    });

    test('is asked for no origin where there is none', async () => {
      const { headers } = await ask('/v1/models', null);
      assert.equal(headers['access-control-allow-origin'], undefined);
    });
  });
}
