// POST /v1/admin/routing/preview (spec 4.11): a dry run tells the whole record, and leaves nothing behind but the
// classifier's call.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { ModelRoute } from '../../src/domain/routing/model-route.ts';
import { callRoute } from '../support/generation-routes.ts';
import { httpCall } from '../support/http-call.ts';
import {
  ROUTING_ADMIN_TOKEN,
  ROUTING_KEYS,
  ROUTING_PATHS,
  type RoutingInstallation,
  startRoutingInstallation,
} from '../support/routing-installation.ts';
import { assistant, judged, LIGHT, type Message, STRONG, user } from '../support/routing-messages.ts';
import { waitFor } from '../support/waiting.ts';

interface Shown {
  readonly outcome: string;
  readonly model: string | null;
  readonly model_route: ModelRoute | null;
  readonly classifier_result: string | null;
  readonly human_texts: readonly string[];
  readonly conversation_tokens: number;
  readonly candidates: readonly { readonly tier: string; readonly model: string; readonly rejection: string | null }[];
}

const DRAFT = {
  classifier: { model: 'judge-latest', timeout_ms: 5000 },
  tiers: [
    { name: 'light', description: 'Easy.', models: [{ id: 'sim/coder' }] },
    { name: 'strong', description: 'Hard.', models: [{ id: 'sim/large' }] },
  ],
};

let routing: RoutingInstallation;
const ids = new Map<string, string>();
before(async () => {
  routing = await startRoutingInstallation({ clickhouse: 'away' });
  await routing.postgres.query(
    `UPDATE organizations SET platform_allowed_models = '{sim/elsewhere}' WHERE slug = 'denied'`,
  );
  await routing.postgres.query(
    `UPDATE organizations SET platform_allowed_models = '{sim/claude,sim/large}' WHERE slug = 'free'`,
  );
  const { rows } = await routing.postgres.query<{ slug: string; id: string }>('SELECT slug, id FROM organizations');
  for (const { slug, id } of rows) ids.set(slug, id);
});
after(() => routing?.stop());

function call(fields: object, key: string = ROUTING_ADMIN_TOKEN) {
  const order = { organization_id: ids.get('acme'), api: 'chat_completions', ...fields };
  return callRoute(`${routing.tollgate.url}/v1/admin/routing/preview`, { key, body: JSON.stringify(order) });
}

async function preview(fields: object): Promise<Shown> {
  const answer = await call(fields);
  assert.equal(answer.status, 200, answer.body);
  return (JSON.parse(answer.body) as { data: Shown }).data;
}

const messages = (...all: readonly Message[]): object => ({ model: 'service/auto', messages: all });

