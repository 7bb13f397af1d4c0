// Spec 2.1, 2.4: the record of a token count shows the count that the provider told, and null where nothing is known,
// never 0. Nobody used those tokens: they are in no sum, and cost nothing.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type FakeUpstream, type Script, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { httpCall } from '../support/http-call.ts';
import { providersConfiguration } from '../support/provider-configuration.ts';
import { KEYS } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

const json = (body: string, status = 200): Script => ({
  status,
  headers: [['content-type', 'application/json']],
  body,
});

interface Row {
  readonly reply: Script;
  readonly status: number;
  readonly count: number | null;
}

const ROWS: Readonly<Record<string, Row>> = {
  a_count: { reply: json('{"input_tokens":588}'), status: 200, count: 588 },
  a_count_beside_other_members: {
    reply: json('{ "context_management": {"original_input_tokens": 9, "input_tokens": 7}, "input_tokens" : 43 }'),
    status: 200,
    count: 43,
  },
  a_count_of_nothing: { reply: json('{"input_tokens":0}'), status: 200, count: 0 },
  another_name: { reply: json('{"total":588}'), status: 200, count: null },
  a_count_as_text: { reply: json('{"input_tokens":"588"}'), status: 200, count: null },
  a_count_below_nothing: { reply: json('{"input_tokens":-588}'), status: 200, count: null },
  a_count_with_a_fraction: { reply: json('{"input_tokens":5.88}'), status: 200, count: null },
  no_json: { reply: json('588'), status: 200, count: null },
  a_reply_that_breaks_off: {
    reply: { body: '{"input_tokens":588}', fault: { kind: 'cut', afterBytes: 18 } },
    status: 200,
    count: null,
  },
  a_refusal: { reply: json('{"type":"error","error":{"type":"overloaded_error"}}', 529), status: 529, count: null },
  no_reply: { reply: { instead: 'reset' }, status: 502, count: null },
};

interface Listed {
  readonly id: string;
  readonly tokens_prompt: number | null;
  readonly tokens_completion: number | null;
  readonly cost: string | null;
}

describe('the record of a token count', () => {
  let provider: FakeUpstream;
  let tollgate: Front;

  before(async () => {
    provider = await startFakeUpstream(({ body }) => {
      const { model } = JSON.parse(body.toString()) as { model: string };
      return (ROWS[model] as Row).reply;
    });
    const names = Object.keys(ROWS);
    const providers = names.map((name) => ({ id: `p-${name.replaceAll('_', '-')}`, url: provider.url }));
    const models = names.map((name) => ({
      id: `test/${name}`,
      deployments: [{ provider: `p-${name.replaceAll('_', '-')}`, model: name }],
    }));
    tollgate = await startFront({
      configurationYaml: providersConfiguration(providers, models),
      reports: true,
    });
  });
  after(async () => {
    await tollgate?.stop();
    await provider?.close();
  });

  /** What was counted, by execution id. */
  const ids = new Map<string, number | null>();

  const get = async (path: string): Promise<Record<string, unknown>> => {
    const answer = await httpCall(`${tollgate.url}${path}`, { headers: { authorization: `Bearer ${KEYS.acme}` } });
    assert.equal(answer.status, 200, answer.body.toString());
    return JSON.parse(answer.body.toString()) as Record<string, unknown>;
  };

  for (const [name, { status, count }] of Object.entries(ROWS)) {
    test(`${name.replaceAll('_', ' ')}: ${count ?? 'null'}`, async () => {
      const answer = await httpCall(`${tollgate.url}/v1/messages/count_tokens`, {
        headers: { authorization: `Bearer ${KEYS.acme}` },
        body: JSON.stringify({ model: `test/${name}`, messages: [{ role: 'user', content: 'How long is this?' }] }),
        isOffFormat: count === null,
      });
      assert.equal(answer.status, status, answer.body.toString());
      const id = String(answer.headers['x-service-execution-id']);
      ids.set(id, count);
      const { data } = (await get(`/v1/generation?id=${id}&wait=30`)) as { data: Record<string, unknown> };
      assert.equal(data['native_tokens_prompt'] ?? null, count);
      assert.equal(data['native_tokens_completion'], undefined);
      assert.deepEqual([data['billing_status'], data['total_cost']], ['not_billed', 0]);
    });
  }

  test('the listing has them', async () => {
    const rows = await waitFor(
      'the rows',
      async () => (await get('/v1/usage/me/requests?limit=100'))['data'] as Listed[],
      (found) => found.length === Object.keys(ROWS).length,
    );
    assert.deepEqual(new Set(rows.map(({ id }) => id)), new Set(ids.keys()));
    for (const row of rows) {
      assert.deepEqual([row.tokens_prompt, row.tokens_completion], [ids.get(row.id), null]);
      assert.ok(row.cost === null || row.cost === '0', String(row.cost));
    }
  });

  test('no sum has them', async () => {
    const { data } = (await get('/v1/usage/me')) as { data: Record<string, unknown> };
    const { requests, tokens_prompt, tokens_completion, cost } = data;
    assert.deepEqual([requests, tokens_prompt, tokens_completion, cost], [Object.keys(ROWS).length, 0, 0, '0']);
    const days = (await get('/v1/usage/me/daily'))['data'] as Record<string, unknown>[];
    for (const day of days)
      assert.deepEqual([day['tokens_prompt'], day['tokens_completion'], day['cost']], [0, 0, '0']);
    const { available } = (await get('/v1/billing/credits'))['data'] as Record<string, unknown>;
    assert.equal(Number(available), 1_000_000);
  });
});
