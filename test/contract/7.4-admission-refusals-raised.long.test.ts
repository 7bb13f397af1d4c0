// Spec 7.4: every admission refusal, raised by what causes it, by the real gateway: status, code in both forms,
// Retry-After, and that it consumed nothing.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/storage/postgres/embedded/embedded-postgres.ts';
import { createPostgres } from '../../src/storage/postgres/pool.ts';
import type { FakeUpstream } from '../support/fake-upstream.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { type HttpAnswer, httpCall } from '../support/http-call.ts';
import { ask, organizationIdOf } from '../support/identity-world.ts';
import {
  type LimitedOrganization,
  limitedConfiguration,
  limitedKey,
  startExactProvider,
} from '../support/limited-organizations.ts';
import { silentLog } from '../support/postgres.ts';
import { removeInstallation } from '../support/remove-installation.ts';
import { waitFor } from '../support/waiting.ts';

/** The first shows refusals flat, the others in their dialect. */
const ROUTES = [
  {
    path: '/v1/chat/completions',
    form: 'flat',
    limitField: 'max_tokens',
    fields: { messages: [{ role: 'user', content: 'hi' }] },
  },
  { path: '/v1/responses', form: 'openai', limitField: 'max_output_tokens', fields: { input: 'hi' } },
  {
    path: '/v1/messages',
    form: 'messages',
    limitField: 'max_tokens',
    fields: { messages: [{ role: 'user', content: 'hi' }] },
  },
] as const;
type Route = (typeof ROUTES)[number];
const CHAT = ROUTES[0];

const ORGANIZATIONS: readonly LimitedOrganization[] = [
  { slug: 'rich', credit: '1000' },
  { slug: 'broke', credit: '0' },
  { slug: 'frozen', credit: '1000' },
  { slug: 'unready', credit: '1000' },
  { slug: 'spent', credit: null, limits: ['{ kind: budget, window: hour, limit: "0.000001" }'] },
  { slug: 'busy', credit: null, limits: ['{ kind: concurrent_requests, limit: 1 }'] },
  { slug: 'hasty', credit: null, limits: ['{ kind: requests_per_minute, limit: 1 }'] },
  { slug: 'wordy', credit: null, limits: ['{ kind: tokens_per_minute, limit: 2000 }'] },
  { slug: 'roomy', credit: null, limits: ['{ kind: tokens_per_minute, limit: 1000000 }'] },
  {
    slug: 'careful',
    credit: '0.0003',
    limits: [
      '{ kind: requests_per_minute, limit: 3 }',
      '{ kind: concurrent_requests, limit: 1 }',
      '{ kind: budget, window: month, limit: "100" }',
    ],
  },
];

interface Expected {
  readonly status: number;
  readonly code: string;
  readonly family: 'credit' | 'traffic';
  readonly retryable: boolean;
  /** Seconds of Retry-After, at least and at most; null: no such header. */
  readonly retryAfter: readonly [number, number] | null;
  readonly param?: string | null;
  readonly result?: Readonly<Record<string, unknown>>;
}

const OF_ORGANIZATION = { scope: 'organization', set_by: 'platform', window: null, model: null };

