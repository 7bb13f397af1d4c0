// Spec 5.6 and 7.4: what `byok/usage` says of own provider keys, and by whose prices requests on them are rated: the
// organization's own, but never where the platform's fee is a share of it.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DAY_MS } from '../../src/platform/durations.ts';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { httpCall } from '../support/http-call.ts';
import { ADMIN_TOKEN, ask, Tenant } from '../support/identity-world.ts';
import { testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

type Json = Readonly<Record<string, unknown>>;

const MODELS = [
  { id: 'sim/small', providerModel: 'sim-small', outputCap: 16_384, apis: ['chat_completions', 'count_tokens'] },
] as const;

describe('own provider keys in use', () => {
  let upstream: FakeUpstream;
  let promptTokens = 10;
  let tollgate: Front;
  let tenant: Tenant;
  let key: string;
  let credential: string;

  before(async () => {
    upstream = await startFakeUpstream(({ path }) => ({
      headers: [['content-type', 'application/json']],
      body: path.endsWith('/count_tokens')
        ? '{"input_tokens":588}'
        : `{"choices":[{"message":{"content":"ok"}}],"usage":{"prompt_tokens":${promptTokens},"completion_tokens":4}}`,
    }));
    tollgate = await startFront({
      configurationYaml: testConfiguration({ upstreamUrl: upstream.url, models: MODELS }),
      env: { ADMIN_TOKEN },
    });
    tenant = await Tenant.create(tollgate.url, 'own-usage', 'prepaid');
    const deposit = { organization_id: tenant.id, amount: '10', reference: 'own-usage' };
    await ask(tollgate.url, ADMIN_TOKEN, 'POST', '/v1/billing/deposits', deposit, 201);
    await grant({ enabled: true, fee: { percent: '10' } });
    key = String((await tenant.as('POST', '/keys', { name: 'ci' }, 201))['secret']);
    const wanted = { kind: 'upstream', name: 'ours', secret: 'sk-own-good' };
    credential = String((await tenant.as('POST', '/provider-credentials', wanted, 201))['id']);
  });
  after(async () => {
    await tollgate?.stop();
    await upstream?.close();
  });

  const startedAtMs = Date.now();
  const grant = (fields: Json) =>
    ask(tollgate.url, ADMIN_TOKEN, 'PATCH', `/v1/admin/organizations/${tenant.id}/byok`, fields);

  async function generate(): Promise<Json> {
    const reply = await httpCall(`${tollgate.url}/v1/chat/completions`, {
      headers: { authorization: `Bearer ${key}` },
      body: '{"model":"sim/small","messages":[{"role":"user","content":"hi"}],"max_tokens":50}',
    });
    assert.equal(reply.status, 200, reply.body.toString());
    const id = String(reply.headers['x-service-execution-id']);
    const record = async () => {
      const headers = { authorization: `Bearer ${key}` };
      const found = await httpCall(`${tollgate.url}/v1/generation?id=${id}`, { headers });
      return found.status === 200 ? (JSON.parse(found.body.toString()) as { data: Json }).data : null;
    };
    const settled = await waitFor(
      'the record',
      record,
      (found) => found !== null && found['billing_status'] === 'final',
    );
    return settled as Json;
  }

  const usage = async (query = '') => (await tenant.as('GET', `/byok/usage${query}`)) as unknown as readonly Json[];

  test('a price of one’s own rates requests on own keys, but a share of it is no fee', async () => {
    await tenant.as('PUT', '/model-prices/sim/small', { input: '0', output: '0' });
    // What a gateway remembers of the organization is dropped within a second.
    const costs = async () => {
      const { rated_cost: rated, fee = 0 } = await generate();
      return [rated, fee];
    };
    assert.deepEqual(await costs(), [0.0000525, 0.00000525]);
    await grant({ fee: { per_request: '0.001' } });
    await waitFor('the other fee', costs, ([rated, fee]) => rated === 0 && fee === 0.001);
    await tenant.as('DELETE', '/model-prices/sim/small');
    await waitFor('the catalog’s price', costs, ([rated]) => rated === 0.0000525);
  });

  test('usage is told by key, and the key shows when it was used last', async () => {
    await generate();
    const [first, ...others] = await usage();
    assert.deepEqual(others, []);
    const requests = Number(first?.['requests']);
    assert.ok(requests >= 3);
    assert.deepEqual(
      [first?.['credential_id'], first?.['credential_name'], first?.['kind']],
      [credential, 'ours', 'upstream'],
    );
    assert.deepEqual([first?.['tokens_prompt'], first?.['tokens_completion']], [10 * requests, 4 * requests]);
    assert.ok(Number(first?.['fee']) >= 0.001);
    assert.deepEqual((await usage('?start_date=2020-01-01&end_date=2020-01-31'))[0]?.['requests'], 0);
    for (const query of ['?start_date=2026-02-01&end_date=2026-01-01', '?start_date=2020-01-01', '?start_date=soon'])
      await tenant.as('GET', `/byok/usage${query}`, undefined, 400);
    assert.equal((await tollgate.run(['reconcile', 'check-own-keys'])).exitCode, 0);
    const shown = async () => (await tenant.as('GET', `/provider-credentials/${credential}`))['last_used_at'];
    await waitFor('the last use to be shown', shown, (at) => typeof at === 'string');
  });

  test('a token count is a request, and nobody used what it tells', async () => {
    const [before] = await usage();
    const reply = await httpCall(`${tollgate.url}/v1/messages/count_tokens`, {
      headers: { authorization: `Bearer ${key}`, 'anthropic-version': '2023-06-01' },
      body: '{"model":"sim/small","messages":[{"role":"user","content":"hi"}]}',
    });
    assert.deepEqual([reply.status, reply.body.toString()], [200, '{"input_tokens":588}']);
    const [after] = await waitFor(
      'the count to be posted',
      () => usage(),
      ([found]) => Number(found?.['requests']) === Number(before?.['requests']) + 1,
    );
    assert.equal(after?.['tokens_prompt'], before?.['tokens_prompt']);
  });

  test('a day is the day of the zone that is asked for', async () => {
    const [all] = await usage();
    // One of the two has another date than UTC at any time.
    for (const zone of ['Pacific/Kiritimati', 'Pacific/Pago_Pago']) {
      const dates = new Intl.DateTimeFormat('en-CA', { timeZone: zone });
      const ofDays = async (from: number, to: number) => {
        const query = `?start_date=${dates.format(from)}&end_date=${dates.format(to)}&time_zone=${zone}`;
        return (await usage(query))[0]?.['requests'];
      };
      const now = Date.now();
      assert.equal(await ofDays(startedAtMs, now), all?.['requests'], zone);
      assert.equal(await ofDays(startedAtMs - DAY_MS, startedAtMs - DAY_MS), 0, zone);
      assert.equal(await ofDays(now + DAY_MS, now + DAY_MS), 0, zone);
    }
    await tenant.as('GET', '/byok/usage?time_zone=Not/Any', undefined, 400);
  });

  test('sums are exact beyond 2^53, which an own provider may claim', async () => {
    const [before] = await usage();
    promptTokens = Number.MAX_SAFE_INTEGER;
    await generate();
    await generate();
    const sum = BigInt(Number(before?.['tokens_prompt'])) + 2n * BigInt(promptTokens);
    const headers = { authorization: `Bearer ${tenant.owner.token}` };
    const reply = await httpCall(`${tollgate.url}/v1/admin/active-org/byok/usage`, { headers });
    assert.match(reply.body.toString(), new RegExp(`"tokens_prompt":${sum},`));
  });

  test('of a removed key what it was used for stays', async () => {
    await tenant.as('DELETE', `/provider-credentials/${credential}`);
    assert.equal((await usage())[0]?.['credential_name'], 'ours');
    assert.deepEqual(await usage('?start_date=2020-01-01&end_date=2020-01-31'), []);
  });
});
