// A process that stops in the middle of a transaction does not keep others from the wallets that it has locked, and
// nothing of what it began counts.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CommitUnanswered, StoreAway } from '../../src/platform/store-away.ts';
import { StoreBusy } from '../../src/platform/store-busy.ts';
import { holdingAdvisoryLock } from '../../src/storage/postgres/advisory-lock.ts';
import { registerEpoch, takeLease } from '../../src/storage/postgres/ledger/wallets.ts';
import { createPostgres, type Postgres, type PostgresClient } from '../../src/storage/postgres/pool.ts';
import { fundOrganization } from '../support/executions.ts';
import { startInterruptibleLink } from '../support/interruptible-link.ts';
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

async function backendOf(client: PostgresClient): Promise<number> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  return rows[0]?.pid ?? 0;
}

/** Until what a connection's server process said last is here, and it is gone. */
async function untilEnded(backend: number): Promise<void> {
  await waitFor(
    'the server to end the connection',
    () => jobs.query('SELECT FROM pg_stat_activity WHERE pid = $1', [backend]),
    ({ rowCount }) => rowCount === 0,
  );
  await pause(1);
}

/** The same, but this process does nothing at all meanwhile, for half a minute at the longest. */
function standStillUntilEnded(backend: number): void {
  for (let round = 0; round < 1_500 && isAlive(backend); round += 1)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
}

