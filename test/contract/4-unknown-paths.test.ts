// A path that no route has is a 404; where a base URL was mistyped, it says which to use, in the envelope of the
// endpoint that was meant.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Route } from '../../src/http/route.ts';
import { explainUnknownPaths } from '../../src/http/unknown-path.ts';
import { httpCall } from '../support/http-call.ts';
import { FRONT_PUBLIC_URL, type HttpFront, startHttpFront } from '../support/http-front.ts';
import { refusalBody } from '../support/refusal-body.ts';

const ROUTES: readonly Route[] = (
  [
    ['POST', '/v1/chat/completions', 'openai'],
    ['POST', '/v1/responses', 'openai'],
    ['GET', '/v1/responses/:id', 'openai'],
    ['GET', '/v1/responses/:id/input_items', 'openai'],
    ['POST', '/v1/messages', 'messages'],
    ['POST', '/v1/messages/count_tokens', 'messages'],
    ['POST', '/v1/systemone', 'systemone'],
    ['GET', '/v1/models', 'platform'],
    ['GET', '/v1/models/:id', 'platform'],
    ['GET', '/healthz', 'platform'],
    ['GET', '/v1/admin/active-org/keys', 'platform'],
    ['GET', '/v1/admin/active-org/byok/order', 'provider_keys'],
  ] as const
).map(([method, path, envelope]) => ({
  method,
  path,
  ...(path === '/v1/models/:id' ? { takesRest: true } : {}),
  envelope,
  handle: (exchange) => exchange.answerJson(200, '{}'),
}));

const WITH_VERSION = 'https://gate.test/v1';
const EITHER =
  'https://gate.test/v1, or https://gate.test if it adds "/v1" by itself (as the Anthropic and TypeSafe clients do)';
const TWICE = `The path has "/v1" twice: set the base URL of your client to ${EITHER}.`;
const LACKING = `The path lacks "/v1": set the base URL of your client to ${WITH_VERSION}.`;
const ELSEWHERE = (path: string) => `The path is "${path}": set the base URL of your client to ${EITHER}.`;
const SLASHES = (path: string) => `The path is "${path}", with single slashes and none at its end.`;
const AUDIO = 'This service does not offer audio (speech, transcriptions and translations).';
const NOWHERE = `Set the base URL of your client to ${EITHER}.`;

const ROWS: readonly (readonly [path: string, envelope: Route['envelope'], hint: string | null])[] = [
  ['/v1/v1/chat/completions', 'openai', TWICE],
  ['/v1/v1/responses/resp_1/input_items', 'openai', TWICE],
  ['/v1/v1/messages', 'messages', TWICE],
  ['/v1/v1/messages/count_tokens', 'messages', TWICE],
  ['/v1/v1/systemone', 'systemone', TWICE],
  ['/v1/v1/models', 'platform', TWICE],
  ['/v1/v1/v1/models', 'platform', TWICE],
  ['/chat/completions', 'openai', LACKING],
  ['/responses', 'openai', LACKING],
  ['/responses/resp_1', 'openai', LACKING],
  ['/messages', 'messages', LACKING],
  ['/messages/count_tokens', 'messages', LACKING],
  ['/systemone', 'systemone', LACKING],
  ['/models', 'platform', LACKING],
  ['/api/models', 'platform', LACKING],
  ['/models/vendor/model', 'platform', LACKING],
  ['/v1/v1/models/vendor/model', 'platform', TWICE],
  ['/openai/v1/chat/completions', 'openai', ELSEWHERE('/v1/chat/completions')],
  ['//v1//messages', 'messages', SLASHES('/v1/messages')],
  ['/v1/messages/', 'messages', SLASHES('/v1/messages')],
  ['/', 'platform', NOWHERE],
  ['/v1', 'platform', NOWHERE],
  ['/v1/v1/nothing', 'platform', NOWHERE],
  ['/chat', 'platform', NOWHERE],
  ['/v1/healthz', 'platform', null],
  ['/v1/moderations', 'openai', 'This service does not offer moderations.'],
  ['/v1/audio/speech', 'openai', AUDIO],
  ['/v1/audio/transcriptions', 'openai', AUDIO],
  ['/audio/speech', 'openai', AUDIO],
  ['/v1/realtime', 'openai', 'This service does not offer the Realtime API. Use /v1/responses.'],
  ['/v1/realtime/client_secrets', 'openai', 'This service does not offer the Realtime API. Use /v1/responses.'],
  [
    '/v1/completions',
    'openai',
    'This service does not offer legacy completions. Use /v1/chat/completions or /v1/responses.',
  ],
  ['/v1/complete', 'messages', 'This service does not offer legacy text completions. Use /v1/messages.'],
  ['/v1/messages/batches', 'messages', 'This service does not offer batches.'],
  ['/v1/fine_tuning/jobs', 'openai', 'This service does not offer fine tuning.'],
  ['/v1/audiobooks', 'platform', null],
  ['/v1/responses/resp_1/nothing', 'openai', null],
  ['/v1/chat/nothing', 'openai', null],
  ['/v1/messages/nothing', 'messages', null],
  ['/v1/admin/active-org/byok/nothing', 'provider_keys', null],
  ['/v1/admin/active-org/nothing', 'platform', null],
  ['/v1/admin/nothing', 'platform', null],
  [`/${'v1/'.repeat(5_000)}models`, 'platform', NOWHERE],
];

