// Spec 4.2: a WebSocket upgrade is answered with 426, which makes clients that dial one first fall back; a response
// that is not the caller's is not there.

import assert from 'node:assert/strict';
import { STATUS_CODES } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { type FakeUpstream, type Script, type ScriptedReply, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { CONTRACT_MODELS, type ContractCall, callRoute } from '../support/generation-routes.ts';
import { type HttpAnswer, httpCall } from '../support/http-call.ts';
import { refusalBody } from '../support/refusal-body.ts';
import { KEYS, testConfiguration } from '../support/test-configuration.ts';

const UPGRADE = {
  upgrade: 'websocket',
  connection: 'Upgrade',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  'sec-websocket-version': '13',
};
const PATH_LONG = `/v1/responses/${'r'.repeat(600)}`;

const ROWS: readonly (readonly [name: string, path: string, call: ContractCall, status: number, code: string])[] = [
  ['an upgrade', '/v1/responses', { method: 'GET', headers: UPGRADE }, 426, 'websocket_not_supported'],
  [
    'an upgrade in capitals',
    '/v1/responses',
    { method: 'GET', headers: { ...UPGRADE, upgrade: 'WebSocket' } },
    426,
    'websocket_not_supported',
  ],
  [
    'an upgrade without a credential',
    '/v1/responses',
    { method: 'GET', key: null, headers: UPGRADE },
    426,
    'websocket_not_supported',
  ],
  ['a list', '/v1/responses', { method: 'GET' }, 405, 'method_not_allowed'],
  ['retrieve', '/v1/responses/resp_unknown', { method: 'GET' }, 404, 'response_not_found'],
  ['delete', '/v1/responses/resp_unknown', { method: 'DELETE' }, 404, 'response_not_found'],
  ['cancel', '/v1/responses/resp_unknown/cancel', { method: 'POST' }, 404, 'response_not_found'],
  ['input items', '/v1/responses/resp_unknown/input_items', { method: 'GET' }, 404, 'response_not_found'],
  ['somebody else’s', '/v1/responses/resp_mine', { method: 'GET', key: KEYS.other }, 404, 'response_not_found'],
  [
    'somebody else’s, to delete',
    '/v1/responses/resp_mine',
    { method: 'DELETE', key: KEYS.other },
    404,
    'response_not_found',
  ],
  ['an id that is a path', '/v1/responses/..%2f..%2fmodels', { method: 'GET' }, 404, 'response_not_found'],
  ['an id beyond measure', PATH_LONG, { method: 'GET' }, 404, 'response_not_found'],
  ['another method', '/v1/responses/resp_mine', { method: 'PUT' }, 405, 'method_not_allowed'],
  ['another method on cancel', '/v1/responses/resp_mine/cancel', { method: 'GET' }, 405, 'method_not_allowed'],
];

/** Members of a request, beside its model, that name what nobody here has made; with what it is refused. */
const UNKNOWN: readonly (readonly [
  path: string,
  members: string,
  status: number,
  code: string,
  field: string | null,
])[] = [
  ['/v1/responses', '"input":"hi","previous_response_id":"resp_unknown"', 404, 'response_not_found', null],
  ['/v1/responses', '"input":"hi","conversation":"conv_1"', 400, 'invalid_field', 'conversation'],
  ['/v1/responses', '"input":[{"type":"item_reference","id":"msg_1"}]', 400, 'invalid_field', 'input'],
  [
    '/v1/responses',
    '"input":[{"role":"user","content":[{"type":"input_file","file_id":"f"}]}]',
    400,
    'invalid_field',
    'input[0].content[0].file_id',
  ],
  [
    '/v1/chat/completions',
    '"messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"f"}}]}]',
    400,
    'invalid_field',
    'messages[0].content[0].file.file_id',
  ],
];

const OWN_ITEMS = '{"type":"item_reference","id":"rs_mine"},{"type":"item_reference","id":"msg_mine"}';

/** What stands in `input` beside a question, of items that `acme` was given; by whom, and the field that is refused. */
const REFERENCES: readonly (readonly [name: string, items: string, key: string, field: string | null])[] = [
  ['its own', OWN_ITEMS, KEYS.acme, null],
  ['its own, by the id alone', '{"id":"msg_mine"}', KEYS.acme, null],
  ['somebody else’s', OWN_ITEMS, KEYS.other, 'input'],
  [
    'its own, and one that nobody here made',
    `${OWN_ITEMS},{"type":"item_reference","id":"msg_unknown"}`,
    KEYS.acme,
    'input',
  ],
  [
    'its own, and a file',
    `${OWN_ITEMS},{"role":"user","content":[{"type":"input_file","file_id":"f"}]}`,
    KEYS.acme,
    'input[3].content[0].file_id',
  ],
  ['an item that has two ids', '{"type":"item_reference","id":"msg_mine","id":"msg_mine"}', KEYS.acme, 'input'],
  ['an item without an id', '{"type":"item_reference"}', KEYS.acme, 'input'],
  [
    'an item of a response that was not to be stored',
    '{"type":"item_reference","id":"msg_unstored"}',
    KEYS.acme,
    'input',
  ],
];

describe('saved responses', () => {
  let upstream: FakeUpstream;
  let tollgate: Front;
  /** What the provider answers where events of a stored response are asked for. */
  let replayed: Script = { instead: 'close' };
  /** The name in the ids of the next response that is to be stored. */
  let made = 'mine';

  before(async () => {
    upstream = await startFakeUpstream(({ body, path }) =>
      path.includes('stream=true')
        ? replayed
        : { body: responseOf(body.includes('"store":false') ? 'unstored' : made) },
    );
    tollgate = await startFront({
      configurationYaml: testConfiguration({ upstreamUrl: upstream.url, models: CONTRACT_MODELS }),
    });
    const stored = await callRoute(`${tollgate.url}/v1/responses`, { body: '{"model":"sim/small","input":"hi"}' });
    assert.equal(stored.status, 200, stored.body);
    const unstored = await callRoute(`${tollgate.url}/v1/responses`, {
      body: '{"model":"sim/small","input":"hi","store":false}',
    });
    assert.equal(unstored.status, 200, unstored.body);
  });

  after(async () => {
    await tollgate?.stop();
    await upstream?.close();
  });

  test('a method that the list has not is told the one that it has', async () => {
    for (const method of ['GET', 'DELETE', 'PUT'] as const) {
      const { status, headers } = await callRoute(`${tollgate.url}/v1/responses`, { method });
      assert.deepEqual([status, headers['allow']], [405, 'POST'], method);
    }
  });

  async function replay(body: string, more: Pick<ScriptedReply, 'fault' | 'headers'> = {}): Promise<HttpAnswer> {
    const headers = [['content-type', 'text/event-stream'], ...(more.headers ?? [])] as const;
    replayed = { ...more, headers, body, framing: 'chunked' };
    const call = { headers: { authorization: `Bearer ${KEYS.acme}` }, isOffFormat: true };
    return httpCall(`${tollgate.url}/v1/responses/resp_mine?stream=true`, call);
  }
  const DELTA = 'data: {"type":"response.output_text.delta","delta":"hi"}\n\n';
  const END = 'data: {"type":"response.completed","response":{"id":"resp_mine"}}';

  for (const [name, body, isWhole] of [
    ['its last event', `${DELTA}${END}\n\n`, true],
    ['a last event that lacks its line ends', DELTA + END, true],
    ['half of its last event', DELTA + END.slice(0, -1), false],
    ['another event', DELTA, false],
    ['nothing, as behind its last event', '', true],
  ] as const)
    test(`events of a stored response that end with ${name}: ${isWhole ? 'whole' : 'cut'}`, async () => {
      const answer = await replay(body);
      assert.deepEqual([answer.status, answer.complete, answer.body.toString()], [200, isWhole, body]);
    });

  for (const [encoding, isWhole] of [
    ['identity', false],
    ['Identity', false],
    ['', false],
    ['gzip', true],
  ] as const)
    test(`content-encoding: ${encoding}: an end without the last event is ${isWhole ? 'not looked for' : 'a cut'}`, async () => {
      const answer = await replay(DELTA, { headers: [['content-encoding', encoding]] });
      assert.deepEqual([answer.status, answer.complete, answer.body.toString()], [200, isWhole, DELTA]);
    });

  test('events of a stored response of which only the head comes are a 502', async () => {
    const answer = await replay(DELTA, { fault: { kind: 'cut', afterBytes: 0 } });
    const { error } = JSON.parse(answer.body.toString()) as { error: { code: string } };
    assert.deepEqual([answer.status, answer.complete, error.code], [502, true, 'upstream_unreachable']);
  });

  for (const [name, path, call, status, code] of ROWS) {
    test(`${name}: ${status} ${code}`, async () => {
      const calls = upstream.requests.length;
      const answer = await callRoute(tollgate.url + path, call);
      assert.equal(answer.status, status, answer.body);
      assert.equal(answer.reason, STATUS_CODES[status]);
      assert.equal(answer.headers['x-should-retry'], 'false');
      const { error } = JSON.parse(answer.body) as { error: { message: string } };
      assert.deepEqual(refusalBody(answer.body), {
        error: { message: error.message, type: 'invalid_request_error', code, param: null },
      });
      assert.equal(upstream.requests.length, calls, 'no provider was asked');
    });
  }

  for (const [path, members, status, code, field] of UNKNOWN) {
    test(`${members}: ${status} ${code} for every organization, and nothing is sent`, async () => {
      const calls = upstream.requests.length;
      for (const key of [KEYS.acme, KEYS.free]) {
        const answer = await callRoute(`${tollgate.url}${path}`, {
          body: `{"model":"sim/small","max_tokens":5,"max_output_tokens":5,${members}}`,
          key,
        });
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

  for (const [name, isKept] of [
    ['r'.repeat(251), true],
    ['r'.repeat(252), false],
    ['a=b', true],
    ['a b', false],
    ['a/b', false],
  ] as const)
    test(`a response whose id is resp_${name.slice(0, 9)} (${name.length + 5}) is ${isKept ? '' : 'not '}kept`, async () => {
      made = name;
      const answer = await callRoute(`${tollgate.url}/v1/responses`, { body: '{"model":"sim/small","input":"hi"}' });
      made = 'mine';
      assert.deepEqual([answer.status, answer.body], [200, responseOf(name)], 'relayed as it is');
      const id = `resp_${name}`;
      const body = `{"model":"sim/small","max_output_tokens":5,"input":"hi","previous_response_id":"${id}"}`;
      const continued = await callRoute(`${tollgate.url}/v1/responses`, { body });
      assert.equal(continued.status, isKept ? 200 : 404, continued.body);
      const path = `/v1/responses/${isKept ? id : encodeURIComponent(id)}`;
      const retrieved = await callRoute(tollgate.url + path, { method: 'GET' });
      assert.equal(retrieved.status, isKept ? 200 : 404, retrieved.body);
      if (isKept) assert.equal(upstream.requests.at(-1)?.path, path);
    });

  for (const [name, items, key, field] of REFERENCES) {
    test(`a request that refers to items: ${name}: ${field === null ? 'served' : `400 for ${field}`}`, async () => {
      const calls = upstream.requests.length;
      const body = `{"model":"sim/small","max_output_tokens":5,"input":[{"role":"user","content":"hi"},${items}]}`;
      const answer = await callRoute(`${tollgate.url}/v1/responses`, { body, key });
      if (field === null) {
        assert.equal(answer.status, 200, answer.body);
        assert.ok(upstream.requests.at(-1)?.body.includes(items), 'as the client wrote them');
        return;
      }
      const { error } = JSON.parse(answer.body) as { error: { code: string; param: string; message: string } };
      assert.deepEqual([answer.status, error.code, error.param], [400, 'invalid_field', field], answer.body);
      assert.equal(upstream.requests.length, calls, 'no provider was asked');
    });
  }

  test('whoever refers to items that this service does not know is told what to do', async () => {
    const body = '{"model":"sim/small","max_output_tokens":5,"input":[{"type":"item_reference","id":"msg_unknown"}]}';
    const answer = await callRoute(`${tollgate.url}/v1/responses`, { body });
    for (const advice of ['Send the items themselves', '"store": false', 'stored_objects: shared'])
      assert.ok(answer.body.replaceAll('\\"', '"').includes(advice), answer.body);
  });

  for (const [method, suffix] of [
    ['GET', ''],
    ['DELETE', ''],
    ['POST', '/cancel'],
    ['GET', '/input_items'],
  ] as const) {
    test(`${method} ${suffix} without a credential: 401 in the gateway's form`, async () => {
      const answer = await callRoute(`${tollgate.url}/v1/responses/resp_mine${suffix}`, { method, key: null });
      assert.deepEqual(
        [answer.status, answer.reason, refusalBody(answer.body)],
        [401, 'Unauthorized', { error: 'authentication required' }],
      );
    });
  }
});

function responseOf(name: string): string {
  const output = [
    { id: `rs_${name}`, type: 'reasoning', summary: [] },
    { id: `msg_${name}`, type: 'message', role: 'assistant', content: [] },
  ];
  return JSON.stringify({
    id: `resp_${name}`,
    object: 'response',
    output,
    usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
  });
}
