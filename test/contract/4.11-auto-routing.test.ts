// Spec 4.11, 3.2, 2.4: auto routing through a whole installation, with the simulated judge: who serves, why, what the
// record says, what the judge is told.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { ModelRoute } from '../../src/domain/routing/model-route.ts';
import { callRoute, GENERATION_ROUTES } from '../support/generation-routes.ts';
import { refusalBody } from '../support/refusal-body.ts';
import {
  ROUTING_ADMIN_TOKEN,
  ROUTING_KEYS,
  ROUTING_PATHS,
  ROUTING_PRICES,
  type RoutedAnswer,
  type RoutedCall,
  type RoutingInstallation,
  startRoutingInstallation,
} from '../support/routing-installation.ts';
import { assistant, judged, LIGHT, type Message, STRONG, user } from '../support/routing-messages.ts';
import { sharedAssets } from '../support/shared-assets.ts';
import { decimalOfPico } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

/** Of spec 4.11 and of clients that are in use, whatever case their names have on the wire. */
const SESSION_HEADERS = [
  'X-Session-Id',
  'x-claude-code-session-id',
  'thread-id',
  'session-id',
  'session_id',
  'x-session-affinity',
  'x-opencode-session',
  'X-Conversation-Id',
  'conversation_id',
  'X-Thread-Id',
  'Thread_Id',
  'x-amp-thread-id',
];

let routing: RoutingInstallation;
before(async () => {
  routing = await startRoutingInstallation({ clickhouse: 'away' });
  // Access is judged by what the credential is known for, so it is set before its first use.
  await routing.postgres.query(
    `UPDATE organizations SET platform_allowed_models = '{sim/elsewhere}' WHERE slug = 'denied'`,
  );
});
after(() => routing?.stop());

/** One that no other test has. */
function session(): Readonly<Record<string, string>> {
  return { 'x-session-id': randomUUID() };
}

async function ask(call: RoutedCall): Promise<RoutedAnswer> {
  const answer = await routing.ask(call);
  assert.equal(answer.status, 200, answer.body);
  return answer;
}

async function route(call: RoutedCall): Promise<ModelRoute & { readonly model: string | null }> {
  const answer = await ask(call);
  return { ...(await routing.routeOf(answer.executionId)), model: answer.model };
}

/** The fields that a test is about. */
function some(
  found: ModelRoute & { readonly model: string | null },
  ...fields: readonly (keyof ModelRoute | 'model')[]
): unknown[] {
  return fields.map((field) => found[field]);
}

