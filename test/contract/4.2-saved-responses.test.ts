// Spec 4.2: a WebSocket upgrade is answered with 426, which makes clients that dial one first fall back; a response that is not the caller's is not there.

import assert from 'node:assert/strict';
import { STATUS_CODES } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { CONTRACT_MODELS, type ContractCall, callRoute } from '../support/generation-routes.ts';
import { KEYS, testConfiguration } from '../support/test-configuration.ts';

const UPGRADE = { upgrade: 'websocket', connection: 'Upgrade', 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==', 'sec-websocket-version': '13' };
const PATH_LONG = `/v1/responses/${'r'.repeat(600)}`;

const ROWS: readonly (readonly [name: string, path: string, call: ContractCall, status: number, code: string])[] = [
  ['an upgrade', '/v1/responses', { method: 'GET', headers: UPGRADE }, 426, 'websocket_not_supported'],
  ['an upgrade in capitals', '/v1/responses', { method: 'GET', headers: { ...UPGRADE, upgrade: 'WebSocket' } }, 426, 'websocket_not_supported'],
  ['an upgrade without a credential', '/v1/responses', { method: 'GET', key: null, headers: UPGRADE }, 426, 'websocket_not_supported'],
  ['a list', '/v1/responses', { method: 'GET' }, 405, 'method_not_allowed'],
  ['retrieve', '/v1/responses/resp_unknown', { method: 'GET' }, 404, 'response_not_found'],
  ['delete', '/v1/responses/resp_unknown', { method: 'DELETE' }, 404, 'response_not_found'],
  ['cancel', '/v1/responses/resp_unknown/cancel', { method: 'POST' }, 404, 'response_not_found'],
  ['input items', '/v1/responses/resp_unknown/input_items', { method: 'GET' }, 404, 'response_not_found'],
  ['somebody else’s', '/v1/responses/resp_mine', { method: 'GET', key: KEYS.other }, 404, 'response_not_found'],
  ['somebody else’s, to delete', '/v1/responses/resp_mine', { method: 'DELETE', key: KEYS.other }, 404, 'response_not_found'],
  ['an id that is a path', '/v1/responses/..%2f..%2fmodels', { method: 'GET' }, 404, 'response_not_found'],
  ['an id beyond measure', PATH_LONG, { method: 'GET' }, 404, 'response_not_found'],
  ['another method', '/v1/responses/resp_mine', { method: 'PUT' }, 405, 'method_not_allowed'],
  ['another method on cancel', '/v1/responses/resp_mine/cancel', { method: 'GET' }, 405, 'method_not_allowed'],
];

/** Members of a request, beside its model, that name what nobody here has made; with what it is refused. */
const UNKNOWN: readonly (readonly [path: string, members: string, status: number, code: string, field: string | null])[] = [
  ['/v1/responses', '"input":"hi","previous_response_id":"resp_unknown"', 404, 'response_not_found', null],
  ['/v1/responses', '"input":"hi","conversation":"conv_1"', 400, 'invalid_field', 'conversation'],
  ['/v1/responses', '"input":[{"type":"item_reference","id":"msg_1"}]', 400, 'invalid_field', 'input'],
  ['/v1/responses', '"input":[{"role":"user","content":[{"type":"input_file","file_id":"f"}]}]', 400, 'invalid_field', 'input[0].content[0].file_id'],
  [
    '/v1/chat/completions',
    '"messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"f"}}]}]',
    400,
    'invalid_field',
    'messages[0].content[0].file.file_id',
  ],
];

describe('saved responses', () => {
  let upstream: FakeUpstream;
  let tollgate: Tollgate;

  before(async () => {
    const body = JSON.stringify({ id: 'resp_mine', object: 'response', usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 } });
    upstream = await startFakeUpstream(() => ({ body }));
    tollgate = await startTollgate({ configurationYaml: testConfiguration({ upstreamUrl: upstream.url, models: CONTRACT_MODELS }) });
    const made = await callRoute(`${tollgate.url}/v1/responses`, { body: '{"model":"sim/small","input":"hi"}' });
    assert.equal(made.status, 200, made.body);
  });

  after(async () => {
    await tollgate?.stop();
    await upstream?.close();
  });

  for (const [name, path, call, status, code] of ROWS) {
    test(`${name}: ${status} ${code}`, async () => {
      const calls = upstream.requests.length;
      const answer = await callRoute(tollgate.url + path, call);
      assert.equal(answer.status, status, answer.body);
      assert.equal(answer.reason, STATUS_CODES[status]);
      assert.equal(answer.headers['x-should-retry'], 'false');
      const { error } = JSON.parse(answer.body) as { error: { message: string } };
      assert.deepEqual(JSON.parse(answer.body), { error: { message: error.message, type: 'invalid_request_error', code, param: null } });
      assert.equal(upstream.requests.length, calls, 'no provider was asked');
    });
  }

  for (const [path, members, status, code, field] of UNKNOWN) {
    test(`${members}: ${status} ${code} for every organization, and nothing is sent`, async () => {
      const calls = upstream.requests.length;
      for (const key of [KEYS.acme, KEYS.free]) {
        const answer = await callRoute(`${tollgate.url}${path}`, { body: `{"model":"sim/small","max_tokens":5,"max_output_tokens":5,${members}}`, key });
        const { error } = JSON.parse(answer.body) as { error: { code: string; param: string | null } };
        assert.deepEqual([answer.status, error.code, error.param], [status, code, field], answer.body);
      }
      assert.equal(upstream.requests.length, calls, 'no provider was asked');
    });
  }

  test('what was made here is continued by whoever made it, and by nobody else', async () => {
    const body = '{"model":"sim/small","max_output_tokens":5,"input":"hi","previous_response_id":"resp_mine"}';
    assert.equal((await callRoute(`${tollgate.url}/v1/responses`, { body })).status, 200);
    assert.equal((await callRoute(`${tollgate.url}/v1/responses`, { body, key: KEYS.other })).status, 404);
  });

  for (const [method, suffix] of [
    ['GET', ''],
    ['DELETE', ''],
    ['POST', '/cancel'],
    ['GET', '/input_items'],
  ] as const) {
    test(`${method} ${suffix} without a credential: 401 in the gateway's form`, async () => {
      const answer = await callRoute(`${tollgate.url}/v1/responses/resp_mine${suffix}`, { method, key: null });
      assert.deepEqual([answer.status, answer.reason, answer.body], [401, 'Unauthorized', '{"error":"authentication required"}']);
    });
  }
});
