// Webhooks on a real Postgres and a real receiver: one message for each execution that came to its end, signed, at
// least once, given up in the end, never to an address that is not everybody's.

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { type DelivererOptions, RETRY_AFTER_SECONDS, WebhookDeliverer } from '../../jobs/webhooks/deliver-webhooks.ts';
import { sendWebhook } from '../../jobs/webhooks/send-webhook.ts';
import type { Actor } from '../../src/domain/identity/actor.ts';
import { isRefused } from '../../src/domain/refusals/refused.ts';
import { signWebhook, webhookSecretProblem } from '../../src/domain/webhooks/webhook-signature.ts';
import { webhookUrlProblem } from '../../src/domain/webhooks/webhook-url.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { EgressGuard } from '../../src/platform/egress/egress-guard.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import type { ExecutionRecord } from '../../src/records/execution-record.ts';
import { closeDeadEpoch, resolvePending } from '../../src/storage/postgres/ledger/epochs.ts';
import { postExecutions } from '../../src/storage/postgres/ledger/post-executions.ts';
import { createPostgres, type Postgres } from '../../src/storage/postgres/pool.ts';
import {
  claimDeliveries,
  countDeliveries,
  forgetDeliveries,
} from '../../src/storage/postgres/webhooks/webhook-deliveries.ts';
import {
  getWebhook,
  redeliverWebhooks,
  removeWebhook,
  rotateWebhookSecret,
  setWebhook,
} from '../../src/storage/postgres/webhooks/webhooks.ts';
import { admittedRecord, executionStart, terminalRecord } from '../support/execution-records.ts';
import { secretsOf } from '../support/installation-secrets.ts';
import { silentLog, startTestPostgres, type TestPostgres } from '../support/postgres.ts';
import { done } from '../support/refused.ts';
import * as shipping from '../support/shipping.ts';
import { waitFor } from '../support/waiting.ts';
import { startWebhookReceiver, verifySignature, type WebhookReceiver } from '../support/webhook-receiver.ts';

const OPERATOR: Actor = { kind: 'cli', userId: null, label: 'test' };
const MASTER_KEY = Buffer.alloc(32, 3);
const guardOf = (allowPrivate: boolean) => new EgressGuard({ anyPort: true, allowPrivate, allowed: [] });
const LOOPBACK = { allowHttp: true, guard: guardOf(true) };