describe('a routed request', () => {
  const bodies: readonly [api: keyof typeof ROUTING_PATHS, body: (text: string) => object, model: string][] = [
    ['chat_completions', (text) => ({ messages: [user(text)] }), 'sim/small'],
    ['responses', (text) => ({ input: text }), 'sim/small'],
    ['responses', (text) => ({ input: [user(text)] }), 'sim/small'],
    // The family of the called API is preferred.
    ['messages', (text) => ({ messages: [user(text)] }), 'sim/claude'],
  ];
  for (const [api, body, model] of bodies) {
    test(`on ${api} is a request for the chosen model like any other`, async () => {
      const headers = session();
      const upstreamBefore = routing.upstream.requests.length;
      const answer = await ask({ api, headers, body: { ...body(`Tell me a joke, please. ${LIGHT}`), max_tokens: 50 } });
      assert.equal(answer.model, model);
      const [, served] = routing.upstream.requests.slice(upstreamBefore);
      assert.equal(served?.path, ROUTING_PATHS[api]);
      const sent = JSON.parse(served.body.toString('utf8')) as { model: string };
      assert.equal(sent.model, `${model.slice('sim/'.length)}-1`);
      // Nothing but the model's value has changed.
      assert.equal(
        served.body.toString('utf8').replace(`"${sent.model}"`, '"service/auto"'),
        requestText(api, body(`Tell me a joke, please. ${LIGHT}`)),
      );
      const record = await routing.routeOf(answer.executionId);
      assert.deepEqual(
        [record.requested, record.tier, record.classified_tier, record.reason],
        ['service/auto', 'light', 'light', 'classified'],
      );
      const { rows } = await routing.postgres.query('SELECT model, requested_model FROM generations WHERE id = $1', [
        answer.executionId,
      ]);
      assert.deepEqual(rows, [{ model, requested_model: 'service/auto' }]);
      const shown = await callRoute(`${routing.tollgate.url}/v1/generation?id=${answer.executionId}`, {
        method: 'GET',
        key: ROUTING_KEYS.acme,
      });
      const { data } = JSON.parse(shown.body) as { data: Record<string, unknown> };
      // Spec 2.1: the requested one; the routed one stands beside it.
      assert.deepEqual([data['model'], data['routed_model']], ['service/auto', model]);
    });
  }

  function requestText(api: keyof typeof ROUTING_PATHS, body: object): string {
    return JSON.stringify({
      model: 'service/auto',
      ...(api === 'messages' ? { max_tokens: 100 } : {}),
      ...body,
      max_tokens: 50,
    });
  }

  test('says whom it was served by where it streams, too', async () => {
    const answer = await ask({ headers: session(), body: { stream: true, messages: [user(`Stream it. ${STRONG}`)] } });
    assert.equal(answer.model, 'sim/large');
    assert.match(answer.body, /\[DONE\]\s*$/);
  });

  test('a model that is strong at the kind of work is tried first', async () => {
    const found = await route({
      headers: session(),
      body: { messages: [user(`Fix the loop. ${LIGHT}${judged('kind=code')}`)] },
    });
    assert.deepEqual(some(found, 'model', 'task', 'picked_by', 'tier'), ['sim/coder', 'code', 'strength', 'light']);
    const native = await route({
      api: 'messages',
      headers: session(),
      body: { messages: [user(`A poem. ${LIGHT}${judged('kind=prose')}`)] },
    });
    assert.deepEqual(some(native, 'model', 'task', 'picked_by'), ['sim/claude', 'prose', 'native_api']);
    const plain = await route({
      headers: session(),
      body: { messages: [user(`A poem. ${LIGHT}${judged('kind=prose')}`)] },
    });
    assert.deepEqual(some(plain, 'model', 'picked_by'), ['sim/small', undefined]);
  });

  test('a candidate that cannot serve the called API fails as if it had been named', async () => {
    const answer = await routing.ask({
      api: 'responses',
      headers: session(),
      body: { input: `Nice day. ${LIGHT}${judged('kind=smalltalk')}` },
    });
    const named = await callRoute(`${routing.tollgate.url}/v1/responses`, {
      key: ROUTING_KEYS.acme,
      body: '{"model":"sim/chatter","input":"hi"}',
    });
    assert.deepEqual([answer.status, refusalBody(answer.body)], [400, refusalBody(named.body)]);
  });

  test('a model that the client names is not routed', async () => {
    const before = routing.judged().length;
    const answer = await ask({ body: { model: 'sim/small', messages: [user(`Not routed. ${STRONG}`)] } });
    assert.equal(answer.model, null);
    const look = { method: 'GET', key: ROUTING_KEYS.acme };
    const shown = await callRoute(`${routing.tollgate.url}/v1/generation?id=${answer.executionId}`, look);
    const { data } = JSON.parse(shown.body) as { data: Record<string, unknown> };
    assert.deepEqual([data['model'], data['routed_model']], ['sim/small', undefined]);
    const record = async () =>
      (
        await routing.postgres.query('SELECT model_route FROM generations WHERE id = $1 AND ended_at IS NOT NULL', [
          answer.executionId,
        ])
      ).rows;
    assert.deepEqual(await waitFor('the record', record, (rows) => rows.length > 0), [{ model_route: null }]);
    assert.equal(routing.judged().length, before);
  });

  test('on other endpoints the virtual model is one that they do not serve', async () => {
    const others = GENERATION_ROUTES.filter(({ model }) => model !== 'sim/small');
    assert.deepEqual(new Set(others.map(({ model }) => model)), new Set(['sim/image', 'sim/embedding', 'sim/judge']));
    for (const { path, fields } of others) {
      const call = (key: string) =>
        callRoute(routing.tollgate.url + path, { key, body: JSON.stringify({ model: 'service/auto', ...fields }) });
      assert.equal((await call(ROUTING_KEYS.acme)).status, 400, path);
      assert.equal((await call(ROUTING_KEYS.off)).status, 404, path);
    }
  });

  test('is listed for whom it is there', async () => {
    const ids = async (key: string) => {
      const { data } = JSON.parse(
        (await callRoute(`${routing.tollgate.url}/v1/models`, { method: 'GET', key })).body,
      ) as { data: { id: string }[] };
      return data.map(({ id }) => id);
    };
    assert.equal((await ids(ROUTING_KEYS.acme)).at(-1), 'service/auto');
    for (const key of [ROUTING_KEYS.off, ROUTING_KEYS.denied, ROUTING_KEYS.stranded])
      assert.ok(!(await ids(key)).includes('service/auto'));
  });
});

