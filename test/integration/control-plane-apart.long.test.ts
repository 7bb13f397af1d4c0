// What stands still in the control plane keeps nobody from generating: credentials and leases are asked for over
// connections of their own.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { type FakeUpstream, ONE_TOKEN_REPLY, startFakeUpstream } from '../support/fake-upstream.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { httpCall } from '../support/http-call.ts';
import { ADMIN_TOKEN, ask, Tenant } from '../support/identity-world.ts';
import { testConfiguration } from '../support/test-configuration.ts';
import { pause } from '../support/waiting.ts';

const CHAT = '{"model":"sim/small","messages":[{"role":"user","content":"hi"}],"max_tokens":5}';
/** More than all connections of a process. */
const STANDING = 20;

describe('control-plane requests that stand still', () => {
  let upstream: FakeUpstream;
  let tollgate: Tollgate;
  let postgres: pg.Client;

  before(async () => {
    upstream = await startFakeUpstream(() => ONE_TOKEN_REPLY);
    tollgate = await startTollgate({
      clickhouse: 'away',
      configurationYaml: testConfiguration({ upstreamUrl: upstream.url }),
      env: { ADMIN_TOKEN },
    });
    postgres = new pg.Client({ connectionString: tollgate.postgresUrl });
    await postgres.connect();
  });
  after(async () => {
    await postgres?.end();
    await tollgate?.stop();
    await upstream?.close();
  });

  async function waitingForLock(): Promise<number> {
    const { rows } = await postgres.query<{ count: number }>(
      `SELECT count(*)::integer AS count FROM pg_stat_activity WHERE application_name = 'tollgate'
        AND datname = current_database() AND wait_event_type = 'Lock'`,
    );
    return rows[0]?.count ?? 0;
  }

  test(
    'a key that this process has never seen, of a wallet it has leased ' + 'nothing of, generates meanwhile',
    async () => {
      const tenant = await Tenant.create(tollgate.url, 'bystander', 'prepaid');
      const deposit = { organization_id: tenant.id, amount: '10', reference: 'first' };
      await ask(tollgate.url, ADMIN_TOKEN, 'POST', '/v1/billing/deposits', deposit, 201);
      const key = await tenant.addKey();
      await postgres.query('BEGIN');
      await postgres.query('LOCK TABLE audit_log IN ACCESS EXCLUSIVE MODE');
      const standing = Array.from({ length: STANDING }, () =>
        httpCall(`${tollgate.url}/v1/admin/active-org/audit`, {
          headers: { authorization: `Bearer ${tenant.owner.token}` },
        }),
      );
      try {
        // Until no more of them come to stand.
        let waiting = 0;
        let before: number;
        do {
          before = waiting;
          await pause(50);
          waiting = await waitingForLock();
        } while (waiting === 0 || waiting !== before);
        const reply = await httpCall(`${tollgate.url}/v1/chat/completions`, {
          headers: { authorization: `Bearer ${key.secret}` },
          body: CHAT,
        });
        assert.equal(reply.status, 200, reply.body.toString());
        assert.ok((await waitingForLock()) > 0, 'they stand as they did');
      } finally {
        await postgres.query('ROLLBACK');
        await Promise.allSettled(standing);
      }
    },
  );
});
