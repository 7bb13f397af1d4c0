// Spec 1.7, 4.5 over HTTP: a client's own id of a request is found again. One that is longer than what is kept is
// refused by name, on every generation route and where it is looked for, as the OpenAPI document says.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { CONTRACT_MODELS, callRoute, GENERATION_ROUTES } from '../support/generation-routes.ts';
import { httpCall } from '../support/http-call.ts';
import { openapiDocument } from '../support/route-table.ts';
import { KEYS, testConfiguration } from '../support/test-configuration.ts';

const KEPT_MAX = 255;

const KEPT: Readonly<Record<string, string>> = {
  'one character': 'a',
  'as many as are kept': 'b'.repeat(KEPT_MAX),
};
const REFUSED: Readonly<Record<string, string>> = {
  'one more than are kept': 'c'.repeat(KEPT_MAX + 1),
  'many more': 'd'.repeat(4_000),
};

describe('X-Client-Request-Id', () => {
  let upstream: FakeUpstream;
  let tollgate: Front;

  before(async () => {
    upstream = await startFakeUpstream(() => ({
      body: '{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}',
    }));
    const configurationYaml = testConfiguration({ upstreamUrl: upstream.url, models: CONTRACT_MODELS });
    tollgate = await startFront({ configurationYaml });
  });
  after(async () => {
    await tollgate?.stop();
    await upstream?.close();
  });

  const find = (label: string) =>
    httpCall(`${tollgate.url}/v1/generations?client_request_id=${label}`, {
      headers: { authorization: `Bearer ${KEYS.acme}` },
    });

  for (const [name, label] of Object.entries(KEPT)) {
    test(`${name}: kept, and found by it`, async () => {
      const served = await httpCall(`${tollgate.url}/v1/chat/completions`, {
        headers: { authorization: `Bearer ${KEYS.acme}`, 'x-client-request-id': label },
        body: JSON.stringify({ model: 'sim/small', messages: [{ role: 'user', content: 'hi' }], max_tokens: 5 }),
      });
      assert.equal(served.status, 200, served.body.toString());
      const found = await find(label);
      assert.equal(found.status, 200, found.body.toString());
      const { data } = JSON.parse(found.body.toString()) as { data: { id: string }[] };
      assert.deepEqual(
        data.map(({ id }) => id),
        [served.headers['x-service-execution-id']],
      );
    });
  }

  for (const [name, label] of Object.entries(REFUSED)) {
    for (const route of GENERATION_ROUTES) {
      test(`${name}, on ${route.path}: 400 that names the header, recorded, and no provider is asked`, async () => {
        const callsBefore = upstream.requests.length;
        const answered = await callRoute(tollgate.url + route.path, {
          headers: { 'x-client-request-id': label },
          body: JSON.stringify({ model: route.model, ...route.fields }),
        });
        assert.equal(answered.status, 400, answered.body);
        assert.match(answered.body, /X-Client-Request-Id/);
        assert.match(answered.body, /more than 255 characters/);
        assert.match(String(answered.headers['x-service-execution-id']), /^[0-9a-f-]{36}$/);
        assert.equal(upstream.requests.length, callsBefore);
      });
    }

    test(`${name}: looked for, 400 that names the parameter`, async () => {
      const found = await find(label);
      assert.equal(found.status, 400, found.body.toString());
      assert.match(found.body.toString(), /client_request_id/);
    });
  }

  test('what is served as OpenAPI document is the one that every contract test holds answers against', async () => {
    const { body } = await httpCall(`${tollgate.url}/openapi.json`);
    const { servers, ...served } = JSON.parse(body.toString()) as Record<string, unknown>;
    const { servers: _, ...expected } = JSON.parse(JSON.stringify(openapiDocument())) as Record<string, unknown>;
    assert.deepEqual(served, expected);
    assert.deepEqual(servers, [{ url: tollgate.url }]);
  });

  test('the OpenAPI document has the limit in both places', () => {
    const document = openapiDocument() as {
      paths: Record<string, Record<string, { parameters: { name: string; schema: { maxLength?: number } }[] }>>;
    };
    const limitOf = (method: string, path: string, named: string): number | undefined =>
      document.paths[path]?.[method]?.parameters.find(({ name }) => name.toLowerCase() === named)?.schema.maxLength;
    assert.equal(limitOf('get', '/v1/generations', 'client_request_id'), KEPT_MAX);
    for (const { path } of GENERATION_ROUTES) assert.equal(limitOf('post', path, 'x-client-request-id'), KEPT_MAX);
  });
});