describe('why a tier serves', () => {
  const text = (words: string): object => ({ messages: [user(`What is the matter with it? ${judged(words)}`)] });

  test('low_confidence_escalated: one tier above the classifier’s choice', async () => {
    const found = await route({ headers: session(), body: text('tier=light:0.6:0.3') });
    assert.deepEqual(some(found, 'reason', 'tier', 'classified_tier', 'confidence', 'escalated', 'tier_rank'), [
      'low_confidence_escalated',
      'strong',
      'light',
      0.3,
      true,
      1,
    ]);
    assert.deepEqual(found.distribution, { light: 0.6, strong: 0.4 });
  });

  const failures: readonly [string, string][] = [
    ['an error', 'status=503'],
    ['an answer that is no tier', 'tier=enormous'],
    ['no answer about the tier', 'omit=tier'],
    ['a reply that breaks off', 'cut_after=10'],
  ];
  for (const [title, words] of failures) {
    test(`classifier_failed: ${title}`, async () => {
      const found = await route({ headers: session(), body: text(words) });
      assert.deepEqual(some(found, 'reason', 'tier', 'model', 'confidence', 'classified_tier'), [
        'classifier_failed',
        'strong',
        'sim/large',
        undefined,
        undefined,
      ]);
      assert.equal(found.classifier?.model, 'judge-latest');
    });
  }

  test('classifier_failed: no answer in time', async () => {
    const started = performance.now();
    const found = await route({ headers: session(), body: text('blackhole') });
    assert.deepEqual(some(found, 'reason', 'model'), ['classifier_failed', 'sim/large']);
    assert.ok((found.classifier?.latency_ms ?? 0) >= 4_900 && performance.now() - started < 60_000);
  });

  test('no_request_text: no human text in the body, and nobody is asked', async () => {
    const before = routing.judged().length;
    const bodies: readonly [keyof typeof ROUTING_PATHS, object][] = [
      ['chat_completions', { messages: [{ role: 'system', content: 'You are kind.' }] }],
      ['chat_completions', { messages: [] }],
      [
        'messages',
        { messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: 'output' }] }] },
      ],
      ['responses', { input: [{ type: 'function_call_output', call_id: 'c', output: 'output' }] }],
    ];
    for (const [api, body] of bodies) {
      const answer = await routing.ask({ api, headers: session(), body });
      assert.deepEqual(
        [answer.model, (await routing.routeOf(answer.executionId)).reason],
        ['sim/large', 'no_request_text'],
        JSON.stringify(body),
      );
    }
    assert.equal(routing.judged().length, before);
  });

  test('classifier_skipped: a token count with no classified turn yet; later it follows the turn', async () => {
    const before = routing.judged().length;
    const headers = session();
    const body = { messages: [user(`How many tokens may this be? ${LIGHT}`)] };
    const first = await route({ api: 'count_tokens', headers, body });
    assert.deepEqual(some(first, 'reason', 'tier', 'model', 'cached'), [
      'classifier_skipped',
      'strong',
      'sim/large',
      false,
    ]);
    assert.equal(routing.judged().length, before);
    const turn = await route({ api: 'messages', headers, body });
    assert.deepEqual(some(turn, 'reason', 'model', 'cached'), ['classified', 'sim/claude', false]);
    const count = await route({ api: 'count_tokens', headers, body });
    assert.deepEqual(some(count, 'reason', 'model', 'cached'), ['classified', 'sim/claude', true]);
    assert.equal(routing.judged().length, before + 1);
  });

  test('continuation: a response is continued on the model that produced it', async () => {
    const headers = session();
    const first = await ask({ api: 'responses', headers, body: { input: `Think about the sea. ${STRONG}` } });
    assert.equal(first.model, 'sim/large');
    const before = routing.judged().length;
    const { id } = JSON.parse(first.body) as { id: string };
    const next = { input: `And now the lakes. ${LIGHT}`, previous_response_id: id };
    const found = await route({ api: 'responses', headers, body: next });
    assert.deepEqual(
      some(found, 'reason', 'tier', 'model', 'previous_model', 'previous_tier', 'baseline_model', 'cached'),
      ['continuation', 'strong', 'sim/large', 'sim/large', 'strong', 'sim/large', false],
    );
    const result = { type: 'function_call_output', call_id: 'call_1', output: 'done' };
    const loop = await route({ api: 'responses', headers, body: { ...next, input: [result] } });
    assert.deepEqual(
      some(loop, 'reason', 'model', 'previous_model', 'previous_tier', 'cached'),
      ['continuation', 'sim/large', undefined, undefined, true],
      'a tool’s result is of the same turn',
    );
    assert.equal(routing.judged().length, before);
    const foreign = await routing.ask({ api: 'responses', key: ROUTING_KEYS.free, headers, body: next });
    assert.equal(foreign.status, 404);
  });
});

