// Spec 1, 4.4, 4.5, 7.6, 7.8: whatever is refused or fails has an id in its body and its headers, and where its sender
// is known that id is found in look-ups and listings, and costs and counts nothing. Over a real socket, kind by kind.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { lookupGeneration } from '../support/generation-lookup.ts';
import { GENERATION_ROUTES } from '../support/generation-routes.ts';
import { httpCall } from '../support/http-call.ts';
import { HTTP_FRONT } from '../support/http-front-name.ts';
import { ADMIN_TOKEN, organizationIdOf, Tenant } from '../support/identity-world.ts';
import { limitedConfiguration, limitedKey } from '../support/limited-organizations.ts';
import { RawClient } from '../support/raw-client.ts';
import { refusalBody } from '../support/refusal-body.ts';
import { waitFor } from '../support/waiting.ts';

type Json = Readonly<Record<string, unknown>>;

const BODY_LIMIT_BYTES = 65_536;
const CHAT = { model: 'sim/small', messages: [{ role: 'user', content: 'hi' }], max_tokens: 10 };
const ORGANIZATIONS = [
  {
    slug: 'acme',
    credit: '5',
    limits: ['{ kind: requests_per_minute, limit: 1000 }', '{ kind: budget, window: month, limit: "100" }'],
  },
  { slug: 'broke', credit: '0' },
  { slug: 'hurried', credit: '5', limits: ['{ kind: requests_per_minute, limit: 0 }'] },
  { slug: 'alone', credit: '5', limits: ['{ kind: concurrent_requests, limit: 0 }'] },
  { slug: 'spent', credit: '5', limits: ['{ kind: budget, window: month, limit: "0" }'] },
  { slug: 'boundless', credit: null, limits: ['{ kind: tokens_per_minute, limit: 100 }'] },
];

interface Sent {
  /** Whose key it comes with. */
  readonly slug?: string;
  /** null: without any; by default the organization's key. */
  readonly credential?: string | null;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** In place of the body's length. */
  readonly framing?: string;
}

const json = (fields: object): Sent => ({ body: JSON.stringify({ ...CHAT, ...fields }) });
const LARGE = `{"x":"${'x'.repeat(BODY_LIMIT_BYTES)}"}`;

/** `model`: as the record has it; null where it was not read. */
const KNOWN: readonly (readonly [kind: string, status: number, model: string | null, sent: Sent])[] = [
  ['length_required', 411, null, { framing: '' }],
  ['body_too_large', 413, null, { body: LARGE }],
  ['body_too_large', 413, null, { framing: 'transfer-encoding: chunked', body: inOneChunk(LARGE) }],
  ['request_timeout', 408, null, { framing: 'content-length: 100', body: '{' }],
  ['unsupported_media_type', 415, null, { headers: { 'content-type': 'text/plain' }, body: '{}' }],
  ['unsupported_media_type', 415, null, { headers: { 'content-encoding': 'gzip' }, body: '{}' }],
  ['invalid_json', 400, null, { body: '{"model":' }],
  ['invalid_json', 400, null, { framing: 'transfer-encoding: chunked', body: inOneChunk('{"model":') }],
  ['invalid_utf8', 400, null, { body: '{"model":"\xff"}' }],
  ['body_not_an_object', 400, null, { body: '[]' }],
  ['body_too_deep', 400, null, { body: `{"a":${'['.repeat(300)}${']'.repeat(300)}}` }],
  ['duplicate_key', 400, null, { body: '{"model":"sim/small","model":"sim/small"}' }],
  ['missing_model', 400, null, { body: '{}' }],
  ['missing_model', 400, null, json({ model: '' })],
  ['model_not_a_string', 400, null, json({ model: 7 })],
  ['invalid_field', 400, null, json({ max_tokens: -5 })],
  ['invalid_form', 400, null, ofForm('--b\r\ncut off')],
  ['model_not_found', 404, 'sim/absent', json({ model: 'sim/absent' })],
  ['api_not_supported', 400, 'sim/judge', json({ model: 'sim/judge' })],
  ['insufficient_credit', 402, 'sim/small', { ...json({}), slug: 'broke' }],
  ['not_safely_billable', 422, 'sim/uncapped', json({ model: 'sim/uncapped', max_tokens: undefined })],
  ['rate_limit', 429, 'sim/small', { ...json({}), slug: 'hurried' }],
  ['concurrency_limit', 429, 'sim/small', { ...json({}), slug: 'alone' }],
  ['usage_limit_exceeded', 429, 'sim/small', { ...json({}), slug: 'spent' }],
  [
    'traffic_token_bound_required',
    422,
    'sim/uncapped',
    { ...json({ model: 'sim/uncapped', max_tokens: undefined }), slug: 'boundless' },
  ],
];

