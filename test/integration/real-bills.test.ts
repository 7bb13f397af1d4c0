// Prices with terms through the whole installation: from the configuration file to the catalog, the hold, the charge
// and the record by which a bill can be audited. What each part of a price costs: test/contract/8-real-bills.test.ts.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { findBrokenInvariants } from '../../src/storage/postgres/ledger/ledger-invariants.ts';
import { type FakeUpstream, type Script, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { httpCall } from '../support/http-call.ts';
import { type LedgerRow, type LedgerView, openLedgerView } from '../support/ledger-view.ts';
import { KEYS, testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

const CHAT = '/v1/chat/completions';
const MESSAGES = '/v1/messages';
const APIS = ['chat_completions', 'responses', 'messages'] as const;
const PLAIN = '{ input: "1.25", cached_input: "0.125", cache_write: "1.5", output: "10.00" }';
const TERMS = `{ input: "1.25", output: "10.00", cache_write_1h: "2.5", factor: "1.10",
          tiers: [{ from_input: 200, input: "2.5" }],
          service_tiers: { priority: { input: "2.5", output: "20" }, flex: "0.50" }, speeds: { fast: "6" },
          calls: { web_search: { usd: "0.010", max: 4 } }, request: "0.0005" }`;
const WRITTEN = {
  cache_write_1h: '2.5',
  factor: '1.1',
  tiers: [{ from_input: 200, input: '2.5' }],
  service_tiers: { flex: '0.5', priority: { input: '2.5', output: '20' } },
  speeds: { fast: '6' },
  calls: { web_search: { usd: '0.01', max: 4 } },
  request: '0.0005',
};

describe('prices with terms', () => {
  let upstream: FakeUpstream;
  let tollgate: Front;
  let ledger: LedgerView;
  let reply: Script;
  const asked: string[] = [];

  before(async () => {
    upstream = await startFakeUpstream(({ body }) => {
      asked.push((JSON.parse(body.toString()) as { model: string }).model);
      return reply;
    });
    const models = [
      { id: 'sim/small', providerModel: 'first', outputCap: 16_384, apis: APIS },
      { id: 'sim/other', providerModel: 'other', outputCap: 16_384, apis: APIS },
    ];
    // The first deployment has the plain price alone, the second one all the terms.
    const second = `      - { provider: upstream, model: second, apis: [${APIS.join(', ')}], price: ${TERMS} }\n`;
    const yaml = testConfiguration({ upstreamUrl: upstream.url, models });
    const [small = '', other = ''] = yaml.split('model: "other"');
    const reported = `${small}model: "other"${other.replace(PLAIN, PLAIN.replace('}', ', cost: reported }'))}`;
    tollgate = await startFront({
      configurationYaml: reported.replace(`${PLAIN}\n`, (found) => found + second),
    });
    ledger = openLedgerView(tollgate.postgresUrl);
  });
  after(async () => {
    await ledger?.close();
    await tollgate?.stop();
    await upstream?.close();
  });

  async function post(path: string, fields: object) {
    const body = { model: 'sim/small', messages: [{ role: 'user', content: 'hi' }], max_tokens: 50, ...fields };
    const headers = { authorization: `Bearer ${KEYS.acme}`, 'content-type': 'application/json' };
    return httpCall(`${tollgate.url}${path}`, { headers, body: JSON.stringify(body) });
  }

  async function posted(path: string, fields: object, body: object): Promise<LedgerRow> {
    reply = { headers: [['content-type', 'application/json']], body: JSON.stringify(body) };
    const answer = await post(path, fields);
    assert.equal(answer.status, 200, answer.body.toString());
    const [row] = await waitFor(
      'the execution to be posted',
      () =>
        ledger.query(
          `SELECT id, charge::text, suspense::text, rated_cost::text AS rated, authorized_amount::text AS held, error_code,
                  provider_model AS served, usage_details AS details, price_version,
                  floor(extract(epoch FROM admitted_at) * 1000)::text AS admitted
             FROM generations WHERE id = $1 AND outcome IS NOT NULL`,
          [answer.headers['x-service-execution-id']],
        ),
      (rows) => rows.length === 1,
    );
    return row ?? {};
  }

  const COUNTS = { prompt_tokens: 40, completion_tokens: 3, total_tokens: 43 };

  test('the plain price serves what names nothing, and its record says nothing more', async () => {
    const { charge, served, details } = await posted(CHAT, {}, { choices: [], usage: COUNTS, service_tier: 'default' });
    // 40 × 1 250 000 + 3 × 10 000 000
    assert.deepEqual([charge, served, details], ['80000000', 'first', null]);
  });

  test('a service tier is served by the deployment that has a price for it, held and charged by that', async () => {
    const fields = { service_tier: 'priority' };
    const row = await posted(CHAT, fields, { choices: [], usage: COUNTS, service_tier: 'priority' });
    // (40 × 2 500 000 + 3 × 20 000 000) × 1.1 + 500 000 000
    assert.deepEqual([row['charge'], row['suspense'], row['error_code']], ['676000000', '0', null]);
    assert.deepEqual([row['served'], row['details']], ['second', { service_tier: 'priority' }]);
    const headers = { authorization: `Bearer ${KEYS.acme}` };
    const record = await httpCall(`${tollgate.url}/v1/generation?id=${String(row['id'])}`, { headers, method: 'GET' });
    const { data } = JSON.parse(record.body.toString()) as { data: Record<string, unknown> };
    assert.deepEqual(data['usage_details'], { service_tier: 'priority' });
    const bytes = BigInt(JSON.stringify({ model: 'sim/small', messages: [{ role: 'user', content: 'hi' }] }).length);
    // The bytes of the body at least, at 2 500 000 × 1.1, and 50 × 20 000 000 × 1.1.
    assert.ok(BigInt(String(row['held'])) > bytes * 2_750_000n + 1_100_000_000n, String(row['held']));
  });

  test('a tier by the size of the input, and what the reply does not say', async () => {
    const fields = { service_tier: 'flex', messages: [{ role: 'user', content: 'x'.repeat(400) }] };
    const usage = { prompt_tokens: 200, completion_tokens: 1, total_tokens: 201 };
    const row = await posted(CHAT, fields, { choices: [], usage });
    // (200 × 2 500 000 + 1 × 10 000 000) × 1.1 × 0.5 + 500 000 000
    assert.deepEqual([row['charge'], row['details']], ['780500000', { service_tier: 'flex' }]);
  });

  test('a speed, with cache writes of an hour', async () => {
    const usage = {
      input_tokens: 10,
      cache_creation_input_tokens: 100,
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 100 },
      output_tokens: 3,
      speed: 'fast',
      inference_geo: 'not_available',
    };
    const row = await posted(MESSAGES, { speed: 'fast' }, { content: [], usage });
    // (10 × 1 250 000 + 100 × 2 500 000 + 3 × 10 000 000) × 1.1 × 6 + 500 000 000
    assert.deepEqual([row['charge'], row['error_code']], ['2430500000', null]);
    assert.deepEqual(row['details'], { cache_write_1h_tokens: 100, speed: 'fast', inference_geo: 'not_available' });
  });

  test('searches by the provider, as many as it reports', async () => {
    const tools = [{ type: 'web_search_20250305', name: 'web_search' }];
    const usage = { input_tokens: 100, output_tokens: 3, server_tool_use: { web_search_requests: 2 } };
    const row = await posted(MESSAGES, { tools }, { content: [], usage });
    // (100 × 1 250 000 + 3 × 10 000 000) × 1.1 + 2 × 10 000 000 000 + 500 000 000
    assert.deepEqual([row['charge'], row['error_code']], ['20670500000', null]);
    assert.deepEqual([row['served'], row['details']], ['second', { calls: { web_search: 2 } }]);
    // The whole context, 50 tokens, four calls and the fee: 1 000 000 × 2 500 000 × 1.1 and 50 × 10 000 000 × 1.1.
    assert.equal(row['held'], String(2_750_000_000_000n + 550_000_000n + 40_000_000_000n + 500_000_000n));
  });

  test('a cost that the provider reports, up to what the prices make of the usage', async () => {
    const usage = { prompt_tokens: 40, completion_tokens: 3, total_tokens: 43 };
    const asked = { model: 'sim/other' };
    const paid = await posted(CHAT, asked, { choices: [], usage: { ...usage, cost: 0.0000625 } });
    assert.deepEqual([paid['charge'], paid['suspense']], ['62500000', '0']);
    assert.deepEqual(paid['details'], { reported_cost_usd: '0.0000625' });
    const claimed = await posted(CHAT, asked, { choices: [], usage: { ...usage, cost: 0.0001 } });
    // 40 × 1 500 000 + 3 × 10 000 000: at the dearest price of the input
    assert.deepEqual([claimed['charge'], claimed['suspense'], claimed['rated']], ['90000000', '10000000', '100000000']);
  });

  test('a tier that a reply names and that has no price is charged as held', async () => {
    const row = await posted(CHAT, {}, { choices: [], usage: COUNTS, service_tier: 'priority' });
    assert.deepEqual([row['charge'], row['error_code']], [row['held'], 'usage_unpriced: service_tier priority']);
    assert.equal(row['served'], 'first');
  });

  test('what no deployment has a price for is refused, and nothing is sent', async () => {
    asked.length = 0;
    for (const [fields, field] of [
      [{ service_tier: 'scale' }, 'service_tier'],
      [{ model: 'sim/other', service_tier: 'flex' }, 'service_tier'],
    ] as const) {
      const refused = await post(CHAT, fields);
      assert.equal(refused.status, 422);
      assert.match(refused.body.toString(), new RegExp(field));
    }
    assert.deepEqual(asked, []);
  });

  test('the catalog shows the price as it is written, and the file changes nothing when it is applied again', async () => {
    const headers = { authorization: `Bearer ${KEYS.acme}`, 'x-provider-data': 'true' };
    const answer = await httpCall(`${tollgate.url}/v1/models`, { headers, method: 'GET' });
    const { data } = JSON.parse(answer.body.toString()) as { data: { id: string; pricing: object }[] };
    assert.deepEqual(
      data.filter(({ id }) => id === 'sim/small').map(({ pricing }) => pricing),
      [
        { currency: 'USD', input: '1.25', cached_input: '0.125', cache_write: '1.5', output: '10' },
        { currency: 'USD', input: '1.25', output: '10', ...WRITTEN },
      ],
    );
    const versions = () => ledger.query('SELECT count(*)::int AS count FROM prices');
    const before_ = await versions();
    const applied = await tollgate.run(['apply', join(dirname(tollgate.dataDir), 'tollgate.yaml')]);
    assert.equal(applied.exitCode, 0, applied.output);
    assert.match(applied.output, /catalog is still version/);
    assert.deepEqual(await versions(), before_);
  });

  test('a price that begins at an instant rates what is admitted from then on, without any change', async () => {
    const path = join(dirname(tollgate.dataDir), 'tollgate.yaml');
    const ask = () => posted(CHAT, { model: 'sim/other' }, { choices: [], usage: COUNTS });
    const paid: LedgerRow[] = [await ask()];
    const fromMs = Date.now() + 4_000;
    const later = PLAIN.replace('{ input: "1.25"', `{ from: "${new Date(fromMs).toISOString()}", input: "2.5"`);
    const [small = '', other = ''] = readFileSync(path, 'utf8').split('model: "other"');
    const dated = other.replace(/price: \{.*\}/, `price: [${PLAIN}, ${later}]`);
    writeFileSync(path, `${small}model: "other"${dated}`);
    const applied = await tollgate.run(['apply', path]);
    assert.equal(applied.exitCode, 0, applied.output);
    // 40 × 1 250 000 + 3 × 10 000 000, then 40 × 2 500 000 + 3 × 10 000 000
    const [before_, after_] = ['80000000', '130000000'];
    await waitFor(
      'the second price',
      async () => {
        paid.push(await ask());
        return paid.at(-1)?.['charge'];
      },
      (charge) => charge === after_,
    );
    const versions = new Map<string, string>();
    for (const { charge, admitted, price_version: version } of paid) {
      // The gateway's timer may be late by moments, and is never early.
      if (charge === after_) assert.ok(Number(admitted) >= fromMs, `${String(admitted)} ${fromMs}`);
      else assert.equal(charge, before_);
      versions.set(String(version), String(charge));
    }
    // Each version stands for one price; the first row is of the file before.
    assert.ok(paid.every((row) => versions.get(String(row['price_version'])) === row['charge']));
    assert.notEqual(paid[0]?.['price_version'], paid.at(-1)?.['price_version']);
    const again = await tollgate.run(['apply', path]);
    assert.match(again.output, /catalog is still version/);
  });

  test('the books hold', async () => {
    const broken = await findBrokenInvariants({
      query: async (text: string) => ({ rows: await ledger.query(text) }),
    } as never);
    assert.deepEqual(broken, []);
  });
});