describe('a conversation', () => {
  const opening = `Please write a small program. ${LIGHT}`;
  const call = { id: 'call_1', type: 'function', function: { name: 'run', arguments: '{}' } };
  const loop: readonly Message[] = [
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: 'call_1', content: `The output says ${STRONG}` },
  ];

  test(
    'stays on one model through a turn and is classified once for it; the ' + 'next message may land elsewhere',
    async () => {
      const headers = session();
      const before = routing.judged().length;
      const first = await route({ headers, body: { messages: [user(opening)] } });
      assert.deepEqual(some(first, 'model', 'cached', 'previous_model'), ['sim/small', false, undefined]);
      assert.equal(first.classifier?.model, 'judge-latest');
      let messages: readonly Message[] = [user(opening)];
      for (let round = 0; round < 3; round += 1) {
        messages = [...messages, ...loop];
        const found = await route({ headers, body: { messages } });
        assert.deepEqual(some(found, 'model', 'tier', 'reason', 'cached', 'classifier', 'turn'), [
          'sim/small',
          'light',
          'classified',
          true,
          undefined,
          first.turn,
        ]);
      }
      assert.equal(routing.judged().length, before + 1);
      messages = [...messages, assistant('Done.'), user(`Prove that it is right. ${STRONG}`)];
      const next = await route({ headers, body: { messages } });
      assert.deepEqual(some(next, 'model', 'tier', 'cached', 'previous_model', 'previous_tier', 'sticky'), [
        'sim/large',
        'strong',
        false,
        'sim/small',
        'light',
        false,
      ]);
      assert.deepEqual([next.session, next.conversation], [first.session, first.conversation]);
      assert.notEqual(next.turn, first.turn);
      assert.equal(routing.judged().length, before + 2);
      // The first turn again, as when its answer is made anew.
      assert.deepEqual(some(await route({ headers, body: { messages: [user(opening)] } }), 'model', 'cached'), [
        'sim/small',
        true,
      ]);
    },
  );

  test('is recognized by the session of its headers or body, else by its first message', async () => {
    const names: readonly [string, (id: string) => Pick<RoutedCall, 'api' | 'headers'> & { readonly body?: object }][] =
      [
        ...SESSION_HEADERS.map((name): [string, (id: string) => { headers: Record<string, string> }] => [
          name,
          (id) => ({ headers: { [name]: id } }),
        ]),
        [
          'metadata.user_id',
          (id) => ({ api: 'messages', body: { metadata: { user_id: JSON.stringify({ session_id: id }) } } }),
        ],
        ['prompt_cache_key', (id) => ({ body: { prompt_cache_key: id } })],
        ['the first message', (id) => ({ body: { user: id } })],
      ];
    for (const [name, named] of names) {
      const id = randomUUID();
      const { api, headers = {}, body = {} } = named(id);
      // The message alone names the conversation in the last case; in the others it is too short to.
      const text = name === 'the first message' ? `${id} is what this is about` : 'again?';
      const turn = { ...(api === undefined ? {} : { api }), headers, body: { ...body, messages: [user(text)] } };
      assert.equal((await route(turn)).cached, false, name);
      assert.equal((await route(turn)).cached, true, name);
      const other = named(randomUUID());
      const elsewhere = {
        ...turn,
        headers: other.headers ?? {},
        body: { ...other.body, messages: [user(`${text}, elsewhere`)] },
      };
      assert.equal((await route(elsewhere)).cached, false, `${name}, another one`);
    }
  });

  test('a client’s request id is no session, and a short first message names nothing', async () => {
    const turn = { headers: { 'x-client-request-id': randomUUID() }, body: { messages: [user('once more?')] } };
    for (let round = 0; round < 2; round += 1)
      assert.deepEqual(some(await route(turn), 'cached', 'session'), [false, undefined]);
  });

  test('belongs to its payer: nobody else meets its turns', async () => {
    const turn = { headers: session(), body: { messages: [user(`Tell me about the sea. ${LIGHT}`)] } };
    assert.equal((await route(turn)).cached, false);
    assert.equal((await route({ ...turn, key: ROUTING_KEYS.free })).cached, false);
  });

  test('a title that an agent asks for in its own words is another conversation of the session', async () => {
    const headers = session();
    const main = await route({ headers, body: { messages: [user(`Please repair the engine of my car. ${STRONG}`)] } });
    const side = await route({
      headers,
      body: { messages: [user(`Generate a title for this conversation. ${LIGHT}`)] },
    });
    assert.deepEqual([main.model, side.model, side.previous_model], ['sim/large', 'sim/small', undefined]);
    const next = {
      messages: [
        user(`Please repair the engine of my car. ${STRONG}`),
        assistant('How?'),
        user(`With a hammer. ${LIGHT}`),
      ],
    };
    assert.deepEqual(some(await route({ headers, body: next }), 'model', 'previous_model'), ['sim/small', 'sim/large']);
  });

  test('a correction starts one tier above the tier that answered', async () => {
    const headers = session();
    const first = [user(`What is the capital of Australia? ${LIGHT}`)];
    assert.deepEqual(
      some(await route({ headers, body: { messages: first } }), 'model', 'correction', 'correction_probability'),
      ['sim/small', false, undefined],
    );
    const found = await route({
      headers,
      body: { messages: [...first, assistant('Sydney.'), user(`That is wrong. ${LIGHT}${judged('correction=0.9')}`)] },
    });
    assert.deepEqual(
      some(
        found,
        'reason',
        'tier',
        'classified_tier',
        'correction',
        'correction_probability',
        'previous_tier',
        'escalated',
      ),
      ['correction_escalated', 'strong', 'light', true, 0.9, 'light', true],
    );
  });

  test('a long one stays on its model for its prompt cache when it needs no more', async () => {
    const headers = session();
    const long = `Here is a book: ${'words and words '.repeat(6_000)}${STRONG}`;
    const first = [user(long)];
    assert.equal((await route({ headers, body: { messages: first } })).model, 'sim/large');
    const messages = [...first, assistant('I have read it.'), user(`Thanks. ${LIGHT}`)];
    const found = await route({ headers, body: { messages } });
    assert.deepEqual(some(found, 'model', 'tier', 'classified_tier', 'sticky', 'reason'), [
      'sim/large',
      'strong',
      'light',
      true,
      'classified',
    ]);
  });

  test('signed reasoning of the previous model keeps the turn on it, and the record says so', async () => {
    const headers = session();
    const first = [user(`Think about the stars for me. ${STRONG}`)];
    assert.equal((await route({ api: 'messages', headers, body: { messages: first } })).model, 'sim/large');
    const thought = {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'hm', signature: 'c2lnbmVk' },
        { type: 'text', text: 'They shine.' },
      ],
    };
    const found = await route({
      api: 'messages',
      headers,
      body: { messages: [...first, thought, user(`Thank you very much. ${LIGHT}`)] },
    });
    assert.deepEqual(some(found, 'model', 'tier', 'classified_tier', 'safety'), [
      'sim/large',
      'strong',
      'light',
      'signed_reasoning',
    ]);
    assert.deepEqual(found.rejected, [{ model: 'sim/claude', tier: 'light', reason: 'signed_reasoning' }]);
  });

  test('what is hostile about one fails nothing', async () => {
    const texts: readonly [string, object][] = [
      ['a megabyte of one character', { messages: [user('a'.repeat(1_000_000))] }],
      [
        'ten thousand messages',
        {
          messages: Array.from({ length: 10_000 }, (_, index) =>
            index % 2 === 0 ? user(`${index}`) : assistant('ok'),
          ).concat([user('last')]),
        },
      ],
      ['half of a pair', { messages: [user('\ud800 is half of something \udc00')] }],
      [
        'blocks that are none',
        { messages: [{ role: 'user', content: [null, 7, 'text', { type: 'text', text: { deep: [] } }, [[]]] }] },
      ],
    ];
    for (const [title, body] of texts) {
      const answer = await routing.ask({ headers: session(), body });
      assert.ok(answer.status === 200 || answer.status === 400, `${title}: ${answer.status} ${answer.body}`);
      assert.notEqual(answer.model, null, title);
    }
  });
});

