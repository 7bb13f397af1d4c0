// A process that stops in the middle of a transaction does not keep others from the wallets that it has locked, and
// nothing of what it began counts.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { registerEpoch, takeLease } from '../../src/storage/postgres/ledger/wallets.ts';
import { createPostgres, type Postgres } from '../../src/storage/postgres/pool.ts';
import { fundOrganization } from '../support/executions.ts';
import { silentLog, startTestPostgres, type TestPostgres } from '../support/postgres.ts';
import { pause, waitFor } from '../support/waiting.ts';

let server: TestPostgres;
let jobs: Postgres;
let gateway: Postgres;
before(async () => {
  server = await startTestPostgres();
  const url = await server.createDatabase();
  jobs = createPostgres({ url, log: silentLog });
  gateway = createPostgres({ url, log: silentLog });
});
after(async () => {
  await jobs?.close();
  await gateway?.close();
  await server?.stop();
});

test(
  'a wallet that a standing transaction has locked is lent from again, and what that transaction did ' + 'is undone',
  async () => {
    const { walletId } = await fundOrganization(gateway, 100n);
    const epoch = await registerEpoch(gateway, { machine: 'm', pid: 1, kind: 'gateway' });
    const locked = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    const standing = jobs.transaction(async (client) => {
      await client.query('UPDATE wallets SET balance = 1 WHERE id = $1', [walletId]);
      locked.resolve();
      await goOn.promise;
    });
    const ended = assert.rejects(standing);
    await locked.promise;
    try {
      // A lease request gives up the lock early, and says that it was a lock.
      const request = { epoch, walletId, amount: 60n, minimum: 60n };
      await assert.rejects(takeLease(gateway, request), { code: '55P03' });
      const granted = await waitFor(
        'the wallet to lend',
        () =>
          takeLease(gateway, request).then(
            (answer) => answer.granted,
            () => null,
          ),
        (amount) => amount !== null,
      );
      assert.equal(granted, 60n);
    } finally {
      goOn.resolve();
      await ended;
    }
    const { rows } = await gateway.query<{ balance: string }>('SELECT balance FROM wallets WHERE id = $1', [walletId]);
    assert.equal(rows[0]?.balance, '100');
    // Its place in the pool is taken by a sound connection.
    assert.deepEqual((await jobs.query('SELECT 1 AS one')).rows, [{ one: 1 }]);
  },
);

test('of connections that nobody uses one is kept, so that who comes after a pause need not open it', async () => {
  const kept = createPostgres({ url: await server.createDatabase(), log: silentLog, kept: 1, idleTimeoutMs: 20 });
  const answeredBy = async (): Promise<number> => {
    const { rows } = await kept.query<{ pid: number }>('SELECT pg_backend_pid() AS pid, pg_sleep(0.05)');
    return rows[0]?.pid ?? 0;
  };
  try {
    const opened = await Promise.all([answeredBy(), answeredBy(), answeredBy()]);
    assert.equal(new Set(opened).size, 3);
    const alive = async (): Promise<number[]> => {
      const { rows } = await gateway.query<{ pid: number }>('SELECT pid FROM pg_stat_activity WHERE pid = ANY ($1)', [
        opened,
      ]);
      return rows.map(({ pid }) => pid);
    };
    const left = await waitFor('all but one to be closed', alive, (pids) => pids.length <= 1);
    await pause(200);
    assert.deepEqual(await alive(), left);
    assert.deepEqual([await answeredBy()], left);
  } finally {
    await kept.close();
  }
});