/** Two lengths are refused by the parser of node:http, before there is anything that could have an id. */
const REPEATED = HTTP_FRONT === 'uws' ? 'content-length: 2' : 'host: another.test';

/** Nobody's listing can show these. */
const UNKNOWN: readonly (readonly [kind: string, status: number, sent: Sent])[] = [
  ['no credential', 401, { ...json({}), credential: null }],
  ['a wrong credential', 401, { ...json({}), credential: 'tg-nobody' }],
  ['a wrong credential, and no length', 411, { framing: '', credential: 'tg-somebody-else' }],
  ['a header that must not repeat', 400, { framing: `content-length: 2\r\n${REPEATED}`, body: '{}' }],
  ['an unknown coding', 411, { framing: 'transfer-encoding: gzip, chunked', body: '' }],
];

function inOneChunk(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`;
}

function ofForm(body: string): Sent {
  return { path: '/v1/images/edits', headers: { 'content-type': 'multipart/form-data; boundary=b' }, body };
}

interface Refused {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

describe('what is refused or fails', () => {
  let upstream: FakeUpstream;
  let tollgate: Front;
  before(async () => {
    upstream = await startFakeUpstream(() => ({ instead: 'reset' }));
    tollgate = await startFront({
      configurationYaml: limitedConfiguration(upstream.url, ORGANIZATIONS),
      reports: true,
      env: { ADMIN_TOKEN, BODY_LIMIT_BYTES: String(BODY_LIMIT_BYTES), BODY_TIMEOUT_SECONDS: '1' },
    });
  });
  after(async () => {
    await tollgate?.stop();
    await upstream?.close();
  });

  async function send({ slug = 'acme', credential, path = '/v1/chat/completions', ...sent }: Sent): Promise<Refused> {
    const { body = '', framing = `content-length: ${body.length}`, headers = {} } = sent;
    const bearer = credential === undefined ? limitedKey(slug) : credential;
    const named = { 'content-type': 'application/json', ...headers };
    const lines = [
      `POST ${path} HTTP/1.1`,
      'host: gate.test',
      ...(bearer === null ? [] : [`authorization: Bearer ${bearer}`]),
      ...Object.entries(named).map(([name, value]) => `${name}: ${value}`),
      ...(framing === '' ? [] : [framing]),
    ];
    const client = await RawClient.open(Number(new URL(tollgate.url).port));
    void client.write(Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`, 'latin1'));
    const isWhole = ({ received }: RawClient): boolean => /\r\n\r\n.*\}/s.test(received);
    const { received } = await client.until('a whole answer', isWhole);
    client.leave();
    return read(received);
  }

  function read(received: string): Refused {
    const [head = '', ...rest] = received.split('\r\n\r\n');
    const [first = '', ...fields] = head.split('\r\n');
    const headers = new Map(
      fields.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.replace(/^[^:]*: ?/, '')]),
    );
    return { status: Number(first.split(' ')[1]), headers, body: rest.join('\r\n\r\n').trimEnd() };
  }

  /** The id that its body and its headers have alike. */
  function idOf({ headers, body }: Refused): string {
    const id = headers.get('x-service-execution-id');
    assert.match(String(id), /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    refusalBody(body, id);
    assert.deepEqual([headers.get('x-request-id'), headers.get('request-id')], [id, id]);
    return String(id);
  }

  async function get(slug: string, path: string): Promise<Json> {
    const headers = { authorization: `Bearer ${limitedKey(slug)}` };
    const answer = await httpCall(`${tollgate.url}${path}`, { headers });
    assert.equal(answer.status, 200, answer.body.toString());
    return (JSON.parse(answer.body.toString()) as { data: Json }).data;
  }

  /** What listings are to have at the end, by organization. */
  const expected = new Map<string, Json[]>();

  async function assertRecorded(slug: string, id: string, entry: Json): Promise<void> {
    const record = await lookupGeneration(tollgate.url, limitedKey(slug), id);
    assert.deepEqual(
      [record?.id, record?.model, record?.billingStatus, record?.totalCost, record?.authorizedAmount],
      [id, entry['model'], 'not_billed', '0', null],
    );
    // Where nobody pays a listing says what the use is worth, and of a refusal nobody knows any.
    const cost = slug === 'boundless' ? null : '0';
    expected.set(slug, [{ ...entry, id, provider: null, cost }, ...(expected.get(slug) ?? [])]);
  }

  for (const [code, status, model, sent] of KNOWN) {
    const how = sent.framing ?? JSON.stringify(sent.headers ?? sent.body?.slice(0, 30));
    test(`${code} (${how}): ${status}, and one id in body, headers and look-up`, async () => {
      const { slug = 'acme' } = sent;
      const refused = await send(sent);
      assert.equal(refused.status, status, refused.body);
      await assertRecorded(slug, idOf(refused), { model, requested_model: model, status, error: code });
    });
  }

  for (const { path } of GENERATION_ROUTES) {
    test(`${path}: what is no JSON has the id in this route's envelope too`, async () => {
      const refused = await send({ path, body: '{' });
      assert.equal(refused.status, 400, refused.body);
      await assertRecorded('acme', idOf(refused), { model: null, status: 400, error: 'invalid_json' });
    });
  }

  test('an access token, which may not generate, is 403, and shown to whoever holds it', async () => {
    const tenant = await Tenant.adopt(tollgate.url, await organizationIdOf(tollgate.url, ADMIN_TOKEN, 'acme'));
    const refused = await send({ ...json({}), credential: tenant.owner.token });
    assert.equal(refused.status, 403, refused.body);
    const { error } = refusalBody(refused.body);
    assert.equal(error, 'permission denied');
    await assertRecorded('acme', idOf(refused), { model: null, status: 403, error: 'permission_denied' });
  });

  test('a call that reaches no provider has the id of its execution', async () => {
    const refused = await send(json({}));
    assert.equal(refused.status, 502, refused.body);
    const record = await lookupGeneration(tollgate.url, limitedKey('acme'), idOf(refused));
    assert.deepEqual([record?.model, record?.totalCost], ['sim/small', '0']);
    const entry = { id: record?.id, model: 'sim/small', status: 502, error: 'no_reply' };
    expected.set('acme', [entry, ...(expected.get('acme') ?? [])]);
  });

  for (const [name, status, sent] of UNKNOWN) {
    test(`${name}: ${status} with an id, and no record, as its sender is not known`, async () => {
      const refused = await send(sent);
      assert.equal(refused.status, status, refused.body);
      assert.equal(await lookupGeneration(tollgate.url, limitedKey('acme'), idOf(refused)), null);
    });
  }

  test('off generation routes the id is in the body and in the headers that clients show', async () => {
    const key = `Bearer ${limitedKey('acme')}`;
    for (const [method, path, status, authorization] of [
      ['GET', '/v1/models/no/such', 404, key],
      ['GET', '/v1/generation', 400, key],
      ['GET', '/v1/usage/me/requests?limit=none', 400, key],
      ['GET', '/v1/responses/resp_absent', 404, key],
      ['GET', '/v1/usage/me', 401, 'Bearer tg-nobody'],
      ['POST', '/v1/nowhere', 404, key],
      ['PUT', '/v1/chat/completions', 405, key],
    ] as const) {
      const answer = await httpCall(`${tollgate.url}${path}`, { method, headers: { authorization } });
      assert.equal(answer.status, status, path);
      const id = answer.headers['x-request-id'];
      assert.equal(answer.headers['request-id'], id);
      refusalBody(answer.body.toString(), String(id));
    }
  });

  test('listings show each with its id, and nothing of who is not known', async () => {
    for (const [slug, wanted] of expected) {
      const read = () => get(slug, '/v1/usage/me/requests?limit=100') as unknown as Promise<Json[]>;
      const entries = await waitFor(`what ${slug} is listed`, read, (found) => found.length >= wanted.length);
      const namesOf = (index: number): string[] => Object.keys(wanted[index] ?? {});
      const shown = entries.map((entry, at) => Object.fromEntries(namesOf(at).map((name) => [name, entry[name]])));
      assert.deepEqual(shown, wanted, slug);
    }
  });

  test('no money is touched, no limit, and no sum of usage', async () => {
    for (const { slug } of ORGANIZATIONS.filter((organization) => organization.slug !== 'acme')) {
      const { requests, cost } = await get(slug, '/v1/usage/me');
      assert.deepEqual([requests, cost], [0, '0'], slug);
    }
    const { requests, cost } = await get('acme', '/v1/usage/me');
    assert.deepEqual([requests, cost], [1, '0'], 'the one that was admitted');
    const { balance } = await get('acme', '/v1/billing/credits');
    assert.equal(balance, '5');
    const limits = (await get('acme', '/v1/usage/limits/current')) as unknown as Json[];
    // What is lent to a process counts as used of the other.
    assert.equal(limits.find(({ kind }) => kind === 'budget')?.['used'], '0');
  });
});