describe('the record’s money', () => {
  test(
    'the baseline is priced by the same tokens; the classifier’s price is ' + 'recorded and charged to nobody',
    async () => {
      for (const [words, price] of [
        [LIGHT, ROUTING_PRICES.small],
        [STRONG, ROUTING_PRICES.large],
      ] as const) {
        const answer = await ask({ headers: session(), body: { messages: [user(`What does it cost? ${words}`)] } });
        const record = await routing.routeOf(answer.executionId);
        const { usage } = JSON.parse(answer.body) as { usage: { prompt_tokens: number; completion_tokens: number } };
        const [input, output] = [BigInt(usage.prompt_tokens), BigInt(usage.completion_tokens)];
        assert.equal(record.baseline_model, 'sim/large');
        assert.equal(
          record.baseline_cost_usd,
          decimalOfPico(input * ROUTING_PRICES.large.input + output * ROUTING_PRICES.large.output),
        );
        const { rows } = await routing.postgres.query<{ charge: string }>(
          'SELECT charge::text FROM generations WHERE id = $1',
          [answer.executionId],
        );
        assert.equal(rows[0]?.charge, String(input * price.input + output * price.output));
        const judgedTokens = record.classifier?.input_tokens ?? 0;
        assert.ok(judgedTokens > 0);
        assert.equal(record.classifier?.cost_usd, decimalOfPico(BigInt(judgedTokens) * 42_000n));
      }
    },
  );

  test('an organization that is not billed has a baseline by the catalog’s price', async () => {
    const found = await route({
      key: ROUTING_KEYS.free,
      headers: session(),
      body: { messages: [user(`What would it cost? ${LIGHT}`)] },
    });
    assert.match(found.baseline_cost_usd ?? '', /^0\.0\d+$/);
  });

  test('a request that failed compares with nothing', async () => {
    const answer = await routing.ask({
      headers: session(),
      body: { messages: [user(`Fail. ${LIGHT}[[sim/text: status=400]]`)] },
    });
    assert.equal(answer.status, 400);
    const record = await routing.routeOf(answer.executionId);
    assert.deepEqual([record.baseline_model, record.baseline_cost_usd], ['sim/large', undefined]);
  });
});

