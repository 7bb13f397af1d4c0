// Spec 4, 7.8: a request whose body comes in chunks, without a length, is answered on every route as one with a length
// is, and is the last of its connection. Other codings, and what follows on the connection: frame-guard.test.ts.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { CONTRACT_MODELS, GENERATION_ROUTES } from '../support/generation-routes.ts';
import { type HttpAnswer, httpCall } from '../support/http-call.ts';
import { ADMIN_TOKEN } from '../support/identity-world.ts';
import { refusalBody } from '../support/refusal-body.ts';
import { KEYS, testConfiguration } from '../support/test-configuration.ts';

const BODY_LIMIT_BYTES = 400_000;
/** Of the control plane. */
const SMALL_LIMIT_BYTES = 262_144;
/** Without it the client would close, and not be told to. */
const KEPT = { connection: 'keep-alive' };
const REPLY = '{"id":"r","data":[{"b64_json":"aW1hZ2U="}],"usage":{"input_tokens":1,"output_tokens":1}}';

describe('a body in chunks', () => {
  let upstream: FakeUpstream;
  let tollgate: Front;
  before(async () => {
    upstream = await startFakeUpstream(() => ({ body: REPLY }));
    tollgate = await startFront({
      configurationYaml: testConfiguration({ upstreamUrl: upstream.url, models: CONTRACT_MODELS }),
      env: { BODY_LIMIT_BYTES: String(BODY_LIMIT_BYTES), ADMIN_TOKEN },
    });
  });
  after(async () => {
    await tollgate?.stop();
    await upstream?.close();
  });

  interface Sent {
    readonly path: string;
    readonly key?: string;
    readonly body: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly isChunked?: boolean;
  }

  function post({ path, key = KEYS.acme, body, headers = {}, isChunked = true }: Sent): Promise<HttpAnswer> {
    const head = { ...KEPT, authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers };
    // One reply serves all APIs.
    return httpCall(`${tollgate.url}${path}`, { headers: head, body, isChunked, isOffFormat: true });
  }

  function assertLast({ headers }: HttpAnswer): void {
    assert.equal(headers.connection, 'close');
  }

  /** An answer before the end of the body has an end of line behind it (uws-head-text.ts), a refusal its own id. */
  const comparable = ({ status, body }: HttpAnswer): unknown => [
    status,
    status === 200 ? body.toString() : refusalBody(body.toString()),
  ];

  for (const { path, model, fields } of GENERATION_ROUTES) {
    const good = JSON.stringify({ model, max_tokens: 10, max_output_tokens: 10, ...fields });
    const ROWS: readonly (readonly [name: string, status: number, sent: Omit<Sent, 'path'>])[] = [
      ['is served', 200, { body: good }],
      ['of an unknown model is refused', 404, { body: JSON.stringify({ model: 'sim/none', ...fields }) }],
      ['that is no JSON is refused', 400, { body: '{"model":' }],
      ['that is empty is refused', 400, { body: '' }],
      ['of a wrong key is refused', 401, { key: 'tg-wrong', body: good }],
      ['over the limit is refused', 413, { body: `{"x":"${'x'.repeat(BODY_LIMIT_BYTES)}"}` }],
      ['of another type is refused', 415, { body: good, headers: { 'content-type': 'text/plain' } }],
    ];
    for (const [name, status, sent] of ROWS) {
      test(`${path}: one that ${name.replace(/^that /, '')}, as with a length`, async () => {
        const [chunked, sized] = [await post({ path, ...sent }), await post({ path, ...sent, isChunked: false })];
        assert.equal(chunked.status, status, chunked.body.toString());
        assert.deepEqual(comparable(chunked), comparable(sized));
        assertLast(chunked);
      });
    }
  }

  const ORGANIZATIONS = '/v1/admin/organizations';
  test('a control-plane operation takes one, up to its own limit', async () => {
    const create = (body: string) => post({ path: ORGANIZATIONS, key: ADMIN_TOKEN, body });
    const made = await create('{"slug":"chunked","display_name":"Chunked","billing":"none"}');
    assert.equal(made.status, 201, made.body.toString());
    assertLast(made);
    assert.equal((await create('')).status, 400);
    const large = await create(`{"slug":"${'x'.repeat(SMALL_LIMIT_BYTES)}"}`);
    assert.equal(large.status, 413);
    assert.ok(large.body.includes(`${SMALL_LIMIT_BYTES} bytes`), large.body.toString());
  });

  test('a route that takes no body is answered all the same', async () => {
    const listed = await httpCall(`${tollgate.url}/v1/models`, {
      method: 'GET',
      headers: { ...KEPT, authorization: `Bearer ${KEYS.acme}` },
      body: 'hello',
      isChunked: true,
    });
    assert.equal(listed.status, 200);
    assertLast(listed);
  });
});
