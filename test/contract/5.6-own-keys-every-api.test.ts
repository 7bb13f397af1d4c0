// Spec 5.6 on every route beside the three dialects: images, embeddings, typed questions, token counts, stored
// responses and the classifier of auto routing. Who is called with which key, what the client is told where the key
// cannot serve, what is charged.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { type FakeUpstream, type Script, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { callRoute } from '../support/generation-routes.ts';
import { httpCall } from '../support/http-call.ts';
import { ADMIN_TOKEN, organizationIdOf, Tenant } from '../support/identity-world.ts';
import type { ReceivedRequest } from '../support/request-reader.ts';
import { PROVIDER_KEY } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

type Json = Readonly<Record<string, unknown>>;

const TEXT = '[chat_completions, responses, messages, count_tokens]';
const FEE = 'fee: { per_request: "0.001" }';
/** What each organization's key is answered, and what is said of its use. */
const ORGANIZATIONS = {
  good: { secret: 'sk-own-good', byok: FEE, key: '' },
  refused: { secret: 'sk-own-refused', byok: '', key: '' },
  stepping: { secret: 'sk-own-stepping-refused', byok: 'fallback: true', key: '' },
  owning: { secret: 'sk-own-owning', byok: 'classifier: own', key: '' },
  judgeless: { secret: 'sk-own-judgeless', byok: 'classifier: own', key: 'models: [sim/small, sim/large],' },
} as const;
const REFUSED: Script = {
  status: 401,
  headers: [['content-type', 'application/json']],
  body: '{"error":{"message":"Incorrect API key provided: sk-own-***"}}',
};
/**
 * What the key that asks the classifier is answered, in an organization whose models another key serves; and the state
 * that the store then has of it: suspected, until its provider is asked about it.
 */
const JUDGES: Readonly<Record<string, { readonly answer: Script | null; readonly state: string }>> = {
  key: { answer: REFUSED, state: 'suspected' },
  quota: { answer: { status: 402, body: '{"error":{"message":"Insufficient balance"}}' }, state: 'cooling_down' },
  scope: {
    answer: { status: 403, body: '{"error":{"message":"You have insufficient permissions for this operation."}}' },
    state: 'unverified',
  },
  rate: { answer: { status: 429, headers: [['retry-after', '600']], body: '{}' }, state: 'unverified' },
  failing: { answer: { status: 500, body: '{}' }, state: 'unverified' },
  broken: { answer: { status: 503, headers: [['retry-after', '600']], body: '{}' }, state: 'unverified' },
  turning: { answer: null, state: 'unverified' },
  turned: { answer: REFUSED, state: 'unverified' },
};
/** Of those the one whose key's rotation a test begins with; the other is the secret that it gets. */
const [TURNING, TURNED] = ['turning', 'turned'] as const;
const LATE = 'late';
const keyOf = (slug: string): string => `tg-own-apis-${slug}-${'k'.repeat(24)}`;

function configurationOf(upstreamUrl: string): string {
  const model = (id: string, kind: string, apis: string, price: string) =>
    `  - { id: sim/${id}, kind: ${kind}, context_length: 100000, ` +
    `${kind === 'text' ? 'max_completion_tokens_cap: 1000, ' : ''}` +
    `served_by: [{ provider: upstream, model: ${id}-1, apis: ${apis}, price: ${price} }] }`;
  const organization = (slug: string, more: string) => `  - slug: ${slug}
    billing: prepaid
    opening_credit: "10.00"
    auto_routing: { policy: default }
    users: [{ email: owner@${slug}.test, role: owner }]
    keys: [{ name: only, user: owner@${slug}.test, secret: ${keyOf(slug)} }]${more}`;
  return `providers:
  - { id: upstream, base_url: "${upstreamUrl}", api_key: ${PROVIDER_KEY} }
models:
${model('small', 'text', TEXT, '{ input: "1", output: "10" }')}
${model('large', 'text', TEXT, '{ input: "2", output: "20" }')}
${model('image', 'image', '[images]', '{ image: "0.04" }')}
${model('embedding', 'embedding', '[embeddings]', '{ input: "0.04" }')}
${model('judge', 'evaluation', '[systemone]', '{ input: "0.04" }')}
routing_policies:
  - name: default
    classifier: { model: sim/judge, timeout_ms: 5000, confidence_floor: 0.6 }
    tiers:
      - { name: light, description: "Easy.", models: [{ id: sim/small }] }
      - { name: strong, description: "Hard.", models: [{ id: sim/large }] }
    fallback_tier: strong
organizations:
${Object.entries(ORGANIZATIONS)
  .map(([slug, { secret, byok, key }]) =>
    organization(
      slug,
      `
    byok: { enabled: true${byok === '' ? '' : `, ${byok}`} }
    provider_credentials: [{ kind: upstream, name: ours, ${key} secret: ${secret} }]`,
    ),
  )
  .join('\n')}
${organization(LATE, '\n    byok: { enabled: true }')}
${Object.keys(JUDGES)
  .map((name) =>
    organization(
      `judge-${name}`,
      `
    byok: { enabled: true, classifier: own }
    provider_credentials:
      - { kind: upstream, name: asks, models: [sim/judge], secret: sk-own-judge-${name} }
      - { kind: upstream, name: serves, models: [sim/small, sim/large], secret: sk-own-serves-${name} }`,
    ),
  )
  .join('\n')}
`;
}