describe('availability', () => {
  const rows: readonly [title: string, key: string, status: number, type: string][] = [
    ['auto routing is off for the organization: like an unknown model', ROUTING_KEYS.off, 404, 'not_found_error'],
    ['no candidate is available', ROUTING_KEYS.stranded, 503, 'api_error'],
    ['the access policy excludes every candidate', ROUTING_KEYS.denied, 403, 'permission_error'],
  ];
  for (const [title, key, status, type] of rows) {
    test(`${status}: ${title}`, async () => {
      const before = routing.upstream.requests.length;
      for (const api of Object.keys(ROUTING_PATHS) as (keyof typeof ROUTING_PATHS)[]) {
        const body = api === 'responses' ? { input: 'hello there' } : { messages: [user('hello there')] };
        const answer = await routing.ask({ api, key, body });
        assert.equal(answer.status, status, answer.body);
        assert.equal(answer.headers['retry-after'] !== undefined, status === 503);
        const { error } = JSON.parse(answer.body) as { error: { type: string } };
        if (ROUTING_PATHS[api].startsWith('/v1/messages')) assert.equal(error.type, type);
        if (status !== 404) continue;
        const fields = JSON.stringify({ ...body, max_tokens: 1, model: 'no/such' });
        const unknown = await callRoute(routing.tollgate.url + ROUTING_PATHS[api], { key, body: fields });
        const same = refusalBody(unknown.body.replace('no/such', 'service/auto'));
        assert.deepEqual(refusalBody(answer.body), same);
      }
      assert.equal(routing.upstream.requests.length, before, 'no provider was asked');
    });
  }
});