describe('admission refusals as they are raised', () => {
  const adminToken = randomBytes(24).toString('base64url');
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-test-'));
  let postgres: EmbeddedPostgres;
  let provider: FakeUpstream;
  let tollgate: Tollgate;
  /** Requests that reach the provider wait for it. */
  let gate = Promise.resolve();

  before(async () => {
    postgres = await startEmbeddedPostgres({ dataDir: directory, log: silentLog });
    provider = await startExactProvider(() => gate);
    tollgate = await startTollgate({
      clickhouse: 'away',
      configurationYaml: limitedConfiguration(provider.url, ORGANIZATIONS),
      env: {
        DATABASE_URL: postgres.url,
        MASTER_KEY: randomBytes(32).toString('base64'),
        ADMIN_TOKEN: adminToken,
        DIALECT_REFUSALS: 'responses,messages',
      },
    });
  });
  after(async () => {
    await tollgate?.stop();
    await provider?.close();
    await postgres?.stop();
    removeInstallation(directory);
  });

  function call(slug: string, route: Route, fields: object = { [route.limitField]: 10 }): Promise<HttpAnswer> {
    const headers = { authorization: `Bearer ${limitedKey(slug)}`, 'content-type': 'application/json' };
    return httpCall(`${tollgate.url}${route.path}`, {
      headers,
      body: JSON.stringify({ model: 'sim/small', ...route.fields, ...fields }),
    });
  }

  async function expectOnAllRoutes(
    slug: string,
    expected: Expected,
    fieldsOf?: (route: Route) => object,
  ): Promise<void> {
    for (const route of ROUTES) {
      const calls = provider.requests.length;
      assertRefusal(await call(slug, route, fieldsOf?.(route)), route, expected);
      assert.equal(provider.requests.length, calls, 'nothing was sent');
    }
  }

  test('insufficient_credit', async () => {
    await expectOnAllRoutes('broke', {
      status: 402,
      code: 'insufficient_credit',
      family: 'credit',
      retryable: false,
      retryAfter: null,
    });
  });

  test('not_safely_billable', async () => {
    for (const route of ROUTES) {
      const answer = await call('rich', route, { model: 'sim/uncapped' });
      assertRefusal(answer, route, {
        status: 422,
        code: 'not_safely_billable',
        family: 'credit',
        retryable: false,
        retryAfter: null,
        param: route.limitField,
      });
    }
  });

  test(
    'billing_frozen: soon after the wallet is, also where its money was at hand; and served again ' + 'afterwards',
    async () => {
      assert.equal((await call('frozen', CHAT)).status, 200);
      const id = await organizationIdOf(tollgate.url, adminToken, 'frozen');
      await ask(tollgate.url, adminToken, 'PATCH', `/v1/admin/organizations/${id}`, { frozen: true });
      await waitForStatus('frozen', 403);
      await expectOnAllRoutes('frozen', {
        status: 403,
        code: 'billing_frozen',
        family: 'credit',
        retryable: false,
        retryAfter: null,
      });
      await ask(tollgate.url, adminToken, 'PATCH', `/v1/admin/organizations/${id}`, { frozen: false });
      await waitForStatus('frozen', 200);
    },
  );

  test('principal_provisioning', async () => {
    const id = await organizationIdOf(tollgate.url, adminToken, 'unready');
    const database = createPostgres({ url: postgres.url, log: silentLog, max: 1 });
    await database.query('ALTER TABLE ledger_entries DISABLE TRIGGER USER');
    await database.query(
      'DELETE FROM ledger_accounts WHERE wallet_id IN (SELECT id FROM wallets WHERE organization_id = $1)',
      [id],
    );
    await database.query('DELETE FROM wallets WHERE organization_id = $1', [id]);
    await database.query('ALTER TABLE ledger_entries ENABLE TRIGGER USER');
    await database.close();
    await expectOnAllRoutes('unready', {
      status: 503,
      code: 'principal_provisioning',
      family: 'credit',
      retryable: true,
      retryAfter: [2, 2],
    });
  });

  test('usage_limit_exceeded, by the name of the budget and with the time at which it begins anew', async () => {
    const result = {
      scope: 'organization',
      set_by: 'platform',
      kind: 'budget',
      window: 'hour',
      limit: '0.000001',
      model: null,
    };
    await expectOnAllRoutes('spent', {
      status: 429,
      code: 'usage_limit_exceeded',
      family: 'traffic',
      retryable: false,
      retryAfter: [1, 3_600],
      result,
    });
  });

  test('rate_limit', async () => {
    assert.equal((await call('hasty', CHAT)).status, 200);
    const result = { ...OF_ORGANIZATION, kind: 'requests_per_minute', limit: 1 };
    await expectOnAllRoutes('hasty', {
      status: 429,
      code: 'rate_limit',
      family: 'traffic',
      retryable: true,
      retryAfter: [1, 62],
      result,
    });
  });

  test('concurrency_limit, while another request is open, and not afterwards', async () => {
    let open = (): void => undefined;
    gate = new Promise((resolve) => {
      open = resolve;
    });
    const calls = provider.requests.length;
    const first = call('busy', CHAT);
    await waitFor(
      'the first request to be open',
      () => provider.requests.length,
      (count) => count > calls,
    );
    const result = { ...OF_ORGANIZATION, kind: 'concurrent_requests', limit: 1 };
    await expectOnAllRoutes('busy', {
      status: 429,
      code: 'concurrency_limit',
      family: 'traffic',
      retryable: true,
      retryAfter: [1, 1],
      result,
    });
    open();
    assert.equal((await first).status, 200);
    await waitForStatus('busy', 200);
  });

  test('traffic_token_bound_required: without a bound, or with one above the limit', async () => {
    for (const route of ROUTES) {
      const expected = {
        status: 422,
        code: 'traffic_token_bound_required',
        family: 'traffic',
        retryable: false,
        retryAfter: null,
        param: route.limitField,
      } as const;
      assertRefusal(await call('roomy', route, { model: 'sim/uncapped' }), route, expected);
      const result = { ...OF_ORGANIZATION, kind: 'tokens_per_minute', limit: 2_000 };
      assertRefusal(await call('wordy', route, { [route.limitField]: 5_000 }), route, { ...expected, result });
    }
  });

  test('spec 7.5: traffic_token_bound_required for a body without questions, flat', async () => {
    const headers = { authorization: `Bearer ${limitedKey('roomy')}`, 'content-type': 'application/json' };
    const answer = await httpCall(`${tollgate.url}/v1/systemone`, {
      headers,
      body: '{"model":"sim/judge","state":"s","questions":{}}',
    });
    assert.equal(answer.status, 422);
    assert.equal((JSON.parse(answer.body.toString()) as { error: unknown }).error, 'traffic_token_bound_required');
  });

  test('tokens that were not used count no longer once the request has ended', async () => {
    // Each is bound by almost all of the limit, and uses next to nothing of it.
    for (let round = 0; round < 5; round += 1) assert.equal((await call('wordy', CHAT, { max_tokens: 1 })).status, 200);
  });

  test(
    'near the edge the exact count decides: a long text whose bytes are above the limit and whose tokens ' + 'are not',
    async () => {
      const content = 'the quick brown fox jumps over the lazy dog '.repeat(100);
      // On a busy machine the tokenizer may miss the count's deadline. The refusal for that consumes nothing.
      await waitFor(
        'a count in time',
        async () => {
          const { status, body } = await call('wordy', CHAT, { max_tokens: 1, messages: [{ role: 'user', content }] });
          assert.ok(status === 200 || status === 422, body.toString());
          return status;
        },
        (status) => status === 200,
      );
    },
  );

  test('counting tokens takes a request and a place, but neither tokens nor money', async () => {
    const headers = { authorization: `Bearer ${limitedKey('wordy')}`, 'content-type': 'application/json' };
    const body = JSON.stringify({
      model: 'sim/small',
      max_tokens: 100_000,
      messages: [{ role: 'user', content: 'x'.repeat(5_000) }],
    });
    assert.equal((await httpCall(`${tollgate.url}/v1/messages/count_tokens`, { headers, body })).status, 200);
    const limited = await httpCall(`${tollgate.url}/v1/messages/count_tokens`, {
      headers: { ...headers, authorization: `Bearer ${limitedKey('hasty')}` },
      body,
    });
    assert.equal(limited.status, 429, 'the one request of this minute is used');
  });

  test('refused requests consume nothing', async () => {
    for (let round = 0; round < 6; round += 1) {
      assert.equal((await call('careful', CHAT, { max_tokens: 31 })).status, 402, 'beyond the wallet');
    }
    assert.equal((await call('careful', CHAT, { model: 'sim/uncapped' })).status, 422);
    // Three requests of this minute, and money for three times ten tokens, are all still there.
    for (let round = 0; round < 3; round += 1) assert.equal((await call('careful', CHAT)).status, 200);
    assertRefusal(await call('careful', CHAT), CHAT, {
      status: 429,
      code: 'rate_limit',
      family: 'traffic',
      retryable: true,
      retryAfter: [1, 62],
      result: { ...OF_ORGANIZATION, kind: 'requests_per_minute', limit: 3 },
    });
  });

  test(
    'billing_unavailable and traffic_capacity_unavailable, while the database is away; what is at hand ' + 'goes on',
    async () => {
      assert.equal((await call('rich', CHAT)).status, 200);
      assert.equal((await call('roomy', CHAT)).status, 200);
      process.kill(postgres.pid, 'SIGQUIT');
      await postgres.exited;
      const money = {
        status: 503,
        code: 'billing_unavailable',
        family: 'credit',
        retryable: true,
        retryAfter: [2, 2],
      } as const;
      await expectOnAllRoutes('rich', money, (route) => ({ [route.limitField]: 16_000 }));
      const result = { ...OF_ORGANIZATION, kind: 'tokens_per_minute', limit: 1_000_000 };
      const capacity = {
        status: 503,
        code: 'traffic_capacity_unavailable',
        family: 'traffic',
        retryable: true,
        retryAfter: [2, 2],
        result,
      } as const;
      await expectOnAllRoutes('roomy', capacity, (route) => ({ [route.limitField]: 100_000 }));
      assert.equal((await call('rich', CHAT)).status, 200, 'a lease that is warm serves on');
      postgres = await startEmbeddedPostgres({ dataDir: directory, log: silentLog });
      await waitFor(
        'requests to be served again',
        async () => [
          (await call('rich', CHAT, { max_tokens: 16_000 })).status,
          (await call('roomy', CHAT, { max_tokens: 100_000 })).status,
        ],
        (statuses) => statuses.every((status) => status === 200),
      );
    },
  );

  async function waitForStatus(slug: string, wanted: number): Promise<void> {
    await waitFor(
      `${slug} to be answered with ${wanted}`,
      async () => (await call(slug, CHAT)).status,
      (status) => status === wanted,
    );
  }
});