const JSON_HEADERS = [['content-type', 'application/json']] as [string, string][];
const REPLIES: readonly (readonly [path: string, reply: Json])[] = [
  ['/v1/messages/count_tokens', { input_tokens: 7 }],
  ['/v1/messages', { type: 'message', content: [], usage: { input_tokens: 10, output_tokens: 4 } }],
  ['/v1/images', { created: 1, data: [{ b64_json: 'AA==' }], usage: { input_tokens: 10, output_tokens: 4 } }],
  ['/v1/embeddings', { object: 'list', data: [], usage: { prompt_tokens: 10, total_tokens: 10 } }],
  [
    '/v1/systemone',
    {
      model: 'judge-1',
      answers: { tier: { type: 'choice', choice: 'light', confidence: 0.9, probabilities: { light: 0.9 } } },
      usage: { input_tokens: 10 },
    },
  ],
  ['/v1/chat', { choices: [{ message: { content: 'ok' } }], usage: { prompt_tokens: 10, completion_tokens: 4 } }],
];
let responses = 0;
/** What who reads a saved response with a key is answered instead. */
const readsInstead = new Map<string, Script>();

function answer(request: ReceivedRequest): Script {
  const { path, method } = request;
  const key = request.header('authorization') ?? '';
  if (key.endsWith('refused')) return REFUSED;
  const judge = /-judge-(\w+)$/.exec(key)?.[1];
  // Whoever asks about the rotated key learns nothing of it, so that what requests have met stays.
  if (judge === TURNED && path.startsWith('/v1/models')) return { status: 500, body: '{}' };
  const refused = judge === undefined ? null : JUDGES[judge]?.answer;
  if (refused != null) return refused;
  const instead = path.startsWith('/v1/responses/') ? readsInstead.get(key.replace('Bearer ', '')) : undefined;
  if (instead !== undefined) return instead;
  if (path.startsWith('/v1/responses')) {
    responses += method === 'POST' && path === '/v1/responses' ? 1 : 0;
    const usage = { input_tokens: 10, output_tokens: 4 };
    const made = { id: `resp_made${responses}`, object: 'response', status: 'completed', output: [], usage };
    const reply = path.endsWith('/input_items') ? { object: 'list', data: [] } : made;
    return { headers: JSON_HEADERS, body: JSON.stringify(reply) };
  }
  const found = REPLIES.find(([prefix]) => path.startsWith(prefix));
  return { headers: JSON_HEADERS, body: JSON.stringify(found?.[1] ?? { data: [] }) };
}

const CHAT = { messages: [{ role: 'user', content: 'hi' }], max_tokens: 50 };
const QUESTIONS = { q: { type: 'choice', instructions: 'Is it?', criteria: { yes: null, no: null } } };
/** Of each route: a request, what it costs as fee, and where its refusal has the code. */
const ROUTES = [
  {
    path: '/v1/images/generations',
    body: { model: 'sim/image', prompt: 'a cat' },
    isCharged: true,
    codeIn: ({ error }: Json) => (error as Json)['code'],
  },
  {
    path: '/v1/images/edits',
    body: { model: 'sim/image', prompt: 'a cat', images: [] },
    isCharged: true,
    codeIn: ({ error }: Json) => (error as Json)['code'],
  },
  {
    path: '/v1/embeddings',
    body: { model: 'sim/embedding', input: 'a text' },
    isCharged: true,
    codeIn: ({ error }: Json) => (error as Json)['code'],
  },
  {
    path: '/v1/systemone',
    body: { model: 'sim/judge', state: 's', questions: QUESTIONS },
    isCharged: true,
    codeIn: ({ detail }: Json) => /own key/.exec(JSON.stringify(detail))?.[0] && 'byok_key_unavailable',
  },
  {
    path: '/v1/messages/count_tokens',
    body: { model: 'sim/small', messages: CHAT.messages },
    isCharged: false,
    codeIn: ({ error }: Json) => (error as Json)['type'],
  },
] as const;