describe('what the classifier is sent', () => {
  const CANARIES = [
    'SYSTEM-CANARY',
    'TOOL-CANARY',
    'ANSWER-CANARY',
    'IMAGE-CANARY',
    'SESSION-CANARY',
    'NAME-CANARY',
    'OLD-CANARY',
    'tg-route',
    'acme',
  ];

  test('the latest message and up to two earlier ones with the policy’s words, and nothing else', async () => {
    const before = routing.judged().length;
    const image = {
      type: 'image_url',
      image_url: { url: 'data:image/png;base64,SU1BR0UtQ0FOQVJZ', detail: 'IMAGE-CANARY' },
    };
    const messages = [
      { role: 'system', content: 'SYSTEM-CANARY' },
      { role: 'developer', content: 'SYSTEM-CANARY' },
      user('OLD-CANARY is the first of four messages'),
      assistant('ANSWER-CANARY'),
      user('the second message'),
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{"a":"TOOL-CANARY"}' } }],
      },
      { role: 'tool', tool_call_id: 'c', content: 'TOOL-CANARY' },
      { role: 'user', name: 'NAME-CANARY', content: [{ type: 'text', text: 'the third message' }, image] },
      user('the fourth message'),
    ];
    await ask({
      headers: { 'x-session-id': 'SESSION-CANARY', 'x-service-tag': 'SESSION-CANARY' },
      body: { messages, user: 'NAME-CANARY' },
    });
    const [call, ...more] = routing.judged().slice(before);
    assert.equal(more.length, 0);
    const wire = `${call?.headers.map((header) => header.join(': ')).join('\n')}\n${call?.body.toString('utf8')}`;
    for (const canary of CANARIES) assert.ok(!wire.includes(canary), `${canary} in ${wire}`);
    const body = JSON.parse(call?.body.toString('utf8') ?? '') as Record<string, unknown> & {
      questions: Record<string, { type: string; criteria: unknown }>;
    };
    assert.deepEqual(Object.keys(body).sort(), ['model', 'questions', 'state']);
    assert.deepEqual(Object.values(body['state'] as object), [
      'the second message',
      'the third message',
      'the fourth message',
    ]);
    assert.deepEqual(
      Object.entries(body.questions).map(([id, { type }]) => [id, type]),
      [
        ['tier', 'choice'],
        ['kind', 'choice'],
        ['correction', 'noul'],
      ],
    );
    assert.deepEqual(body.questions['tier']?.criteria, { light: 'Easy.', strong: 'Hard.' });
    assert.deepEqual(body.questions['kind']?.criteria, { code: 'Code.', prose: 'Text.', smalltalk: 'Chat.' });
    assert.deepEqual(call?.headers.map(([name]) => name.toLowerCase()).sort(), [
      'accept-encoding',
      'authorization',
      'connection',
      'content-length',
      'content-type',
      'host',
    ]);
    assert.equal(call?.header('authorization'), 'Bearer sk-provider-canary');
  });

  const agents = sharedAssets('agents');
  test('of real agents: what their users wrote, once a turn', {
    skip: agents === null && 'the recordings are not there',
  }, async () => {
    for (const file of readdirSync(agents ?? '').filter(
      (name) => /^(claude-code|codex|opencode|cline).*\.json$/.test(name) && !name.includes('ws-upgrade'),
    )) {
      const recorded = JSON.parse(readFileSync(join(agents ?? '', file), 'utf8')) as {
        url: string;
        headers: Record<string, string>;
        body: object;
      };
      const path = new URL(recorded.url, 'http://x').pathname.replace(/^(?!\/v1)/, '/v1');
      const kept = Object.entries(recorded.headers).filter(([name]) =>
        /session|^x-client-request-id$|^anthropic-/i.test(name),
      );
      const key = ROUTING_KEYS.free;
      const before = routing.judged().length;
      const body = JSON.stringify({ ...recorded.body, model: 'service/auto', stream: false });
      const answer = await callRoute(routing.tollgate.url + path, { key, headers: Object.fromEntries(kept), body });
      assert.equal(answer.status, 200, `${file}: ${answer.body.slice(0, 300)}`);
      const calls = routing.judged().slice(before);
      assert.equal(calls.length, /req2/.test(file) ? 0 : 1, file);
      for (const { body: sent } of calls) {
        const { state } = JSON.parse(sent.toString('utf8')) as { state: Record<string, string> };
        assert.ok(sent.length < 20_000, file);
        assert.doesNotMatch(
          JSON.stringify(state),
          /system-reminder|environment_context|<permissions|You are Codex|billing-header/,
          file,
        );
      }
    }
  });
});

