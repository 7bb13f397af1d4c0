// Jobs is stopped (SIGSTOP) in the middle of a posting, when Postgres has locked the wallet for it: gateways lend and
// serve as before, reports are refused in time, and when it goes on the books are whole.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createPostgres, type Postgres } from '../../src/storage/postgres/pool.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { type HttpAnswer, httpCall } from '../support/http-call.ts';
import { ADMIN_TOKEN, ask } from '../support/identity-world.ts';
import { type LedgerView, openLedgerView } from '../support/ledger-view.ts';
import { silentLog } from '../support/silent-log.ts';
import { type SimulatedProvider, startSimulatedProvider } from '../support/simulated-provider.ts';
import { KEYS, testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

/** Of advisory locks that this test takes; nothing of the product does. */
const GATE = 4_711;
/** A posting changes a wallet's balance, a lease does not: this one stops with the wallet locked. */
const POSTINGS_WAIT_AT_GATE = `
  CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM
    pg_advisory_xact_lock_shared(${GATE}); RETURN NULL; END $$;
  CREATE TRIGGER wallets_wait_at_gate AFTER UPDATE OF balance ON wallets FOR EACH ROW EXECUTE FUNCTION wait_at_gate()`;
const AT_GATE = `SELECT count(*)::int AS count FROM pg_locks WHERE locktype = 'advisory' AND objid = ${GATE}
  AND NOT granted`;

describe('jobs stands still in the middle of a posting', { timeout: 240_000 }, () => {
  let provider: SimulatedProvider;
  let tollgate: Tollgate;
  let ledger: LedgerView;
  /** One connection, which has the gate. */
  let gatekeeper: Postgres;

  before(async () => {
    provider = await startSimulatedProvider();
    tollgate = await startTollgate({
      configurationYaml: testConfiguration({ upstreamUrl: provider.url }),
      env: { ADMIN_TOKEN },
    });
    ledger = openLedgerView(tollgate.postgresUrl);
    gatekeeper = createPostgres({ url: tollgate.postgresUrl, log: silentLog, max: 1 });
  });
  after(async () => {
    await gatekeeper?.close();
    await ledger?.close();
    await tollgate?.stop();
    await provider?.stop();
  });

  const complete = (key: string, maxTokens: number): Promise<HttpAnswer> =>
    httpCall(`${tollgate.url}/v1/chat/completions`, {
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'sim/small', max_tokens: maxTokens, messages: [{ role: 'user', content: 'hi' }] }),
    });

  const posted = (count: number) =>
    waitFor(
      `${count} executions to be posted`,
      () => ledger.query(`SELECT count(*)::int AS count FROM generations WHERE billing_status = 'final'`),
      ([row]) => row?.['count'] === count,
    );

  test(
    'a change that waits for what somebody else has locked is 503 with Retry-After, and possible again ' + 'afterwards',
    async () => {
      const [wallet] = await ledger.query(`
      SELECT w.id::text, w.organization_id::text FROM wallets w JOIN organizations o ON o.id = w.organization_id
        WHERE o.slug = 'poor' AND w.user_id IS NULL`);
      const path = `/v1/admin/organizations/${wallet?.['organization_id']}/wallets/${wallet?.['id']}`;
      await gatekeeper.transaction(async (client) => {
        await client.query('SET LOCAL idle_in_transaction_session_timeout = 0');
        await client.query('SELECT FROM wallets WHERE id = $1 FOR UPDATE', [wallet?.['id']]);
        const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
        const answer = await httpCall(`${tollgate.url}${path}`, { method: 'PATCH', headers, body: '{"frozen":true}' });
        assert.equal(answer.status, 503, answer.body.toString());
        assert.match(String(answer.headers['retry-after']), /^[1-9]\d*$/);
      });
      assert.equal((await ask(tollgate.url, ADMIN_TOKEN, 'PATCH', path, { frozen: true }))['frozen'], true);
    },
  );

  test('no request is refused while the wallet has money, and a report is 503 with Retry-After', async () => {
    for (let count = 0; count < 3; count += 1) assert.equal((await complete(KEYS.acme, 2)).status, 200);
    await posted(3);
    await ledger.query(POSTINGS_WAIT_AT_GATE);
    await gatekeeper.query(`SELECT pg_advisory_lock(${GATE})`);
    assert.equal((await complete(KEYS.acme, 2)).status, 200);
    await waitFor(
      'the posting to stand at the gate',
      () => ledger.query(AT_GATE),
      ([row]) => row?.['count'] === 1,
    );
    const jobs = tollgate.jobsPid();
    process.kill(jobs, 'SIGSTOP');
    let sent = 4;
    try {
      await gatekeeper.query('SELECT pg_advisory_unlock_all()');
      // What one of these holds is more than all that was leased for the small ones: each needs the wallet.
      const answers = await Promise.all(Array.from({ length: 20 }, () => complete(KEYS.acme, 16_000)));
      // Neighbours: one whose wallet nobody has locked, and one without a wallet.
      answers.push(...(await Promise.all([complete(KEYS.other, 100), complete(KEYS.free, 100)])));
      sent += 21;
      assert.deepEqual(
        answers.map(({ status, body }) => (status === 200 ? 200 : `${status} ${body.toString()}`)),
        answers.map(() => 200),
      );
      const report = await httpCall(`${tollgate.url}/v1/usage/me`, {
        headers: { authorization: `Bearer ${KEYS.acme}` },
      });
      assert.equal(report.status, 503, report.body.toString());
      assert.match(String(report.headers['retry-after']), /^[1-9]\d*$/);
    } finally {
      process.kill(jobs, 'SIGCONT');
    }
    await posted(sent);
    assert.equal(tollgate.jobsPid(), jobs);
    const [books] = await ledger.query(`
      SELECT (SELECT sum(charge) FROM generations WHERE wallet_id IS NOT NULL)::text AS charged,
             (SELECT sum(amount) FROM ledger_entries WHERE account_id = (SELECT id FROM ledger_accounts
               WHERE kind = 'revenue'))::text AS earned,
             (SELECT sum(balance) FROM wallets)::text AS balances,
             (SELECT sum(amount) FROM ledger_entries JOIN ledger_accounts a ON a.id = account_id
               WHERE a.wallet_id IS NOT NULL)::text AS owned`);
    assert.equal(books?.['earned'], books?.['charged']);
    assert.equal(books?.['balances'], books?.['owned']);
  });
});