describe('what is said of an unknown path', () => {
  for (const [path, envelope, hint] of ROWS) {
    test(path.slice(0, 60), () =>
      assert.deepEqual(explainUnknownPaths(ROUTES, FRONT_PUBLIC_URL)(path), { envelope, hint }),
    );
  }
});

test('routes are read once, whatever is asked', () => {
  let reads = 0;
  const watched = ROUTES.map((route) => ({
    ...route,
    get path() {
      reads += 1;
      return route.path;
    },
  }));
  const explain = explainUnknownPaths(watched, FRONT_PUBLIC_URL);
  const before = reads;
  explain('/a'.repeat(16));
  assert.deepEqual([before, reads], [ROUTES.length, ROUTES.length]);
});

describe('an unknown path', () => {
  let front: HttpFront;

  before(async () => {
    front = await startHttpFront(ROUTES);
  });

  after(() => front?.stop());

  async function answerAt(path: string): Promise<unknown> {
    const { status, headers, body } = await httpCall(`${front.url}${path}`, { method: 'POST', body: '{}' });
    assert.equal(status, 404);
    assert.equal(headers['x-should-retry'], 'false');
    return refusalBody(body.toString('utf8'));
  }

  test('is refused with the hint where the client that meant it looks', async () => {
    assert.deepEqual(await answerAt('/chat/completions?key=x'), {
      error: {
        message: `There is no endpoint at "/chat/completions". ${LACKING}`,
        type: 'invalid_request_error',
        code: 'unknown_path',
        param: null,
      },
    });
    assert.deepEqual(await answerAt('/v1/v1/messages'), {
      type: 'error',
      error: { type: 'not_found_error', message: `There is no endpoint at "/v1/v1/messages". ${TWICE}` },
    });
    assert.deepEqual(await answerAt('/v1/v1/systemone'), {
      detail: { error_type: 'not_found_error', message: `There is no endpoint at "/v1/v1/systemone". ${TWICE}` },
    });
    const { code: _, ...models } = (await answerAt('/models')) as Record<string, unknown>;
    assert.deepEqual(models, { error: `There is no endpoint at "/models". ${LACKING}` });
    const { code: __, ...unknown } = (await answerAt('/v1/nothing')) as Record<string, unknown>;
    assert.deepEqual(unknown, {
      error: 'There is no endpoint at "/v1/nothing".',
      message: 'Check the path and the base URL of your client.',
    });
  });

  test('of an API that is not offered names it, in the form of its clients', async () => {
    assert.deepEqual(await answerAt('/v1/audio/speech'), {
      error: {
        message: `There is no endpoint at "/v1/audio/speech". ${AUDIO}`,
        type: 'invalid_request_error',
        code: 'unknown_path',
        param: null,
      },
    });
  });

  test('beside an endpoint with ids is no id: POST is not for ids', async () => {
    const message =
      'There is no endpoint at "/v1/responses/input_tokens". Check the path and the base URL of your client.';
    assert.deepEqual(await answerAt('/v1/responses/input_tokens'), {
      error: { message, type: 'invalid_request_error', code: 'unknown_path', param: null },
    });
    const put = await httpCall(`${front.url}/v1/responses/resp_1`, { method: 'PUT', body: '{}' });
    assert.deepEqual([put.status, put.headers['allow']], [405, 'GET']);
  });

  test('shows a long path in short', async () => {
    const { error } = (await answerAt(`/${'x'.repeat(2_000)}`)) as { error: string };
    assert.ok(error.length < 500);
  });
});