function assertRefusal(answer: HttpAnswer, route: Route, expected: Expected): void {
  const text = answer.body.toString();
  assert.equal(answer.status, expected.status, text);
  const body = JSON.parse(text) as Record<string, unknown> & { error: unknown; message?: unknown };
  assert.equal(codeOf(body, route), expected.code, text);
  if (expected.param !== undefined && route.form === 'openai')
    assert.equal((body.error as { param: unknown }).param, expected.param);
  assertRetryAfter(answer, body, expected);
  if (expected.family === 'credit') {
    const { code, retryable } = body['billing'] as { code: string; retryable: boolean };
    assert.deepEqual([code, retryable], [expected.code, expected.retryable]);
    return;
  }
  assert.equal(body['retryable'], expected.retryable);
  const shown = { ...(body['result'] as Record<string, unknown> | undefined) };
  if (expected.result === undefined) return;
  if (expected.code === 'usage_limit_exceeded') {
    // The most that the request could cost is what did not fit, and may be far above what it will.
    assert.match(text, /has no room for what this request could cost: up to 0\.\d+ USD\./);
    assert.match(shown['resets_at'] as string, /^\d{4}-\d\d-\d\dT\d\d:00:00\.000Z$/);
  }
  for (const [name, value] of Object.entries(expected.result))
    assert.deepEqual(shown[name], value, `result.${name} in ${text}`);
}

/** The flat form has it as `error`, the dialects in the error object; the latter with the type that clients look at. */
function codeOf(
  body: { readonly error: unknown; readonly message?: unknown; readonly type?: unknown },
  { form }: Route,
): unknown {
  if (form === 'flat') {
    assert.equal(typeof body.message, 'string');
    return body.error;
  }
  const { code, message } = body.error as { code: unknown; message: unknown };
  assert.ok(typeof message === 'string' && message.length > 10);
  if (form === 'messages') assert.equal(body.type, 'error');
  return code;
}

function assertRetryAfter(
  { headers }: HttpAnswer,
  body: Readonly<Record<string, unknown>>,
  { family, retryAfter }: Expected,
): void {
  if (retryAfter === null) {
    assert.equal(headers['retry-after'], undefined);
    assert.equal(headers['x-should-retry'], 'false');
    return;
  }
  const seconds = Number(headers['retry-after']);
  assert.ok(
    Number.isInteger(seconds) && seconds >= retryAfter[0] && seconds <= retryAfter[1],
    `Retry-After: ${headers['retry-after']}`,
  );
  if (family === 'traffic') assert.equal(body['retry_after_seconds'], seconds);
}
