// What has no price costs the operator nothing: a billed organization that names it is refused before anything is sent,
// and a reply that was served with it is charged as held. Through the whole installation, to the posted charge.

import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { findBrokenInvariants } from '../../src/storage/postgres/ledger/ledger-invariants.ts';
import { type FakeUpstream, type Script, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { httpCall } from '../support/http-call.ts';
import { type LedgerRow, type LedgerView, openLedgerView } from '../support/ledger-view.ts';
import { KEYS, testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

const CHAT = '/v1/chat/completions';
const RESPONSES = '/v1/responses';
const MESSAGES = '/v1/messages';
const HOUR = { system: [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral', ttl: '1h' } }] };

/** With a price for cache writes of an hour, and without. */
const MODELS = [
  {
    id: 'sim/small',
    providerModel: 'sim-small',
    outputCap: 16_384,
    apis: ['chat_completions', 'responses', 'messages'] as const,
  },
  { id: 'sim/cached', providerModel: 'sim-cached', outputCap: 16_384, apis: ['messages'] as const },
  { id: 'sim/searched', providerModel: 'sim-unpriced', outputCap: 16_384, apis: ['responses'] as const },
];

/** A second deployment of the last model, with a price for searches. */
const SEARCHING = `      - provider: upstream
        model: sim-searching
        apis: [responses]
        price: { input: "1.25", output: "10.00", calls: { web_search: { usd: "0.01", max: 3 } } }
`;

const json = (body: object): Script => ({
  headers: [['content-type', 'application/json']],
  body: JSON.stringify(body),
});

/**
 * A request that is refused for an organization that is billed: the path, its fields beside the model, and the field
 * that is named.
 */
const REFUSED: readonly (readonly [path: string, fields: object, field: string])[] = [
  [CHAT, { service_tier: 'priority' }, 'service_tier'],
  [CHAT, { web_search_options: {} }, 'web_search_options'],
  [CHAT, { tools: [{ type: 'openrouter:web_search' }] }, 'tools'],
  [RESPONSES, { service_tier: 'flex' }, 'service_tier'],
  [RESPONSES, { tools: [{ type: 'code_interpreter', container: { type: 'auto' } }] }, 'tools'],
  [MESSAGES, { service_tier: 'priority' }, 'service_tier'],
  [MESSAGES, { speed: 'fast' }, 'speed'],
  [MESSAGES, { inference_geo: 'us' }, 'inference_geo'],
  [MESSAGES, { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }, 'tools'],
  [MESSAGES, { mcp_servers: [{ type: 'url', url: 'https://x.test', name: 'x' }] }, 'mcp_servers'],
  [MESSAGES, HOUR, 'cache_control'],
];

describe('what has no price', () => {
  let upstream: FakeUpstream;
  let tollgate: Front;
  let ledger: LedgerView;
  let reply: Script = json({});
  let sent = 0;
  let askedModel = '';

  before(async () => {
    upstream = await startFakeUpstream(({ body }) => {
      sent += 1;
      askedModel = String((JSON.parse(body.toString()) as { model?: unknown }).model);
      return reply;
    });
    const yaml = testConfiguration({ upstreamUrl: upstream.url, models: MODELS });
    const [before_, rest] = yaml.split('model: "sim-cached"') as [string, string];
    const priced = rest
      .replace('cache_write: "1.5"', 'cache_write: "1.5", cache_write_1h: "2.5"')
      .replace('organizations:', `${SEARCHING}organizations:`);
    tollgate = await startFront({ configurationYaml: `${before_}model: "sim-cached"${priced}` });
    ledger = openLedgerView(tollgate.postgresUrl);
  });
  beforeEach(() => {
    sent = 0;
  });
  after(async () => {
    await ledger?.close();
    await tollgate?.stop();
    await upstream?.close();
  });

  async function post(path: string, fields: object, key: string = KEYS.acme) {
    const input =
      path === RESPONSES
        ? { input: 'hi', max_output_tokens: 50, store: false }
        : { messages: [{ role: 'user', content: 'hi' }], max_tokens: 50 };
    const body = JSON.stringify({ model: 'sim/small', ...input, ...fields });
    return httpCall(`${tollgate.url}${path}`, {
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body,
    });
  }

  async function posted(path: string, fields: object, script: Script): Promise<LedgerRow> {
    reply = script;
    const answer = await post(path, fields);
    assert.equal(answer.status, 200, answer.body.toString());
    const [row] = await waitFor(
      'the execution to be posted',
      () =>
        ledger.query(
          `SELECT charge::text, suspense::text, rated_cost::text AS rated, authorized_amount::text AS held, error_code,
            billing_status
             FROM generations WHERE id = $1 AND outcome IS NOT NULL`,
          [answer.headers['x-service-execution-id']],
        ),
      (rows) => rows.length === 1,
    );
    return row ?? {};
  }

  for (const [path, fields, field] of REFUSED) {
    test(
      `${path} ${JSON.stringify(fields).slice(0, 80)}: 422 for who is billed, and nothing is sent; others ` +
        `are served`,
      async () => {
        const refused = await post(path, fields);
        const text = refused.body.toString();
        assert.equal(refused.status, 422, text);
        const { billing, message } = JSON.parse(text) as { billing: { code: string }; message: string };
        assert.equal(billing.code, 'not_safely_billable');
        assert.match(message, /price/);
        assert.ok(message.toLowerCase().includes(field), message);
        assert.equal(sent, 0);
        reply = json({ usage: {} });
        assert.equal((await post(path, fields, KEYS.free)).status, 200);
        assert.equal(sent, 1);
      },
    );
  }

  const USED = { prompt_tokens: 40, completion_tokens: 3, input_tokens: 40, output_tokens: 3 };
  // 40 × 1 250 000 + 3 × 10 000 000
  const RATED = 80_000_000n;
  const SERVED: readonly (readonly [path: string, reply: object, reason: string])[] = [
    [CHAT, { choices: [], usage: USED, service_tier: 'priority' }, 'service_tier priority'],
    [RESPONSES, { output: [], usage: USED, service_tier: 'priority' }, 'service_tier priority'],
    [
      RESPONSES,
      { output: [], usage: USED, tool_usage: { web_search: { num_requests: 2 } } },
      'tool_usage web_search.num_requests',
    ],
    [MESSAGES, { content: [], usage: { ...USED, service_tier: 'priority' } }, 'service_tier priority'],
    [MESSAGES, { content: [], usage: { ...USED, speed: 'fast' } }, 'speed fast'],
    [MESSAGES, { content: [], usage: { ...USED, inference_geo: 'us' } }, 'inference_geo us'],
    [
      MESSAGES,
      { content: [], usage: { ...USED, server_tool_use: { web_search_requests: 1 } } },
      'server_tool_use web_search_requests',
    ],
  ];

  for (const [path, body, reason] of SERVED) {
    test(`${path} served with ${reason}: charged as held, the difference to suspense`, async () => {
      const { charge, suspense, rated, held, error_code } = await posted(path, {}, json(body));
      assert.deepEqual([charge, rated, error_code], [held, String(RATED), `usage_unpriced: ${reason}`]);
      assert.equal(BigInt(String(suspense)), BigInt(String(held)) - RATED);
    });
  }

  test('a search that Codex could have asked for passes, and costs what was held only where it was made', async () => {
    const fields = {
      tools: [
        { type: 'function', name: 'shell' },
        { type: 'web_search', external_web_access: true },
      ],
    };
    const unused = await posted(
      RESPONSES,
      fields,
      json({ output: [], usage: USED, tool_usage: { web_search: { num_requests: 0 } } }),
    );
    assert.deepEqual([unused['charge'], unused['suspense'], unused['error_code']], [String(RATED), '0', null]);
    // The whole context: what is found is read as input.
    assert.equal(unused['held'], String(1_000_000n * 1_500_000n + 50n * 10_000_000n));
    const used = await posted(RESPONSES, fields, json({ output: [{ type: 'web_search_call' }], usage: USED }));
    assert.deepEqual([used['charge'], used['error_code']], [used['held'], 'usage_unpriced: tool_usage web_search']);
  });

  test('who has a price for such a search is asked before who has none, which stands first otherwise', async () => {
    const tools = [{ type: 'web_search' }];
    const searched = { output: [], usage: USED, tool_usage: { web_search: { num_requests: 2 } } };
    const paid = await posted(RESPONSES, { model: 'sim/searched', tools }, json(searched));
    assert.deepEqual([askedModel, paid['error_code']], ['sim-searching', null]);
    // 40 × 1 250 000 + 3 × 10 000 000 + 2 × 10 000 000 000
    assert.deepEqual([paid['charge'], paid['suspense']], [String(RATED + 20_000_000_000n), '0']);
    await posted(RESPONSES, { model: 'sim/searched' }, json({ output: [], usage: USED }));
    assert.equal(askedModel, 'sim-unpriced');
    assert.equal((await post(RESPONSES, { model: 'sim/searched', tools }, KEYS.free)).status, 200);
    assert.equal(askedModel, 'sim-unpriced', 'nobody is billed');
  });

  test('cache writes of an hour: held and rated at their price, and charged as held where there is none', async () => {
    const writes = {
      input_tokens: 10,
      cache_creation_input_tokens: 2_000,
      cache_creation: { ephemeral_5m_input_tokens: 500, ephemeral_1h_input_tokens: 1_500 },
    };
    const script = json({ content: [], usage: { ...writes, output_tokens: 3 } });
    const priced = await posted(
      MESSAGES,
      { model: 'sim/cached', ...HOUR, messages: [{ role: 'user', content: 'x'.repeat(3_000) }] },
      script,
    );
    // 10 × 1 250 000 + 500 × 1 500 000 + 1500 × 2 500 000 + 3 × 10 000 000
    assert.deepEqual([priced['charge'], priced['suspense'], priced['error_code']], ['4542500000', '0', null]);
    assert.equal(BigInt(String(priced['held'])) % 2_500_000n, 0n);
    const unpriced = await posted(MESSAGES, { messages: [{ role: 'user', content: 'x'.repeat(6_000) }] }, script);
    assert.deepEqual(
      [unpriced['charge'], unpriced['error_code']],
      [unpriced['held'], 'usage_unpriced: cache_write_1h'],
    );
  });

  test('the catalog shows the price', async () => {
    const answer = await httpCall(`${tollgate.url}/v1/models`, {
      headers: { authorization: `Bearer ${KEYS.acme}` },
      method: 'GET',
    });
    const { data } = JSON.parse(answer.body.toString()) as { data: { id: string; pricing: Record<string, string> }[] };
    const shown = Object.fromEntries(data.map(({ id, pricing }) => [id, pricing['cache_write_1h']]));
    assert.deepEqual([shown['sim/cached'], shown['sim/small']], ['2.5', undefined]);
  });

  test('the operator is told, and the books hold', async () => {
    const metrics = (await httpCall(`${tollgate.adminUrl}/metrics`)).body.toString();
    assert.match(metrics, /^tollgate_usage_unpriced_total 9$/m);
    assert.deepEqual(
      await findBrokenInvariants({ query: async (text: string) => ({ rows: await ledger.query(text) }) } as never),
      [],
    );
    const [row] = await ledger.query(
      `SELECT (SELECT sum(suspense)::text FROM generations) AS suspended,
              (SELECT sum(amount)::text FROM ledger_entries JOIN ledger_accounts ON ledger_accounts.id = account_id
                WHERE kind = 'suspense') AS in_suspense,
              (SELECT sum(amount)::text FROM ledger_entries JOIN ledger_accounts ON ledger_accounts.id = account_id
                WHERE kind = 'revenue') AS earned,
              (SELECT sum(rated_cost)::text FROM generations WHERE charge IS NOT NULL) AS rated`,
    );
    assert.equal(row?.in_suspense, row?.suspended);
    // What a price accounts for, and no more.
    assert.equal(row?.earned, row?.rated);
  });
});