/** Of another user's process, too. */
function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (fault) {
    return (fault as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

test('a database that cannot be reached is told apart from one that refuses a statement, and from a bug', async () => {
  const nobody = createPostgres({ url: 'postgres://nobody@127.0.0.1:9/none', log: silentLog });
  await assert.rejects(nobody.query('SELECT 1'), StoreAway);
  await assert.rejects(
    nobody.transaction(async () => undefined),
    StoreAway,
  );
  await nobody.close();
  // As a standby, which a failover leaves behind an address for a while.
  const onStandby = gateway.transaction(async (client) => {
    await client.query('SET TRANSACTION READ ONLY');
    await client.query("INSERT INTO users (email) VALUES ('standby@people.test')");
  });
  await assert.rejects(onStandby, StoreAway);
  const bugs: readonly (readonly [statement: string, values?: readonly unknown[]])[] = [
    ['SELEC 1'],
    ['SELECT 1 / 0'],
    // The server repeats what somebody sent, and calls a parameter too many a fault of the connection.
    ['SELECT $1::text::integer', ['Connection terminated']],
    ['SELECT $1::text', ['one', 'too many']],
  ];
  for (const [wrong, values] of bugs)
    await assert.rejects(gateway.query(wrong, values), (fault) => !(fault instanceof StoreAway), wrong);
});

/** What the server says of itself, of others who are in the way, and of a statement that is wrong. */
const SQLSTATES: Readonly<Record<string, string>> = {
  away: '08000 08003 08006 25006 28000 28P01 3D000 53000 53100 53200 53300 53400 57P01 57P02 57P03 57P04 57P05',
  busy: '25P03 25P04 40001 40P01 55P03 57014',
  bug: '08P01 22012 23505 25P02 42601 42P01 54000 XX000',
};

for (const [means, sqlstates] of Object.entries(SQLSTATES))
  test(`what Postgres answers is taken for ${means}: ${sqlstates}`, async () => {
    for (const sqlstate of sqlstates.split(' ')) {
      const raise = `DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '${sqlstate}'; END $$`;
      for (const ask of [() => gateway.query(raise), () => gateway.transaction((client) => client.query(raise))]) {
        const fault = await ask().then(
          () => null,
          (error: unknown) => error,
        );
        const found = fault instanceof StoreAway ? 'away' : fault instanceof StoreBusy ? 'busy' : 'bug';
        assert.deepEqual([sqlstate, found], [sqlstate, means]);
        assert.ok(fault instanceof Error && !(fault instanceof CommitUnanswered));
      }
    }
  });

test('a connection to a server that only reads is not kept: another may lead to the one that writes', async () => {
  const single = createPostgres({ url: await server.createDatabase(), log: silentLog, max: 1 });
  const write = () =>
    single.transaction((client) => client.query("INSERT INTO users (email) VALUES ('standby@people.test')"));
  try {
    await single.query('SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY');
    await assert.rejects(write(), StoreAway);
    await write();
  } finally {
    await single.close();
  }
});

test('a wallet that a standing transaction has locked is lent from again, and what that one did is undone', async () => {
  const { walletId } = await fundOrganization(gateway, 100n);
  const epoch = await registerEpoch(gateway, { machine: 'm', pid: 1, kind: 'gateway' });
  const locked = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  let attempts = 0;
  const standing = jobs.transaction(async (client) => {
    attempts += 1;
    if (attempts > 1) throw new Error('begun anew');
    await client.query('UPDATE wallets SET balance = 1 WHERE id = $1', [walletId]);
    locked.resolve();
    await goOn.promise;
  });
  const ended = assert.rejects(standing, /begun anew/);
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
});

test('a transaction whose connection ended before the commit is run once more, and no more than that', async () => {
  for (const [stands, expected] of [
    [1, ['1', 2]],
    [2, ['rejected', 2]],
  ] as const) {
    const { walletId } = await fundOrganization(gateway, 100n);
    let attempts = 0;
    const changed = gateway.transaction(async (client) => {
      attempts += 1;
      await client.query('UPDATE wallets SET balance = 1 WHERE id = $1', [walletId]);
      if (attempts > stands) return;
      const backend = await backendOf(client);
      await client.query(`SET LOCAL idle_in_transaction_session_timeout = 20`);
      await untilEnded(backend);
      // Once the process stands still just before its commit, once before another statement.
      if (stands === 2) await client.query('SELECT 1');
    });
    const outcome = await changed.then(
      () => 'committed',
      (fault: unknown) => (fault instanceof StoreAway || fault instanceof StoreBusy ? 'rejected' : fault),
    );
    const { rows } = await gateway.query<{ balance: string }>('SELECT balance FROM wallets WHERE id = $1', [walletId]);
    assert.deepEqual([outcome === 'committed' ? rows[0]?.balance : outcome, attempts], expected);
    if (outcome !== 'committed') assert.equal(rows[0]?.balance, '100');
  }
});

for (const transport of ['socket', 'TCP'] as const)
  for (const where of ['before a statement', 'before the commit'] as const)
    test(`a process that stands still ${where} finds its connection ended (${transport}): it is run once more`, async () => {
      const url = await server.createDatabase();
      const link = transport === 'TCP' ? await startInterruptibleLink(url) : null;
      const standing = createPostgres({ url: link?.url ?? url, log: silentLog });
      let attempts = 0;
      try {
        await standing.transaction(async (client) => {
          attempts += 1;
          const backend = await backendOf(client);
          await client.query(`SET LOCAL idle_in_transaction_session_timeout = 20`);
          // Nothing is read meanwhile: what the driver meets first is that it cannot write, or its words go unread.
          if (attempts === 1) standStillUntilEnded(backend);
          if (where === 'before a statement') await client.query('SELECT 1');
        });
        assert.equal(attempts, 2);
      } finally {
        await standing.close();
        await link?.cut();
      }
    });

test('a commit that a lost connection leaves unanswered may have been made: it is told apart, and not run again', async () => {
  await gateway.query(`CREATE TABLE lost_at_commit (id int);
    CREATE FUNCTION lose_it() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON lost_at_commit DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION lose_it()`);
  let attempts = 0;
  const insert = 'INSERT INTO lost_at_commit VALUES (1)';
  const unanswered = gateway.transaction(async (client) => {
    attempts += 1;
    await client.query(insert);
  });
  await assert.rejects(unanswered, CommitUnanswered);
  assert.equal(attempts, 1);
  const ended = gateway.transaction(async (client) => {
    await client.query(insert);
    await client.query('SET CONSTRAINTS ALL IMMEDIATE');
  });
  await assert.rejects(ended, (fault) => fault instanceof StoreAway && !(fault instanceof CommitUnanswered));
});

test('a bug of ours is no lost connection: it is told, and not run again', async () => {
  const circular: Record<string, unknown> = {};
  circular.self = circular;
  let attempts = 0;
  const failing = gateway.transaction(async (client) => {
    attempts += 1;
    await client.query('SELECT $1::json', [circular]);
  });
  await assert.rejects(failing, TypeError);
  assert.equal(attempts, 1);
});

test('a transaction that goes on after a failed statement is not taken for committed', async () => {
  const swallowing = gateway.transaction(async (client) => {
    await client.query('CREATE TABLE swallowed ()');
    await client.query('SELECT 1 / 0').catch(() => undefined);
  });
  await assert.rejects(swallowing, /one of its statements failed/);
  const { rows } = await gateway.query("SELECT to_regclass('swallowed') AS name");
  assert.deepEqual(rows, [{ name: null }]);
});

test('a commit that waits for a lock is given up as busy, has done nothing, and is waited for by nobody', async () => {
  const impatient = createPostgres({
    url: await server.createDatabase(),
    log: silentLog,
    max: 2,
    statementTimeoutMs: 1_000,
  });
  try {
    await impatient.query(`CREATE TABLE locked_at_commit (id int);
      CREATE FUNCTION lock_it() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        PERFORM pg_advisory_xact_lock(77); RETURN NULL; END $$;
      CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON locked_at_commit DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION lock_it()`);
    const locked = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    const holding = impatient.transaction(async (client) => {
      await client.query('SELECT pg_advisory_xact_lock(77)');
      locked.resolve();
      await goOn.promise;
    });
    await locked.promise;
    const inserting = impatient.transaction((client) => client.query('INSERT INTO locked_at_commit VALUES (1)'));
    await assert.rejects(inserting, (error: unknown) => error instanceof StoreBusy && error.code === '55P03');
    const waiting = await impatient.query(`SELECT FROM pg_locks WHERE objid = 77 AND NOT granted`);
    goOn.resolve();
    await holding;
    const committed = await impatient.query('SELECT id FROM locked_at_commit');
    assert.deepEqual([waiting.rowCount, committed.rows], [0, []]);
  } finally {
    await impatient.close();
  }
});

test('a connection that does not answer is closed, and who waits for one need not wait for a rollback', async () => {
  const single = createPostgres({
    url: await server.createDatabase(),
    log: silentLog,
    max: 1,
    statementTimeoutMs: 3_000,
  });
  const begun = Promise.withResolvers<number>();
  const goOn = Promise.withResolvers<void>();
  let attempts = 0;
  const unanswered = single.transaction(async (client) => {
    attempts += 1;
    const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    begun.resolve(rows[0]?.pid ?? 0);
    await goOn.promise;
    await client.query('SELECT 1');
  });
  const backend = await begun.promise;
  process.kill(backend, 'SIGSTOP');
  try {
    const ended = assert.rejects(unanswered, /read timeout/);
    goOn.resolve();
    // The pool waits for five seconds for a connection, and the answer is given up after four.
    assert.deepEqual((await single.query('SELECT 1 AS one')).rows, [{ one: 1 }]);
    await ended;
    assert.equal(attempts, 1);
  } finally {
    process.kill(backend, 'SIGCONT');
    await single.close();
  }
});

test('what is done under an advisory lock is not done again when the connection that holds it ends', async () => {
  let times = 0;
  const working = holdingAdvisoryLock(gateway, 79, async () => {
    times += 1;
    const { rows } = await jobs.query<{ pid: number }>(
      `SELECT pid, pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objid = 79`,
    );
    await untilEnded(rows[0]?.pid ?? 0);
  });
  await assert.rejects(working, /ended before the work did/);
  assert.equal(times, 1);
});

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