describe('policies', () => {
  const admin = (method: string, path: string, body?: object) =>
    callRoute(routing.tollgate.url + path, {
      method,
      key: ROUTING_ADMIN_TOKEN,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const data = (answer: { body: string }) => (JSON.parse(answer.body) as { data: Record<string, unknown> }).data;
  const oneTierOf = (model: string) => ({
    classifier: { model: 'judge-latest' },
    tiers: [{ name: 'only', description: 'All.', models: [{ id: model }] }],
  });

  test('every change is a new version, which every record names; the same again is none', async () => {
    const put = (model: string) => admin('PUT', '/v1/admin/routing/policies/mine', oneTierOf(model));
    const first = await put('sim/small');
    assert.equal(first.status, 200, first.body);
    assert.deepEqual([data(first)['version'], data(first)['organizations']], [1, 0]);
    assert.equal(data(await put('sim/small'))['version'], 1);
    const { rows } = await routing.postgres.query<{ id: string }>(`SELECT id FROM organizations WHERE slug = 'off'`);
    const path = `/v1/admin/organizations/${rows[0]?.id}/routing`;
    assert.deepEqual(data(await admin('GET', path)), { policy: null });
    assert.deepEqual(data(await admin('PUT', path, { policy: 'mine' })), { policy: 'mine' });
    const call = { key: ROUTING_KEYS.off, body: { messages: [user('Who are you?')] } };
    const served = await waitFor(
      'the gateway to follow',
      () => routing.ask(call),
      ({ status }) => status === 200,
    );
    assert.equal(served.model, 'sim/small');
    assert.equal(data(await put('sim/large'))['version'], 2);
    const next = await waitFor(
      'the gateway to follow',
      () => routing.ask(call),
      ({ model }) => model === 'sim/large',
    );
    for (const [answer, version] of [
      [served, 1],
      [next, 2],
    ] as const) {
      const record = await routing.routeOf(answer.executionId);
      assert.deepEqual([record.policy, record.policy_version], ['mine', version]);
    }
    const shown = data(await admin('GET', '/v1/admin/routing/policies/mine')) as {
      versions: { version: number; definition: object }[];
      organizations: number;
    };
    assert.deepEqual(
      shown.versions.map(({ version, definition }) => [version, definition]),
      [
        [2, oneTierOf('sim/large')],
        [1, oneTierOf('sim/small')],
      ],
    );
    assert.equal(shown.organizations, 1);
    const list = (
      JSON.parse((await admin('GET', '/v1/admin/routing/policies')).body) as {
        data: { name: string; version: number }[];
      }
    ).data;
    assert.deepEqual(
      list.map(({ name, version }) => [name, version]),
      [
        ['default', 1],
        ['lettered', 1],
        ['local', 1],
        ['mine', 2],
        ['stranded', 1],
      ],
    );
    assert.equal((await admin('PUT', path, { policy: null })).status, 200);
    await waitFor(
      'the gateway to follow',
      () => routing.ask(call),
      ({ status }) => status === 404,
    );
    await assert.rejects(
      routing.postgres.query(`UPDATE routing_policies SET version = 9 WHERE name = 'mine'`),
      /append-only/,
    );
    const { rows: audited } = await routing.postgres.query(
      `SELECT action FROM audit_log WHERE action LIKE '%routing%' AND actor_label <> 'configuration file'
        ORDER BY created_at`,
    );
    assert.deepEqual(
      audited.map(({ action }) => action),
      ['routing_policy.put', 'organization.routing', 'routing_policy.put', 'organization.routing'],
    );
  });

  test('what cannot work is refused by its first mistake', async () => {
    const mistakes: readonly [object, RegExp][] = [
      [oneTierOf('sim/nowhere'), /tiers\.0\.models\.0\.id.*there is no model \\"sim\/nowhere\\" in the catalog/],
      [oneTierOf('sim/gone'), /there is no model \\"sim\/gone\\"/],
      [
        { ...oneTierOf('sim/small'), classifier: { model: 'sim/small' } },
        /classifier\.model.*must be a model of kind evaluation/,
      ],
      [{ ...oneTierOf('sim/small'), tiers: [] }, /must have at least one tier/],
      [{ ...oneTierOf('sim/small'), fallback_tier: 'none' }, /fallback_tier.*there is no tier/],
      [{ ...oneTierOf('sim/small'), colour: 'red' }, /colour/],
    ];
    for (const [definition, expected] of mistakes) {
      const answer = await admin('PUT', '/v1/admin/routing/policies/wrong', definition);
      assert.equal(answer.status, 400, answer.body);
      assert.match(answer.body, expected);
    }
    assert.equal((await admin('GET', '/v1/admin/routing/policies/wrong')).status, 404);
    assert.equal((await admin('PUT', '/v1/admin/routing/policies/Not%20A%20Name', oneTierOf('sim/small'))).status, 404);
    const { rows } = await routing.postgres.query<{ id: string }>(`SELECT id FROM organizations WHERE slug = 'off'`);
    assert.equal(
      (await admin('PUT', `/v1/admin/organizations/${rows[0]?.id}/routing`, { policy: 'nobody' })).status,
      400,
    );
    assert.equal((await admin('PUT', `/v1/admin/organizations/${randomUUID()}/routing`, { policy: null })).status, 404);
    const key = await callRoute(`${routing.tollgate.url}/v1/admin/routing/policies`, {
      method: 'GET',
      key: ROUTING_KEYS.acme,
    });
    assert.equal(key.status, 403);
  });
});
