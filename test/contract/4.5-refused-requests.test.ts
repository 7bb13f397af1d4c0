// Spec 4.4, 4.5: a request that was refused after its model was read is found by its id and shown in listings, and
// counts in no total. What is refused before: 7.8-refused-ids.test.ts.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { askForGenerations, settledGeneration } from '../support/generation-lookup.ts';
import { type HttpAnswer, httpCall } from '../support/http-call.ts';
import { limitedConfiguration, limitedKey } from '../support/limited-organizations.ts';
import { readMetrics } from '../support/metric-values.ts';
import { waitFor } from '../support/waiting.ts';

type Json = Record<string, unknown>;

const TAG = 'refused-here';
/** As many as an organization has recorded at once (src/generation/execution/refused-requests.ts). */
const RECORDED_AT_ONCE = 300;

describe('refused requests', () => {
  let upstream: FakeUpstream;
  let tollgate: Front;

  before(async () => {
    upstream = await startFakeUpstream(() => ({ instead: 'reset' }));
    const organizations = [
      { slug: 'broke', credit: '0' },
      { slug: 'poor', credit: '0' },
      { slug: 'many', credit: '0' },
    ];
    tollgate = await startFront({
      configurationYaml: limitedConfiguration(upstream.url, organizations),
      reports: true,
    });
  });
  after(async () => {
    await tollgate?.stop();
    await upstream?.close();
  });

  function ask(slug: string, fields: Json, clientRequestId = randomBytes(8).toString('hex')): Promise<HttpAnswer> {
    const headers = {
      authorization: `Bearer ${limitedKey(slug)}`,
      'content-type': 'application/json',
      'x-client-request-id': clientRequestId,
      'x-service-tag': TAG,
    };
    const body = JSON.stringify({
      model: 'sim/small',
      messages: [{ role: 'user', content: 'hi' }],
      max_tokens: 10,
      ...fields,
    });
    return httpCall(`${tollgate.url}/v1/chat/completions`, { headers, body });
  }

  async function get(slug: string, path: string): Promise<Json> {
    const answer = await httpCall(`${tollgate.url}${path}`, {
      headers: { authorization: `Bearer ${limitedKey(slug)}` },
    });
    assert.equal(answer.status, 200, answer.body.toString());
    return JSON.parse(answer.body.toString()) as Json;
  }

  async function listed(slug: string, count: number): Promise<Json[]> {
    const read = async (): Promise<Json[]> => (await get(slug, '/v1/usage/me/requests?limit=100'))['data'] as Json[];
    return waitFor(`${count} requests in the listing of ${slug}`, read, (entries) => entries.length >= count);
  }

  test('each has an id in its answer, and a record that nobody is billed for', async () => {
    const label = 'label-of-the-refused';
    const answer = await ask('broke', {}, label);
    assert.equal(answer.status, 402);
    const id = answer.headers['x-service-execution-id'];
    assert.match(String(id), /^[0-9a-f-]{36}$/);
    const record = await settledGeneration(tollgate.url, limitedKey('broke'), String(id));
    assert.deepEqual(
      [
        record.model,
        record.billingStatus,
        record.totalCost,
        record.ratedCost,
        record.authorizedAmount,
        record.tokensPrompt,
      ],
      ['sim/small', 'not_billed', '0', null, null, null],
    );
    // Nobody was called, with whatever key; the listing says null.
    const shown = await get('broke', `/v1/generation?id=${String(id)}`);
    assert.equal((shown['data'] as Json)['credential_source'], undefined);
    const { data } = await get('broke', `/v1/generations?client_request_id=${label}`);
    assert.deepEqual(
      (data as Json[]).map((one) => one['id']),
      [id],
    );
    const foreign = await askForGenerations(tollgate.url, limitedKey('poor'), `generation?id=${String(id)}`);
    assert.equal(foreign.status, 404);
  });

  test(
    'listings show them with status and reason, also an unknown, an endless and a broken model name; ' +
      'totals do not count them',
    async () => {
      const wanted: [Json, number, string, string][] = [
        [{}, 402, 'insufficient_credit', 'sim/small'],
        [{ model: 'sim/uncapped', max_tokens: undefined }, 422, 'not_safely_billable', 'sim/uncapped'],
        [{ model: 'sim/absent' }, 404, 'model_not_found', 'sim/absent'],
        [{ model: '\u{1f600}'.repeat(5_000) }, 404, 'model_not_found', '\u{1f600}'.repeat(100)],
        // One half of a pair would keep the facts of everybody's requests from being stored.
        [{ model: 'half \ud800' }, 404, 'model_not_found', 'half \ufffd'],
        [{ model: 'sim/judge' }, 400, 'invalid_request_error', 'sim/judge'],
      ];
      const ids: unknown[] = [];
      for (const [fields, status] of wanted) {
        const answer = await ask('poor', fields);
        assert.equal(answer.status, status, answer.body.toString());
        ids.push(answer.headers['x-service-execution-id']);
      }
      const entries = (await listed('poor', wanted.length)).toReversed();
      assert.deepEqual(
        entries.map((entry) => entry['id']),
        ids,
      );
      assert.deepEqual(
        entries.map(({ status, model, requested_model, provider, cost, tags }) => [
          status,
          model,
          requested_model,
          provider,
          cost,
          tags,
        ]),
        wanted.map(([, status, , model]) => [status, model, model, null, '0', [TAG]]),
      );
      assert.deepEqual(
        entries.slice(0, 2).map(({ error }) => error),
        ['insufficient_credit', 'not_safely_billable'],
      );
      const onlyCredit = (await get('poor', '/v1/usage/me/requests?status=402'))['data'] as Json[];
      assert.equal(onlyCredit.length, 1);
      const { requests, cost } = (await get('poor', '/v1/usage/me'))['data'] as Json;
      assert.deepEqual([requests, cost], [0, '0']);
      assert.deepEqual((await get('poor', '/v1/usage/me/daily'))['data'], []);
      assert.deepEqual(upstream.requests, []);
    },
  );

  test('who is refused without end fills no disk: only so many are recorded, the rest is counted', async () => {
    // More than the organization may have recorded again while they are sent.
    const more = 700;
    const answers = await Promise.all(
      Array.from({ length: RECORDED_AT_ONCE + more }, () => ask('many', { model: 'sim/absent' })),
    );
    assert.ok(answers.every(({ status }) => status === 404));
    const ids = answers.map(({ headers }) => String(headers['x-service-execution-id']));
    assert.equal(new Set(ids).size, RECORDED_AT_ONCE + more);
    const sample = await readMetrics(tollgate.adminUrl);
    const recorded = RECORDED_AT_ONCE + more - sample('tollgate_refusals_unrecorded_total');
    assert.ok(recorded >= RECORDED_AT_ONCE && recorded < RECORDED_AT_ONCE + more, String(recorded));
    const database = new pg.Client({ connectionString: tollgate.postgresUrl });
    await database.connect();
    const count = async (): Promise<number> =>
      (await database.query('SELECT id FROM generations WHERE id = ANY ($1::uuid[])', [ids])).rowCount ?? 0;
    await waitFor('the records to be posted', count, (posted) => posted === recorded);
    await database.end();
  });
});