describe('a preview', () => {
  test('tells the record that the request then gets, and everything it was decided from', async () => {
    const headers = { 'X-Session-Id': randomUUID() };
    const body = messages({ role: 'system', content: 'Be kind.' }, user(`Tell me a joke. ${LIGHT}`));
    const shown = await preview({ body, headers });
    assert.deepEqual([shown.outcome, shown.model, shown.classifier_result], ['routed', 'sim/small', 'answered']);
    assert.deepEqual(shown.human_texts, [`Tell me a joke. ${LIGHT}`]);
    assert.equal(shown.conversation_tokens, Math.ceil(JSON.stringify(body).length / 4));
    assert.deepEqual(
      shown.candidates.map(({ tier, model, rejection }) => [tier, model, rejection]),
      [
        ...['small', 'claude', 'coder', 'chatter'].map((name) => ['light', `sim/${name}`, null]),
        ['strong', 'sim/large', null],
      ],
    );
    const served = await routing.ask({ headers, body });
    const { baseline_cost_usd: _, classifier, ...record } = await routing.routeOf(served.executionId);
    const { classifier: asked, ...previewed } = shown.model_route as ModelRoute;
    assert.deepEqual(previewed, record);
    assert.deepEqual({ ...asked, latency_ms: 0 }, { ...classifier, latency_ms: 0 });
    assert.equal(record.cached, false, 'the preview has left no turn behind');
  });

  test('calls nobody but the classifier, charges nothing, remembers nothing', async () => {
    const count = async (table: string) =>
      (await routing.postgres.query<{ n: number }>(`SELECT count(*)::integer AS n FROM ${table}`)).rows[0]?.n;
    const kept = async () => [await count('generations'), await count('routing_turns'), await count('audit_log')];
    const before = [await kept(), routing.upstream.requests.length];
    await preview({ body: messages(user(`What does it cost? ${STRONG}`)), headers: { 'x-session-id': randomUUID() } });
    assert.deepEqual(await kept(), before[0]);
    assert.deepEqual(
      routing.upstream.requests.slice(before[1] as number).map(({ path }) => path),
      ['/v1/systemone'],
    );
  });

  test('knows the conversation that it continues', async () => {
    const headers = { 'x-session-id': randomUUID() };
    const first = user(`What is the capital of Australia? ${LIGHT}`);
    await routing.routeOf((await routing.ask({ headers, body: messages(first) })).executionId);
    const body = messages(first, assistant('Sydney.'), user(`That is wrong. ${LIGHT}${judged('correction=0.9')}`));
    const { model_route: record } = await preview({ headers, body });
    assert.deepEqual(
      [record?.reason, record?.tier, record?.correction, record?.correction_probability, record?.previous_model],
      ['correction_escalated', 'strong', true, 0.9, 'sim/small'],
    );
    const { id } = JSON.parse((await routing.ask({ api: 'responses', body: { input: `Think. ${STRONG}` } })).body) as {
      id: string;
    };
    const continued = await preview({ api: 'responses', body: { input: 'And now?', previous_response_id: id } });
    assert.deepEqual(
      [continued.model_route?.reason, continued.model, continued.classifier_result],
      ['continuation', 'sim/large', null],
    );
    const foreign = await call({
      api: 'responses',
      organization_id: ids.get('free'),
      body: { input: 'And now?', previous_response_id: id },
    });
    assert.equal(foreign.status, 404, foreign.body);
  });

  test('takes a draft that nobody has published, and any policy by its name', async () => {
    const body = messages(user(`Tell me a joke. ${LIGHT}`));
    const draft = await preview({ body, policy: DRAFT });
    assert.deepEqual(
      [draft.model, draft.model_route?.policy, draft.model_route?.policy_version],
      ['sim/coder', 'draft', 0],
    );
    const off = { organization_id: ids.get('off'), body };
    assert.equal((await preview({ ...off, policy: 'default' })).model, 'sim/small');
    assert.match((await call(off)).body, /policy.*must be given: auto routing is off/);
    assert.match((await call({ body, policy: 'nobody' })).body, /there is no \\\\\\"nobody\\\\\\"|there is no/);
    const wrong = { ...DRAFT, tiers: [{ name: 'light', description: '', models: [{ id: 'sim/nowhere' }] }] };
    const refused = await call({ body, policy: wrong });
    assert.equal(refused.status, 400);
    assert.match(refused.body, /tiers\.0\.models\.0\.id.*there is no model/);
  });

  test('passes over what a draft names and is not active, as requests do', async () => {
    const models = [{ id: 'sim/gone' }, { id: 'sim/coder' }];
    const policy = { ...DRAFT, tiers: [{ ...DRAFT.tiers[0], models }, DRAFT.tiers[1]] };
    const shown = await preview({ body: messages(user(`Tell me a joke. ${LIGHT}`)), policy });
    assert.deepEqual(
      [shown.model, shown.candidates.find(({ model }) => model === 'sim/gone')?.rejection],
      ['sim/coder', 'unavailable'],
    );
  });

  test('says who cannot serve, and why', async () => {
    const long = messages(user(`${'words '.repeat(34_000)}${LIGHT}`));
    const permitted = await preview({ organization_id: ids.get('free'), body: messages(user(`Hi there. ${LIGHT}`)) });
    assert.equal(permitted.model, 'sim/claude');
    // Those of the called API's family were tried first.
    assert.deepEqual(
      permitted.model_route?.rejected,
      ['sim/small', 'sim/coder', 'sim/chatter'].map((model) => ({ model, tier: 'light', reason: 'not_permitted' })),
    );
    assert.deepEqual(
      permitted.candidates.filter(({ rejection }) => rejection === null).map(({ model }) => model),
      ['sim/claude', 'sim/large'],
    );
    const denied = await preview({ organization_id: ids.get('denied'), body: long });
    assert.deepEqual(
      [denied.outcome, denied.model, denied.model_route, denied.classifier_result],
      ['denied', null, null, null],
    );
    const stranded = await preview({ organization_id: ids.get('stranded'), body: long });
    assert.deepEqual(
      [stranded.outcome, stranded.candidates],
      ['unavailable', [{ tier: 'only', model: 'sim/gone', rejection: 'unavailable' }]],
    );
  });

  test('says what came of the classifier', async () => {
    const reasons: readonly [string, object, string | null, string][] = [
      ['chat_completions', messages(user(`Say. ${judged('status=503')}`)), 'error', 'classifier_failed'],
      ['chat_completions', messages(user(`Say. ${judged('tier=enormous')}`)), 'unusable', 'classifier_failed'],
      ['chat_completions', messages({ role: 'system', content: 'Be kind.' }), null, 'no_request_text'],
      ['count_tokens', messages(user(`Count. ${LIGHT}`)), null, 'classifier_skipped'],
    ];
    for (const [api, body, result, reason] of reasons) {
      const shown = await preview({ api, body });
      assert.deepEqual(
        [shown.classifier_result, shown.model_route?.reason, shown.model],
        [result, reason, 'sim/large'],
      );
    }
  });

  test('reads a string byte for byte, and refuses what the endpoint refuses', async () => {
    const text = `{ "messages" : [ {"role":"user","content":"caf\\u00e9 ${LIGHT}"} ] }`;
    const shown = await preview({ body: text });
    assert.deepEqual([shown.human_texts, shown.conversation_tokens], [[`café ${LIGHT}`], Math.ceil(text.length / 4)]);
    for (const wrong of ['{"messages":[', '[]', '{"model":"a","model":"b"}']) {
      const answer = await call({ body: wrong });
      const real = await callRoute(routing.tollgate.url + ROUTING_PATHS.chat_completions, {
        key: ROUTING_KEYS.acme,
        body: wrong,
      });
      assert.deepEqual([answer.status, real.status], [400, 400], wrong);
    }
  });

  test('is screened as the request would be, before the classifier sees it (spec 7.7)', async () => {
    const policies = `${routing.tollgate.url}/v1/admin/guardrails/policies/previewed`;
    const rules = [
      { id: 'people', detect: ['email'], stage: 'input', action: 'cloak' },
      { id: 'doors', words: ['plantedsesame'], stage: 'input', action: 'block' },
    ];
    const headers = { authorization: `Bearer ${ROUTING_ADMIN_TOKEN}`, 'content-type': 'application/json' };
    const put = await httpCall(policies, { method: 'PUT', headers, body: JSON.stringify({ floor: true, rules }) });
    assert.equal(put.status, 200, put.body.toString());
    const asked = routing.judged().length;
    const text = `Write to planted.person@planted-domain.example. ${LIGHT}`;
    const shown = await waitFor(
      'the policy to be in force',
      () => preview({ body: messages(user(text)) }),
      ({ human_texts: [told = ''] }) => /^Write to TGE\d{12}\. /.test(told),
    );
    assert.equal(shown.model, 'sim/small');
    const judged = routing.judged().slice(asked);
    assert.ok(judged.at(-1)?.body.includes('Write to TGE'));
    assert.ok(!judged.at(-1)?.body.includes('planted.person'));
    const blocked = await call({ body: messages(user(`plantedsesame ${LIGHT}`)) });
    assert.equal(blocked.status, 400);
    assert.deepEqual((JSON.parse(blocked.body) as { guardrail: unknown }).guardrail, {
      policy: 'previewed',
      rule: 'doors',
      entity: 'words',
      stage: 'input',
    });
    assert.equal(routing.judged().length, asked + judged.length, 'nobody was asked');
    await httpCall(policies, { method: 'DELETE', headers });
  });

  test('is the platform’s alone; what it does not know it refuses', async () => {
    assert.equal((await call({ body: {} }, ROUTING_KEYS.acme)).status, 403);
    assert.equal((await call({ body: {}, organization_id: randomUUID() })).status, 404);
    const mistakes: readonly [object, RegExp][] = [
      [{ body: {}, api: 'images' }, /api/],
      [{}, /body/],
      [{ body: {}, organization_id: 'acme' }, /organization_id.*must be a UUID/],
      [{ body: {}, colour: 'red' }, /colour/],
      [{ body: {}, policy: { ...DRAFT, tiers: [] } }, /policy/],
    ];
    for (const [fields, expected] of mistakes) {
      const answer = await call(fields);
      assert.equal(answer.status, 400, answer.body);
      assert.match(answer.body, expected);
    }
  });
});
