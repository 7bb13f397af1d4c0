// Billing on a whole installation: a charge becomes final and is told, waited for and shown; a wallet is frozen and no
// gateway serves it; the operator's commands.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { httpCall } from '../support/http-call.ts';
import { ADMIN_TOKEN, ask } from '../support/identity-world.ts';
import { type LedgerView, openLedgerView } from '../support/ledger-view.ts';
import { type SimulatedProvider, startSimulatedProvider } from '../support/simulated-provider.ts';
import { KEYS, testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';
import { startWebhookReceiver, verifySignature, type WebhookReceiver } from '../support/webhook-receiver.ts';

const SECRET = `whsec_${Buffer.alloc(32, 6).toString('base64')}`;
const MASTER_KEY = randomBytes(32).toString('base64');

describe('billing on a whole installation', () => {
  let provider: SimulatedProvider;
  let receiver: WebhookReceiver;
  let tollgate: Tollgate;
  let ledger: LedgerView;

  before(async () => {
    provider = await startSimulatedProvider();
    receiver = await startWebhookReceiver();
    const configurationYaml = testConfiguration({ upstreamUrl: provider.url }).replace(
      '  - slug: acme\n',
      `  - slug: acme\n    webhook: { url: "${receiver.url}", secret: ${SECRET} }\n`,
    );
    const env = { ADMIN_TOKEN, MASTER_KEY, WEBHOOK_ALLOW_HTTP: 'true', WEBHOOK_ALLOW_PRIVATE: 'true' };
    tollgate = await startTollgate({ configurationYaml, env, gatewayProcesses: 2 });
    ledger = openLedgerView(tollgate.postgresUrl);
  });
  after(async () => {
    await ledger?.close();
    await tollgate?.stop();
    await receiver?.close();
    await provider?.stop();
  });

  const complete = (key: string) =>
    httpCall(`${tollgate.url}/v1/chat/completions`, {
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'sim/small', max_tokens: 20, messages: [{ role: 'user', content: 'hi' }] }),
    });

  test('a charge is waited for, and told to the webhook of the configuration file with the same record', async () => {
    const answer = await complete(KEYS.acme);
    assert.equal(answer.status, 200, answer.body.toString());
    const id = String(answer.headers['x-service-execution-id']);
    const looked = await httpCall(`${tollgate.url}/v1/generation?id=${id}&wait=30`, {
      headers: { authorization: `Bearer ${KEYS.acme}` },
    });
    const record = /^\{"data":(.*)\}$/.exec(looked.body.toString())?.[1] ?? '';
    assert.match(record, /"billing_status":"final","total_cost":0\.\d+,/);
    await waitFor(
      'the webhook',
      () => receiver.messages.map(({ headers }) => headers['webhook-id']),
      (ids) => ids.includes(`msg_${id}`),
    );
    const message = receiver.messages.find(({ headers }) => headers['webhook-id'] === `msg_${id}`) ?? assert.fail();
    await verifySignature(message, SECRET);
    assert.ok(message.body.endsWith(`"data":${record}}`), message.body);
  });

  test(
    'a frozen wallet pays for nothing on any gateway; what it holds ' + 'comes back; unfrozen it pays again',
    async () => {
      for (let index = 0; index < 8; index++) assert.equal((await complete(KEYS.acme)).status, 200);
      const frozen = await tollgate.run(['wallet', 'freeze', '--organization', 'acme']);
      assert.ok(frozen.exitCode === 0 && frozen.output.startsWith('acme: frozen; '), frozen.output);
      await waitFor(
        'every gateway to refuse',
        () => Promise.all(Array.from({ length: 12 }, () => complete(KEYS.acme))),
        (answers) => answers.every(({ status, body }) => status === 403 && body.includes('billing_frozen')),
      );
      await waitFor(
        'the credit to come back',
        () => ledger.wallet('acme'),
        ({ leased }) => leased === 0n,
      );
      assert.equal((await complete(KEYS.other)).status, 200);
      assert.equal((await tollgate.run(['wallet', 'unfreeze', '--organization', 'acme'])).exitCode, 0);
      await waitFor(
        'the wallet to pay again',
        async () => (await complete(KEYS.acme)).status,
        (status) => status === 200,
      );
    },
  );

  test('credit that is deposited can be spent at once', async () => {
    assert.equal((await complete(KEYS.broke)).status, 402);
    const { rows } = { rows: await ledger.query(`SELECT id::text AS id FROM organizations WHERE slug = 'broke'`) };
    const order = { organization_id: rows[0]?.['id'], amount: '1.5', reference: 'first' };
    await ask(tollgate.url, ADMIN_TOKEN, 'POST', '/v1/billing/deposits', order, 201);
    assert.equal((await complete(KEYS.broke)).status, 200);
    const credits = await ask(tollgate.url, KEYS.broke, 'GET', '/v1/billing/credits');
    assert.equal(credits['currency'], 'USD');
    const deposits = (await ask(tollgate.url, KEYS.broke, 'GET', '/v1/billing/deposits')) as unknown as {
      amount: string;
    }[];
    assert.deepEqual(
      deposits.map(({ amount }) => amount),
      ['1.5'],
    );
  });

  test('tollgate reconcile finds nothing wrong, and tollgate status shows what ran; the metrics agree', async () => {
    const reconciled = await tollgate.run(['reconcile']);
    assert.equal(reconciled.exitCode, 0, reconciled.output);
    for (const line of reconciled.output.trim().split('\n')) assert.match(line, /^[\w-]+: ok, \d+ ms, /);
    const status = await tollgate.run(['status']);
    assert.equal(status.exitCode, 0, status.output);
    assert.match(status.output, /^job +last run \(UTC\) +result +took +next \(UTC\)$/m);
    assert.match(
      status.output,
      /^check-ledger +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +ok +\d+ ms +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/m,
    );
    const metrics = (await httpCall(`${tollgate.adminUrl}/metrics`)).body.toString();
    assert.match(metrics, /^tollgate_ledger_drift 0$/m);
    assert.match(metrics, /^tollgate_spool_blocked 0$/m);
    await waitFor(
      'the gauges to be refreshed',
      async () => (await httpCall(`${tollgate.adminUrl}/metrics`)).body.toString(),
      (text) =>
        /^tollgate_job_last_success_timestamp_seconds\{task="check-ledger"\} \d/m.test(text) &&
        /^tollgate_pending_oldest_seconds /m.test(text),
    );
  });
});
