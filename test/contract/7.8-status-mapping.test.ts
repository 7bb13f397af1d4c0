// Spec 7.2, 7.3, 7.5, 7.6 and 7.8 over HTTP: kind x route -> status line, headers and body, each route in its own
// envelope.

import assert from 'node:assert/strict';
import { STATUS_CODES } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import {
  CONTRACT_MODELS,
  type ContractAnswer,
  type ContractCall,
  callRoute,
  GENERATION_ROUTES,
  type GenerationRoute,
} from '../support/generation-routes.ts';
import { refusalBody } from '../support/refusal-body.ts';
import { testConfiguration } from '../support/test-configuration.ts';

const BODY_LIMIT_BYTES = 65_536;

interface Row {
  readonly kind: string;
  readonly status: number;
  readonly code: string;
  readonly param?: string;
  readonly call: (route: GenerationRoute) => ContractCall;
  readonly headers?: Readonly<Record<string, string>>;
}

const withModel = (model: unknown) => (route: GenerationRoute) => ({
  body: JSON.stringify({ model, ...route.fields }),
});
const asText = (body: string | Buffer) => () => ({ body });

const ROWS: readonly Row[] = [
  { kind: 'no JSON', status: 400, code: 'invalid_json', call: asText('{"model":') },
  { kind: 'no UTF-8', status: 400, code: 'invalid_utf8', call: asText(Buffer.from('{"model":"\xff"}', 'latin1')) },
  { kind: 'no object', status: 400, code: 'body_not_an_object', call: asText('[]') },
  {
    kind: 'nested too deep',
    status: 400,
    code: 'body_too_deep',
    call: asText(`{"model":"sim/small","a":${'['.repeat(300)}${']'.repeat(300)}}`),
  },
  {
    kind: 'the model in capitals',
    status: 400,
    code: 'invalid_field',
    param: 'model',
    call: asText('{"model":"sim/small","Model":"sim/small"}'),
  },
  {
    kind: 'the model twice',
    status: 400,
    code: 'duplicate_key',
    param: 'model',
    call: asText('{"model":"sim/small","model":"sim/small"}'),
  },
  {
    kind: 'no model',
    status: 400,
    code: 'missing_model',
    param: 'model',
    call: ({ fields }) => ({ body: JSON.stringify(fields) }),
  },
  { kind: 'a model that is no string', status: 400, code: 'model_not_a_string', param: 'model', call: withModel(7) },
  { kind: 'an unknown model', status: 404, code: 'model_not_found', param: 'model', call: withModel('no/such') },
  { kind: 'an inactive model', status: 404, code: 'model_not_found', param: 'model', call: withModel('sim/retired') },
  {
    kind: 'another media type',
    status: 415,
    code: 'unsupported_media_type',
    call: (route) => ({ ...withModel(route.model)(route), headers: { 'content-type': 'text/plain' } }),
  },
  {
    kind: 'a compressed body',
    status: 415,
    code: 'unsupported_media_type',
    call: (route) => ({ ...withModel(route.model)(route), headers: { 'content-encoding': 'gzip' } }),
  },
  {
    kind: 'a body over the limit',
    status: 413,
    code: 'body_too_large',
    call: asText(`{"model":"${'x'.repeat(BODY_LIMIT_BYTES)}"}`),
  },
];

/**
 * Spec 4.9: evaluation models are served on their endpoint alone, and no others are there; the same holds for images.
 */
function rowsOfOtherKinds({ model }: GenerationRoute): Row[] {
  const others = ['sim/small', 'sim/image', 'sim/judge'].filter((other) => other !== model);
  return others.map((other) => ({
    kind: `the model ${other}`,
    status: 400,
    code: 'api_not_supported',
    param: 'model',
    call: withModel(other),
  }));
}

/** Spec 7.6: whatever the route. */
const GATEWAY_ROWS: readonly (readonly [kind: string, call: ContractCall, error: string])[] = [
  ['no credential', { key: null }, 'authentication required'],
  ['a wrong credential', { key: 'tg-nobody' }, 'unauthorized'],
  ['a wrong x-api-key', { key: null, headers: { 'x-api-key': 'tg-nobody' } }, 'unauthorized'],
];

const MESSAGES_TYPES: Readonly<Record<number, string>> = { 404: 'not_found_error', 413: 'request_too_large' };

function assertEnvelope(route: GenerationRoute, row: Row, answer: ContractAnswer): void {
  const body = refusalBody(answer.body) as { error?: { message: string }; detail?: { message: string } };
  const type = MESSAGES_TYPES[row.status] ?? 'invalid_request_error';
  const message = body.error?.message ?? body.detail?.message ?? '';
  assert.ok(message.length > 10, answer.body);
  switch (route.envelope) {
    case 'openai':
      assert.deepEqual(body, {
        error: { message, type: 'invalid_request_error', code: row.code, param: row.param ?? null },
      });
      return;
    case 'messages':
      assert.deepEqual(body, { type: 'error', error: { type, message } });
      return;
    case 'systemone':
      assert.deepEqual(body, { detail: { error_type: type, message } });
  }
}

function assertHead(answer: ContractAnswer, status: number): void {
  assert.equal(answer.status, status, answer.body);
  assert.equal(answer.reason, STATUS_CODES[status]);
  assert.equal(answer.headers['content-type'], 'application/json');
  assert.equal(answer.headers['content-length'], String(Buffer.byteLength(answer.body)));
  assert.equal(answer.headers['x-should-retry'], 'false', 'time does not cure it');
  assert.equal(answer.headers['retry-after'], undefined);
}

describe('refusals of generation routes', () => {
  let upstream: FakeUpstream;
  let tollgate: Front;

  before(async () => {
    upstream = await startFakeUpstream(() => ({ body: '{}' }));
    tollgate = await startFront({
      configurationYaml: testConfiguration({ upstreamUrl: upstream.url, models: CONTRACT_MODELS }),
      env: { BODY_LIMIT_BYTES: String(BODY_LIMIT_BYTES) },
    });
  });

  after(async () => {
    await tollgate?.stop();
    await upstream?.close();
  });

  for (const route of GENERATION_ROUTES) {
    for (const row of [...ROWS, ...rowsOfOtherKinds(route)]) {
      test(`${route.path}, ${row.kind}: ${row.status} ${row.code}`, async () => {
        const answer = await callRoute(tollgate.url + route.path, row.call(route));
        assertHead(answer, row.status);
        assertEnvelope(route, row, answer);
      });
    }

    for (const [kind, call, error] of GATEWAY_ROWS) {
      test(`${route.path}, ${kind}: 401`, async () => {
        const answer = await callRoute(tollgate.url + route.path, { ...withModel(route.model)(route), ...call });
        assertHead(answer, 401);
        assert.equal(answer.headers['www-authenticate'], 'Bearer');
        assert.deepEqual(refusalBody(answer.body), { error });
      });
    }

    test(`${route.path}, another method: 405`, async () => {
      const answer = await callRoute(tollgate.url + route.path, { method: 'PUT', body: '{}' });
      assertHead(answer, 405);
      assert.match(String(answer.headers['allow']), /POST/);
      assertEnvelope(route, { kind: 'method', status: 405, code: 'method_not_allowed', call: () => ({}) }, answer);
    });
  }

  test('nothing of it reached a provider', () => assert.equal(upstream.requests.length, 0));
});