describe('webhooks', () => {
  const box = secretsOf(MASTER_KEY).box;
  let server: TestPostgres;
  let postgres: Postgres;
  let receiver: WebhookReceiver;
  let payer: shipping.Payer;
  let epoch: number;
  let offset: number;
  let deliverer: WebhookDeliverer | null;

  before(async () => {
    server = await startTestPostgres();
  });
  after(() => server.stop());
  beforeEach(async () => {
    postgres = createPostgres({ url: await server.createDatabase(), log: silentLog });
    receiver = await startWebhookReceiver();
    payer = await shipping.createPayer(postgres);
    epoch = await shipping.createEpoch(postgres, payer, 100);
    offset = 0;
    deliverer = null;
  });
  afterEach(async () => {
    await deliverer?.stop();
    await receiver.close();
    await postgres.close();
  });

  const set = (fields: { url?: string; active?: boolean; secret?: string } = {}) =>
    setWebhook(postgres, box, OPERATOR, {
      organizationId: payer.organizationId,
      url: receiver.url,
      active: true,
      ...fields,
    }).then(done);

  function deliver(targets = LOOPBACK, changed: Partial<DelivererOptions> = {}): void {
    deliverer = new WebhookDeliverer({
      postgres,
      box: secretsOf(MASTER_KEY).box,
      targets,
      log: silentLog,
      clock: systemClock,
      metrics: new MetricsRegistry(),
      ...changed,
    });
    deliverer.start();
  }

  async function post(...records: ExecutionRecord[]): Promise<void> {
    const batch = { epoch, segment: 1, fromOffset: offset, toOffset: ++offset, records };
    assert.equal((await postgres.transaction((client) => postExecutions(client, batch))).status, 'posted');
  }

  const billed = (overrides: Parameters<typeof shipping.billedTerminal>[1] = {}) =>
    shipping.billedTerminal(shipping.billedStart(payer), overrides);
  /** What is due is due now, whatever its schedule says. */
  const hurry = () =>
    postgres.query('UPDATE webhook_deliveries SET next_attempt_at = now() WHERE next_attempt_at IS NOT NULL');
  const readAttempt = async () => {
    const { rows } = await postgres.query<{
      failures: number;
      attempts: number;
      last_error: string;
      pause_seconds: number;
    }>(
      `SELECT w.failures, d.attempts, d.last_error, extract(epoch
        FROM d.next_attempt_at - w.last_error_at)::double precision AS pause_seconds
         FROM webhooks w JOIN webhook_deliveries d ON d.organization_id = w.organization_id`,
    );
    return rows[0];
  };
  const received = (count: number) =>
    waitFor(
      `${count} messages`,
      () => receiver.messages.length,
      (found) => found >= count,
    );
  const counted = (waiting: number, dead: number) =>
    waitFor(
      'the outbox',
      () => countDeliveries(postgres),
      (found) => found.waiting === waiting && found.dead === dead,
    );

  test(
    'one message for each final charge, with the generation record, ' + 'signed as Standard Webhooks has it',
    async () => {
      const { secret } = await set();
      assert.equal(webhookSecretProblem(secret ?? ''), null);
      const record = billed({ responseBytes: 9 });
      await post(record);
      deliver();
      await received(1);
      await counted(0, 0);
      const [message] = receiver.messages;
      if (message === undefined) assert.fail();
      await verifySignature(message, secret ?? '');
      assert.equal(message.headers['webhook-id'], `msg_${record.id}`);
      assert.equal(message.headers['content-type'], 'application/json');
      const { type, timestamp, data } = JSON.parse(message.body) as {
        type: string;
        timestamp: string;
        data: Record<string, unknown>;
      };
      assert.equal(type, 'generation.settled');
      assert.match(timestamp, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
      assert.deepEqual([data['id'], data['billing_status'], data['total_cost']], [record.id, 'final', 4.275e-7]);
      assert.match(message.body, /"total_cost":0\.0000004275,/, 'exact digits');
      const { lastSuccessAtMs, waiting, dead } = done(await getWebhook(postgres, payer.organizationId));
      assert.ok(lastSuccessAtMs !== null);
      assert.deepEqual([waiting, dead], [0, 0]);
    },
  );

  test(
    'an execution is announced when it ends, not when it is admitted; once, however often its end is ' +
      'posted; and also when reconciliation ends it',
    async () => {
      await set();
      const [first, killed] = [shipping.billedStart(payer), shipping.billedStart(payer)];
      await post(admittedRecord(first), admittedRecord(killed));
      assert.equal((await countDeliveries(postgres)).waiting, 0);
      await post(shipping.billedTerminal(first));
      await post(shipping.billedTerminal(first));
      assert.equal((await countDeliveries(postgres)).waiting, 1);
      await postgres.transaction((client) => closeDeadEpoch(client, epoch));
      await postgres.transaction((client) => resolvePending(client, { nowMs: systemClock.nowMs(), max: 10 }));
      deliver();
      await received(2);
      const seen = receiver.messages.map(
        ({ body }) => (JSON.parse(body) as { data: { id: string; billing_status: string } }).data,
      );
      assert.deepEqual(Object.fromEntries(seen.map(({ id, billing_status: status }) => [id, status])), {
        [first.id]: 'final',
        [killed.id]: 'cancelled',
      });
    },
  );

  test('nothing is kept for who has no webhook, has it switched off, or pays for themselves', async () => {
    await post(billed());
    await set({ active: false });
    await post(billed());
    await set({ active: true });
    const { rows } = await postgres.query<{ id: string }>(
      `WITH person AS (INSERT INTO users (email) VALUES ('p@own.test') RETURNING id)
       INSERT INTO wallets (organization_id, user_id, balance, leased) SELECT $1, id, 1000000, 1000000 FROM person
         RETURNING id`,
      [payer.organizationId],
    );
    await postgres.query('INSERT INTO leases (epoch, wallet_id, outstanding) VALUES ($1, $2, 1000000)', [
      epoch,
      rows[0]?.id,
    ]);
    await post(billed(), shipping.billedTerminal(shipping.billedStart({ ...payer, walletId: rows[0]?.id ?? '' })));
    assert.equal((await countDeliveries(postgres)).waiting, 1);
    // An organization that is not billed learns what its requests used.
    await post(terminalRecord(executionStart({ organizationId: payer.organizationId })));
    assert.equal((await countDeliveries(postgres)).waiting, 2);
  });

  test(
    'failed attempts are repeated under the same id with growing pauses, then given up, and tried anew ' +
      'when somebody asks',
    async () => {
      const { secret } = await set();
      const record = billed();
      const answers = [500, 302, null, 404];
      receiver.answerWith(500);
      await post(record);
      deliver();
      for (const [index, pauseSeconds] of RETRY_AFTER_SECONDS.entries()) {
        const row = await waitFor('the next failure', readAttempt, (found) => found?.failures === index + 1);
        assert.equal(row?.attempts, index + 1);
        assert.ok(Math.abs(row.pause_seconds / pauseSeconds - 1) < 0.15, `${row.pause_seconds} for ${pauseSeconds}`);
        assert.match(row.last_error, index === 2 ? /hang up|reset/ : new RegExp(`^answered ${answers[index] ?? 500}$`));
        receiver.answerWith(answers[index + 1] === undefined ? 500 : (answers[index + 1] ?? null), {
          location: 'http://169.254.169.254/',
        });
        await postgres.query('UPDATE webhooks SET paused_until = NULL');
        await hurry();
      }
      await counted(0, 1);
      const attempts = receiver.messages.length;
      assert.equal(attempts, RETRY_AFTER_SECONDS.length + 1);
      assert.deepEqual(
        new Set(receiver.messages.map(({ headers }) => headers['webhook-id'])),
        new Set([`msg_${record.id}`]),
      );
      const { lastError } = done(await getWebhook(postgres, payer.organizationId));
      assert.equal(lastError, 'answered 500');
      receiver.answerWith(200);
      assert.deepEqual(await redeliverWebhooks(postgres, OPERATOR, payer.organizationId), { requeued: 1 });
      await counted(0, 0);
      await verifySignature(receiver.messages.at(-1) ?? assert.fail(), secret ?? '');
    },
  );

  test('a receiver that is away is not called for each message, and others are served meanwhile', async () => {
    await set({ url: 'http://127.0.0.1:9/away' });
    await post(...Array.from({ length: 40 }, () => billed()));
    const other = await shipping.createPayer(postgres);
    done(
      await setWebhook(postgres, box, OPERATOR, {
        organizationId: other.organizationId,
        url: receiver.url,
        active: true,
      }),
    );
    const theirs = await shipping.createEpoch(postgres, other, 5);
    const record = shipping.billedTerminal(shipping.billedStart(other));
    deliver();
    await waitFor(
      'the pause',
      async () =>
        (
          await postgres.query<{ paused: boolean }>(
            'SELECT paused_until > now() AS paused FROM webhooks ORDER BY created_at LIMIT 1',
          )
        ).rows[0]?.paused,
      (paused) => paused === true,
    );
    const batch = { epoch: theirs, segment: 1, fromOffset: 0, toOffset: 1, records: [record] };
    await postgres.transaction((client) => postExecutions(client, batch));
    await received(1);
    const { rows } = await postgres.query<{ untried: number }>(
      'SELECT count(*) FILTER (WHERE attempts = 0)::integer AS untried FROM webhook_deliveries',
    );
    assert.ok((rows[0]?.untried ?? 0) > 0, 'some of them were not even tried');
  });

  test('many deliverers share the work: each message is delivered, under load once', async () => {
    await set();
    const records = Array.from({ length: 60 }, () => billed());
    await post(...records);
    const parts = { postgres, box: secretsOf(MASTER_KEY).box, targets: LOOPBACK, log: silentLog, clock: systemClock };
    const deliverers = Array.from(
      { length: 3 },
      () => new WebhookDeliverer({ ...parts, metrics: new MetricsRegistry() }),
    );
    for (const one of deliverers) one.start();
    try {
      await counted(0, 0);
    } finally {
      for (const one of deliverers) await one.stop();
    }
    assert.equal(receiver.messages.length, records.length);
    assert.deepEqual(
      new Set(receiver.messages.map(({ headers }) => headers['webhook-id'])),
      new Set(records.map(({ id }) => `msg_${id}`)),
    );
  });

  test('an attempt that ends makes room for the next message at once, and asks for none where none waits', async () => {
    const organizations = 40;
    for (let count = 0; count < organizations; count += 1) {
      const { organizationId } = await shipping.createPayer(postgres);
      done(await setWebhook(postgres, box, OPERATOR, { organizationId, url: receiver.url, active: true }));
    }
    // More than may be under way at once, though each webhook has few.
    const messages = organizations * 5;
    await postgres.query(
      `INSERT INTO webhook_deliveries (execution_id, organization_id, event, data)
       SELECT gen_random_uuid(), organization_id, 'test', '{}' FROM webhooks, generate_series(1, 5)`,
    );
    let claims = 0;
    const counting: Postgres = {
      ...postgres,
      query: (...params: Parameters<Postgres['query']>) => {
        if ((params[0] as { name?: string }).name === 'claim_webhook_deliveries') claims += 1;
        return postgres.query(...params);
      },
    } as Postgres;
    deliver(LOOPBACK, { postgres: counting, pollMs: 3_600_000 });
    await counted(0, 0);
    await deliverer?.stop();
    assert.equal(receiver.messages.length, messages);
    assert.ok(claims <= messages + 2, `${claims} claims for ${messages} messages`);
  });

  test('a claim whose process died ends by itself', async () => {
    await set();
    await post(billed());
    const order = { perWebhook: 5, max: 5, forSeconds: 0, except: [] };
    assert.equal((await claimDeliveries(postgres, order)).length, 1);
    const [again] = await claimDeliveries(postgres, { ...order, forSeconds: 60 });
    assert.equal(again?.attempt, 2);
    assert.deepEqual(await claimDeliveries(postgres, order), []);
    await hurry();
    assert.deepEqual(await claimDeliveries(postgres, { ...order, except: [payer.organizationId] }), []);
  });

  test('secrets: made once, given, rotated, never shown again, useless under another master key', async () => {
    const first = await set();
    assert.match(first.secret ?? '', /^whsec_/);
    assert.equal((await set({ url: `${receiver.url}&c` })).secret, null);
    const given = `whsec_${Buffer.alloc(24, 9).toString('base64')}`;
    assert.equal((await set({ secret: given })).secret, given);
    const rotated = done(await rotateWebhookSecret(postgres, box, OPERATOR, payer.organizationId));
    assert.notEqual(rotated.secret, given);
    assert.ok(!('secret' in done(await getWebhook(postgres, payer.organizationId))));
    const { rows } = await postgres.query<{ secret_sealed: Buffer; log: string }>(
      `SELECT secret_sealed, (SELECT string_agg(coalesce(before::text, '') || coalesce(after::text, ''), ' ')
        FROM audit_log) AS log FROM webhooks`,
    );
    assert.ok(!rows[0]?.secret_sealed.includes('whsec_') && !rows[0]?.log.includes('whsec_'));
    await post(billed());
    deliverer = new WebhookDeliverer({
      postgres,
      box: secretsOf(Buffer.alloc(32, 4)).box,
      targets: LOOPBACK,
      log: silentLog,
      clock: systemClock,
      metrics: new MetricsRegistry(),
    });
    deliverer.start();
    await waitFor(
      'the failure to be told',
      async () => done(await getWebhook(postgres, payer.organizationId)).lastError ?? '',
      (error) => /another MASTER_KEY/.test(error),
    );
    assert.equal(receiver.messages.length, 0);
  });

  test('removing a webhook ends what it was still to be told; what is left of one is forgotten', async () => {
    await set();
    await post(billed());
    assert.deepEqual(await removeWebhook(postgres, OPERATOR, payer.organizationId), { removed: true });
    assert.deepEqual(await countDeliveries(postgres), { waiting: 0, dead: 0 });
    assert.ok(isRefused(await removeWebhook(postgres, OPERATOR, payer.organizationId)));
    await set();
    await post(billed(), billed());
    await postgres.query('DELETE FROM webhooks');
    assert.equal(await forgetDeliveries(postgres, 30), 2);
  });
});

describe('where webhooks may go', () => {
  const message = { headers: {}, body: '{}' };
  const INTERNET = { allowHttp: true, guard: guardOf(false) };

  test('no loopback, private, link-local or reserved address, by number or by name', async () => {
    const hosts = [
      '127.0.0.1',
      '10.1.2.3',
      '169.254.169.254',
      '192.168.0.1',
      '0.0.0.0',
      '[::1]',
      '[fe80::1]',
      '[fd00::1]',
      '[::ffff:127.0.0.1]',
      '[64:ff9b::7f00:1]',
      'localhost',
    ];
    for (const host of hosts) {
      assert.match(
        (await sendWebhook({ url: `http://${host}:9/`, ...message }, INTERNET)) ?? '',
        /loopback, private or reserved/,
        host,
      );
    }
    // Forms of 127.0.0.1 that the URL standard reads as such.
    for (const host of ['2130706433', '0x7f.1', '0177.0.0.1', '127.1']) {
      assert.match(
        (await sendWebhook({ url: `http://${host}:9/`, ...message }, INTERNET)) ?? '',
        /loopback, private or reserved/,
        host,
      );
    }
  });

  test('http only where the installation allows it', async () => {
    assert.match(
      (await sendWebhook({ url: 'http://93.184.216.34/', ...message }, { allowHttp: false, guard: guardOf(true) })) ??
        '',
      /must be an https/,
    );
    for (const url of [
      'ftp://a.test/',
      'https://user:pass@a.test/',
      'https://a.test/#x',
      'javascript:1',
      '//a.test',
      'https://',
      `https://a.test/${'x'.repeat(2_000)}`,
    ]) {
      assert.notEqual(webhookUrlProblem(url, { allowHttp: true }), null, url);
    }
    assert.equal(webhookUrlProblem('https://hooks.example.com:8443/a?b=c', { allowHttp: false }), null);
  });

  test('the signature is HMAC-SHA256 of id, time and body under the decoded secret', () => {
    const key = Buffer.alloc(32, 5);
    const headers = signWebhook(`whsec_${key.toString('base64')}`, {
      id: 'msg_1',
      timestampSeconds: 1_614_265_330,
      body: '{"test": 2432232314}',
    });
    const expected = createHmac('sha256', key).update('msg_1.1614265330.{"test": 2432232314}').digest('base64');
    assert.deepEqual(headers, {
      'webhook-id': 'msg_1',
      'webhook-timestamp': '1614265330',
      'webhook-signature': `v1,${expected}`,
    });
    for (const secret of [
      '',
      'whsec_',
      'whsec_!!!',
      `whsec_${Buffer.alloc(23).toString('base64')}`,
      `whsec_${Buffer.alloc(65).toString('base64')}`,
      Buffer.alloc(32).toString('base64'),
    ]) {
      assert.notEqual(webhookSecretProblem(secret), null, secret);
    }
  });
});