describe('own provider keys beside the three dialects', () => {
  let upstream: FakeUpstream;
  let tollgate: Front;
  let database: pg.Client;

  before(async () => {
    upstream = await startFakeUpstream(answer);
    tollgate = await startFront({
      configurationYaml: configurationOf(upstream.url),
      env: { ADMIN_TOKEN },
    });
    database = new pg.Client({ connectionString: tollgate.postgresUrl });
    await database.connect();
  });
  after(async () => {
    await database?.end();
    await tollgate?.stop();
    await upstream?.close();
  });

  async function send(slug: string, path: string, body: Json | null, method = 'POST') {
    const from = upstream.requests.length;
    const call = { method, key: keyOf(slug), ...(body === null ? {} : { body: JSON.stringify(body) }) };
    const reply = await callRoute(`${tollgate.url}${path}`, call);
    // A gateway asks about a key that was refused, by a GET of its own.
    const calls = upstream.requests.slice(from).filter((request) => !request.path.startsWith('/v1/models'));
    return { ...reply, id: String(reply.headers['x-service-execution-id'] ?? ''), calls: calls.map(shown) };
  }

  /** Which key a call had, and where it went. */
  function shown(request: ReceivedRequest): string {
    const { path } = request;
    const key = (request.header('authorization') ?? '').replace('Bearer ', '');
    const whose =
      key === PROVIDER_KEY ? 'service' : Object.entries(ORGANIZATIONS).find(([, one]) => one.secret === key);
    return `${typeof whose === 'string' ? whose : (whose?.[0] ?? key)} ${path}`;
  }

  async function record(slug: string, id: string): Promise<Json> {
    const read = async () => {
      const headers = { authorization: `Bearer ${keyOf(slug)}` };
      const found = await httpCall(`${tollgate.url}/v1/generation?id=${id}`, { headers });
      return found.status === 200 ? (JSON.parse(found.body.toString()) as { data: Json }).data : null;
    };
    const isOver = (found: Json | null): found is Json => found !== null && found['billing_status'] !== 'pending';
    return (await waitFor(`the record of ${id}`, read, isOver)) as Json;
  }

  async function stateOf(slug: string, name: string): Promise<string | undefined> {
    const { rows } = await database.query<{ state: string }>(
      `SELECT CASE WHEN k.suspected_at IS NULL THEN k.state ELSE 'suspected' END AS state
         FROM own_keys k JOIN organizations o ON o.id = k.organization_id WHERE o.slug = $1 AND k.name = $2`,
      [slug, name],
    );
    return rows[0]?.state;
  }

  for (const { path, body, isCharged, codeIn } of ROUTES) {
    test(`${path}: served with the own key alone, at the platform's fee or nothing`, async () => {
      const reply = await send('good', path, body);
      assert.equal(reply.status, 200, reply.body);
      assert.deepEqual(reply.calls, [`good ${path}`]);
      const found = await record('good', reply.id);
      assert.equal(found['credential_source'], 'own');
      assert.deepEqual([found['total_cost'], found['fee']], isCharged ? [0.001, 0.001] : [0, undefined]);
    });

    test(`${path}: a key that is refused is byok_key_unavailable, and nobody else is asked`, async () => {
      const reply = await send('refused', path, body);
      assert.equal(reply.status, 503, reply.body);
      assert.equal(codeIn(JSON.parse(reply.body) as Json), 'byok_key_unavailable', reply.body);
      assert.doesNotMatch(reply.body, /sk-own/);
      assert.ok(reply.calls.length <= 1, reply.calls.join());
      assert.ok(!reply.calls.some((call) => call.startsWith('service')), reply.calls.join());
    });

    test(`${path}: the service steps in where it may`, async () => {
      const reply = await send('stepping', path, body);
      assert.equal(reply.status, 200, reply.body);
      assert.equal(reply.calls.at(-1), `service ${path}`);
      assert.equal((await record('stepping', reply.id))['credential_source'], 'service');
    });
  }

  describe('stored responses', () => {
    const made = async (slug: string): Promise<string> => {
      const reply = await send(slug, '/v1/responses', { model: 'sim/small', input: 'hi', max_output_tokens: 50 });
      assert.equal(reply.status, 200, reply.body);
      return (JSON.parse(reply.body) as { id: string }).id;
    };
    const operations = (id: string) =>
      [
        ['GET', `/v1/responses/${id}`],
        ['GET', `/v1/responses/${id}/input_items`],
        ['POST', `/v1/responses/${id}/cancel`],
      ] as const;

    test('are read, listed, cancelled and continued with the key that made them', async () => {
      const id = await made('good');
      for (const [method, path] of operations(id)) {
        const reply = await send('good', path, null, method);
        assert.equal(reply.status, 200, reply.body);
        assert.deepEqual(reply.calls, [`good ${path}`]);
      }
      const continued = { model: 'sim/small', input: 'on', max_output_tokens: 50, previous_response_id: id };
      assert.deepEqual((await send('good', '/v1/responses', continued)).calls, ['good /v1/responses']);
    });

    test('are nobody else’s: absent to another organization, with or without own keys', async () => {
      const id = await made('good');
      for (const slug of ['owning', LATE]) {
        for (const [method, path] of operations(id)) {
          const reply = await send(slug, path, null, method);
          assert.deepEqual([reply.status, reply.calls], [404, []], reply.body);
        }
        const continued = { model: 'sim/small', input: 'on', max_output_tokens: 50, previous_response_id: id };
        const reply = await send(slug, '/v1/responses', continued);
        assert.deepEqual([reply.status, reply.calls], [404, []], reply.body);
      }
    });

    test('a key that is refused there rests and is suspected; one that may not read them generates on', async () => {
      const read = async (slug: string, id: string) => {
        const { status, calls } = await send(slug, `/v1/responses/${id}`, null, 'GET');
        return [status, calls.length];
      };
      const generate = async (slug: string) =>
        (await send(slug, '/v1/chat/completions', { model: 'sim/small', ...CHAT })).calls.length;
      const restricted = await made('judge-scope');
      readsInstead.set('sk-own-serves-scope', JUDGES['scope']?.answer as Script);
      assert.deepEqual(await read('judge-scope', restricted), [503, 1]);
      assert.equal(await generate('judge-scope'), 1);
      const refused = await made('judge-turned');
      readsInstead.set('sk-own-serves-turned', REFUSED);
      assert.deepEqual(await read('judge-turned', refused), [503, 1]);
      assert.deepEqual([await read('judge-turned', refused), await generate('judge-turned')], [[503, 0], 0]);
      await waitFor(
        'the store to be told',
        () => stateOf('judge-turned', 'serves'),
        (state) => state === 'suspected',
      );
    });

    test('those of the service stay there once the organization has a key', async () => {
      const id = await made(LATE);
      const organizationId = await organizationIdOf(tollgate.url, ADMIN_TOKEN, LATE);
      const tenant = await Tenant.adopt(tollgate.url, organizationId);
      const wanted = { kind: 'upstream', name: 'ours', secret: 'sk-own-late', verify: false };
      const key = await tenant.as('POST', '/provider-credentials', wanted, 201);
      const isFollowed = async () => (await send(LATE, '/v1/responses', { model: 'sim/small', input: 'hi' })).calls;
      await waitFor('the key to be used', isFollowed, ([call]) => call === 'sk-own-late /v1/responses');
      const read = await send(LATE, `/v1/responses/${id}`, null, 'GET');
      assert.deepEqual([read.status, read.calls], [200, [`service /v1/responses/${id}`]]);
      const continued = { model: 'sim/small', input: 'on', max_output_tokens: 50, previous_response_id: id };
      const reply = await send(LATE, '/v1/responses', continued);
      assert.deepEqual([reply.status, reply.calls], [503, []], reply.body);
      // Once it may, the service goes on with what it stores.
      await tenant.as('PATCH', `/provider-credentials/${String(key['id'])}`, { fallback: 'on' });
      const serves = async () => (await send(LATE, '/v1/responses', continued)).calls;
      await waitFor('the service to go on', serves, (calls) => calls.join() === 'service /v1/responses');
    });
  });

  describe('auto routing', () => {
    /** Each asks about a turn of its own. */
    const turn = (slug: string) => {
      const messages = [{ role: 'user', content: `what is it, ${slug} ${crypto.randomUUID()}?` }];
      return send(slug, '/v1/chat/completions', { model: 'service/auto', max_tokens: 50, messages });
    };
    /** With the record of its route. */
    const ask = async (slug: string) => {
      const reply = await turn(slug);
      await record(slug, reply.id);
      const routes = await database.query<{ model_route: Json }>('SELECT model_route FROM generations WHERE id = $1', [
        reply.id,
      ]);
      return { ...reply, route: routes.rows[0]?.model_route };
    };

    test('the service’s key asks the classifier, the own key serves the model', async () => {
      const reply = await ask('good');
      assert.equal(reply.status, 200, reply.body);
      assert.deepEqual(reply.calls, ['service /v1/systemone', 'good /v1/chat/completions']);
    });

    test('with classifier: own the own key asks as well', async () => {
      const reply = await ask('owning');
      assert.equal(reply.status, 200, reply.body);
      assert.deepEqual(reply.calls, ['owning /v1/systemone', 'owning /v1/chat/completions']);
    });

    test('with classifier: own and no key for it nobody is asked', async () => {
      const reply = await ask('judgeless');
      assert.equal(reply.status, 200, reply.body);
      assert.deepEqual(reply.calls, ['judgeless /v1/chat/completions']);
      assert.equal(reply.route?.['reason'], 'classifier_failed');
    });

    test('an own classifier whose key is refused has failed, and the service’s is not asked', async () => {
      const reply = await ask('refused');
      assert.equal(reply.status, 503, reply.body);
      assert.ok(!reply.calls.includes('service /v1/chat/completions'), reply.calls.join());
    });

    const asked = (name: string) => `sk-own-judge-${name} /v1/systemone`;
    const served = (name: string) => `sk-own-serves-${name} /v1/chat/completions`;
    for (const name of ['key', 'quota', 'scope', 'rate']) {
      test(`the key of an own classifier rests when it is refused (${name}): the next turn asks nobody`, async () => {
        const first = await turn(`judge-${name}`);
        assert.deepEqual([first.status, first.calls], [200, [asked(name), served(name)]], first.body);
        const second = await ask(`judge-${name}`);
        assert.deepEqual([second.status, second.calls], [200, [served(name)]], second.body);
        assert.deepEqual([second.route?.['reason'], second.route?.['classifier']], ['classifier_failed', undefined]);
        const expected = JUDGES[name]?.state;
        await waitFor(
          'the store to be told',
          () => stateOf(`judge-${name}`, 'asks'),
          (state) => state === expected,
        );
      });
    }

    test('an own classifier that fails is left alone after five times, and asked on with every other key', async () => {
      for (const name of ['failing', 'broken']) {
        for (let times = 0; times < 5; times += 1)
          assert.deepEqual((await turn(`judge-${name}`)).calls, [asked(name), served(name)]);
        assert.deepEqual((await turn(`judge-${name}`)).calls, [served(name)]);
      }
      assert.deepEqual((await turn('owning')).calls, ['owning /v1/systemone', 'owning /v1/chat/completions']);
      assert.deepEqual((await turn('good')).calls, ['service /v1/systemone', 'good /v1/chat/completions']);
    });

    test('during a rotation the secret before asks the classifier once the new one is refused', async () => {
      const slug = `judge-${TURNING}`;
      const tenant = await Tenant.adopt(tollgate.url, await organizationIdOf(tollgate.url, ADMIN_TOKEN, slug));
      const keys = (await tenant.as('GET', '/provider-credentials')) as unknown as readonly Json[];
      const { id } = keys.find(({ name }) => name === 'asks') as Json;
      const rotation = { secret: `sk-own-judge-${TURNED}`, overlap_seconds: 600, verify: false };
      await tenant.as('POST', `/provider-credentials/${String(id)}/rotate`, rotation);
      const isFollowed = async () => (await turn(slug)).calls;
      await waitFor('the rotation to be followed', isFollowed, ([call]) => call === asked(TURNED));
      const reply = await ask(slug);
      assert.deepEqual(reply.calls, [asked(TURNING), served(TURNING)]);
      assert.equal(reply.route?.['reason'], 'classified');
    });

    test('where own keys keep it from every candidate, it is refused for that, and nobody is asked', async () => {
      await ask('refused');
      const reply = await ask('refused');
      const { error } = JSON.parse(reply.body) as { error: Json };
      assert.deepEqual([reply.status, error['code'], reply.calls], [503, 'byok_key_unavailable', []], reply.body);
      const { own_failures } = await record('refused', reply.id);
      const [failure, ...others] = own_failures as readonly Json[];
      assert.ok(['key_refused', 'invalid'].includes(String(failure?.['reason'])), reply.id);
      assert.deepEqual(others, []);
    });
  });
});
