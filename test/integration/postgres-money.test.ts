// Money in Postgres: leases never overspend, each execution is posted once, and the books always agree.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { picoUsd } from '../../src/domain/money/pico-usd.ts';
import type { ExecutionRecord } from '../../src/records/execution-record.ts';
import { deposit } from '../../src/storage/postgres/ledger/credits.ts';
import {
  closeDeadEpoch,
  fenceEpoch,
  listOpenEpochs,
  resolveAllPending,
  resolvePending,
} from '../../src/storage/postgres/ledger/epochs.ts';
import { findGeneration, listGenerationsByClientRequestId } from '../../src/storage/postgres/ledger/generations.ts';
import { findBrokenInvariants } from '../../src/storage/postgres/ledger/ledger-invariants.ts';
import { type PostResult, postExecutions } from '../../src/storage/postgres/ledger/post-executions.ts';
import { registerEpoch, returnLease, takeLease } from '../../src/storage/postgres/ledger/wallets.ts';
import { createListener } from '../../src/storage/postgres/listen.ts';
import type { Postgres } from '../../src/storage/postgres/pool.ts';
import { admittedRecord, fundOrganization, terminalRecord } from '../support/executions.ts';
import { callInTurn } from '../support/lease-callers.ts';
import { openTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { silentLog } from '../support/silent-log.ts';
import { waitFor } from '../support/waiting.ts';

let database: TestDatabase;
let postgres: Postgres;
before(async () => {
  database = await openTestDatabase();
  ({ postgres } = database);
});
after(() => database?.close());

const newEpoch = (): Promise<number> => registerEpoch(postgres, { machine: 'm', pid: 1, kind: 'gateway' });

function post(
  epoch: number,
  fromOffset: number,
  toOffset: number,
  records: readonly ExecutionRecord[],
): Promise<PostResult> {
  return postgres.transaction((client) => postExecutions(client, { epoch, segment: 1, fromOffset, toOffset, records }));
}

async function readWallet(walletId: string): Promise<{ balance: bigint; leased: bigint }> {
  const { rows } = await postgres.query<{ balance: string; leased: string }>(
    'SELECT balance, leased FROM wallets WHERE id = $1',
    [walletId],
  );
  return { balance: BigInt(rows[0]?.balance ?? -1), leased: BigInt(rows[0]?.leased ?? -1) };
}

async function assertBooksAgree(): Promise<void> {
  assert.deepEqual(await findBrokenInvariants(postgres), []);
}

describe('leases', () => {
  test('an amount that is free is granted whole; else what is free if it suffices; else nothing', async () => {
    const { walletId } = await fundOrganization(postgres, 100n);
    const epoch = await newEpoch();
    const other = await newEpoch();
    assert.deepEqual(await takeLease(postgres, { epoch, walletId, amount: 60n, minimum: 1n }), {
      granted: 60n,
      available: 40n,
      leasedElsewhere: 0n,
      frozen: false,
    });
    assert.deepEqual(await takeLease(postgres, { epoch: other, walletId, amount: 60n, minimum: 41n }), {
      granted: 0n,
      available: 40n,
      leasedElsewhere: 60n,
      frozen: false,
    });
    assert.deepEqual(await takeLease(postgres, { epoch: other, walletId, amount: 60n, minimum: 40n }), {
      granted: 40n,
      available: 0n,
      leasedElsewhere: 60n,
      frozen: false,
    });
    await returnLease(postgres, { epoch, walletId, amount: 25n });
    await assert.rejects(returnLease(postgres, { epoch, walletId, amount: 36n }), /violates check constraint/);
    assert.deepEqual(await readWallet(walletId), { balance: 100n, leased: 75n });
    await assertBooksAgree();
  });

  test('many processes at once never lend more than the wallet has, and lend all of it', async () => {
    const { walletId } = await fundOrganization(postgres, 10_000n);
    const epochs = await Promise.all(Array.from({ length: 8 }, newEpoch));
    const answers = await Promise.all(
      epochs.map((epoch) => callInTurn(25, () => takeLease(postgres, { epoch, walletId, amount: 97n, minimum: 1n }))),
    );
    assert.equal(
      answers.flat().reduce((sum, { granted }) => sum + granted, 0n),
      10_000n,
    );
    assert.deepEqual(await readWallet(walletId), { balance: 10_000n, leased: 10_000n });
    await assertBooksAgree();
  });

  test('a frozen wallet lends nothing; a fenced epoch is refused', async () => {
    const { walletId } = await fundOrganization(postgres, 100n);
    const epoch = await newEpoch();
    await postgres.query('UPDATE wallets SET frozen = true WHERE id = $1', [walletId]);
    assert.deepEqual(await takeLease(postgres, { epoch, walletId, amount: 5n, minimum: 5n }), {
      granted: 0n,
      available: 100n,
      leasedElsewhere: 0n,
      frozen: true,
    });
    await postgres.query('UPDATE wallets SET frozen = false WHERE id = $1', [walletId]);
    await fenceEpoch(postgres, epoch);
    await assert.rejects(takeLease(postgres, { epoch, walletId, amount: 5n, minimum: 5n }), { code: 'TG001' });
  });
});

describe('deposits', () => {
  test('every process is told of a deposit, and not of what is leased and returned', async () => {
    const told: string[] = [];
    const channels = { tollgate_lease_room: (payload: string) => void told.push(payload) };
    const listener = createListener({ url: database.url, log: silentLog, channels, onReconnect: () => {} });
    await listener.listening;
    const times = (walletId: string): number => told.filter((id) => id === walletId).length;
    try {
      const { walletId } = await fundOrganization(postgres, 100n);
      const epoch = await newEpoch();
      await takeLease(postgres, { epoch, walletId, amount: 60n, minimum: 1n });
      await returnLease(postgres, { epoch, walletId, amount: 60n });
      const before = times(walletId);
      await deposit(postgres, { walletId, amount: picoUsd(5n), reference: 'told' });
      await waitFor(
        'the opening and the deposit to be told',
        () => times(walletId),
        (count) => count === 2,
      );
      assert.ok(before <= 1);
    } finally {
      await listener.close();
    }
  });

  test('a reference counts once; for another amount it is a conflict', async () => {
    const { walletId } = await fundOrganization(postgres, 0n);
    const order = { walletId, amount: picoUsd(500n), reference: 'invoice-1' };
    const results = await Promise.all([1, 2, 3, 4].map(() => deposit(postgres, order)));
    assert.equal(results.filter((result) => result.ok && !result.repeated).length, 1);
    assert.deepEqual(await deposit(postgres, { ...order, amount: picoUsd(501n) }), {
      ok: false,
      reason: 'reference_conflict',
    });
    const { walletId: elsewhere } = await fundOrganization(postgres, 0n);
    assert.deepEqual(await deposit(postgres, { ...order, walletId: elsewhere }), {
      ok: true,
      repeated: false,
      balance: 500n,
    });
    assert.equal((await readWallet(walletId)).balance, 500n);
    await assertBooksAgree();
  });
});

describe('posting', () => {
  test('a batch posts its charges once, however often it comes, and records are found with their figures', async () => {
    const owner = await fundOrganization(postgres, 1_000_000n);
    const epoch = await newEpoch();
    await takeLease(postgres, { epoch, walletId: owner.walletId, amount: 5_000n, minimum: 1n });
    const first = admittedRecord(owner, { clientRequestId: 'posted-once' });
    const second = admittedRecord(owner);
    const batch = [first, second, terminalRecord(first)];

    const posted = await post(epoch, 0, 300, batch);
    assert.deepEqual(posted, { status: 'posted', terminals: [batch[2]] });
    assert.deepEqual(await post(epoch, 0, 300, batch), { status: 'already_posted', postedOffset: 300 });
    assert.deepEqual(await readWallet(owner.walletId), { balance: 999_300n, leased: 4_300n });

    assert.deepEqual(await findGeneration(postgres, { id: first.id, ...owner }), {
      id: first.id,
      model: 'sim/large',
      virtualModel: null,
      hasProvider: true,
      streamed: true,
      inputTokens: 10,
      outputTokens: 20,
      usageDetails: null,
      billingStatus: 'final',
      charge: '700',
      ratedCost: '700',
      authorizedAmount: '1000',
      screening: null,
      credentialId: null,
      ownFailures: null,
      fee: null,
    });
    assert.equal((await findGeneration(postgres, { id: second.id, ...owner }))?.billingStatus, 'pending');
    assert.equal(
      await findGeneration(postgres, { id: first.id, organizationId: owner.organizationId, walletId: null }),
      null,
    );
    assert.equal(
      await findGeneration(postgres, { id: first.id, organizationId: first.apiKeyId, walletId: owner.walletId }),
      null,
    );
    assert.deepEqual(
      (await listGenerationsByClientRequestId(postgres, { clientRequestId: 'posted-once', ...owner })).map(
        ({ id }) => id,
      ),
      [first.id],
    );

    assert.equal(
      (await post(epoch, 300, 400, [terminalRecord(second, { charge: '0', ratedCost: '0', suspense: '55' })])).status,
      'posted',
    );
    assert.deepEqual(await readWallet(owner.walletId), { balance: 999_300n, leased: 4_300n });
    const suspense = await postgres.query<{ amount: string }>(
      `SELECT e.amount FROM ledger_entries e JOIN ledger_transfers t ON t.id = e.transfer_id JOIN ledger_accounts a
        ON a.id = e.account_id
        WHERE t.execution_id = $1 AND a.kind = 'suspense'`,
      [second.id],
    );
    assert.deepEqual(suspense.rows, [{ amount: '55' }]);
    await assertBooksAgree();
  });

  test('a record that comes again past the cursor is not charged again', async () => {
    const owner = await fundOrganization(postgres, 10_000n);
    const epoch = await newEpoch();
    await takeLease(postgres, { epoch, walletId: owner.walletId, amount: 5_000n, minimum: 1n });
    const known = terminalRecord(admittedRecord(owner));
    const fresh = terminalRecord(admittedRecord(owner));
    await post(epoch, 0, 100, [known]);
    const again = await post(epoch, 100, 300, [known, fresh, fresh]);
    assert.deepEqual(again, { status: 'posted', terminals: [fresh] });
    assert.equal((await readWallet(owner.walletId)).balance, 10_000n - 1_400n);
    await assertBooksAgree();
  });

  test('of two shippers with the same batch one posts', async () => {
    const owner = await fundOrganization(postgres, 100_000n);
    const epoch = await newEpoch();
    await takeLease(postgres, { epoch, walletId: owner.walletId, amount: 50_000n, minimum: 1n });
    const batch = Array.from({ length: 20 }, () => terminalRecord(admittedRecord(owner)));
    const results = await Promise.all([1, 2, 3, 4].map(() => post(epoch, 0, 100, batch)));
    assert.deepEqual(results.map(({ status }) => status).sort(), [
      'already_posted',
      'already_posted',
      'already_posted',
      'posted',
    ]);
    assert.equal((await readWallet(owner.walletId)).balance, 100_000n - 20n * 700n);
    await assertBooksAgree();
  });

  test('a transaction that dies after posting leaves nothing behind', async () => {
    const owner = await fundOrganization(postgres, 10_000n);
    const epoch = await newEpoch();
    await takeLease(postgres, { epoch, walletId: owner.walletId, amount: 5_000n, minimum: 1n });
    const record = terminalRecord(admittedRecord(owner));
    const batch = { epoch, segment: 1, fromOffset: 0, toOffset: 100, records: [record] };
    const torn = postgres.transaction(async (client) => {
      await postExecutions(client, batch);
      throw new Error('torn');
    });
    await assert.rejects(torn, /torn/);
    assert.equal(await findGeneration(postgres, { id: record.id, ...owner }), null);
    assert.deepEqual(await readWallet(owner.walletId), { balance: 10_000n, leased: 5_000n });
    assert.equal((await post(epoch, 0, 100, [record])).status, 'posted');
    await assertBooksAgree();
  });

  test('many epochs charging the same wallets at once keep the books', async () => {
    const owners = await Promise.all([1, 2, 3].map(() => fundOrganization(postgres, 1_000_000n)));
    const epochs = await Promise.all(Array.from({ length: 6 }, newEpoch));
    for (const epoch of epochs)
      for (const { walletId } of owners) await takeLease(postgres, { epoch, walletId, amount: 50_000n, minimum: 1n });
    await Promise.all(
      epochs.flatMap(async (epoch) => {
        for (let offset = 0; offset < 10; offset += 1) {
          await post(
            epoch,
            offset,
            offset + 1,
            [...owners, ...owners].reverse().map((owner) => terminalRecord(admittedRecord(owner))),
          );
        }
      }),
    );
    for (const { walletId } of owners)
      assert.equal((await readWallet(walletId)).balance, 1_000_000n - 6n * 10n * 2n * 700n);
    await assertBooksAgree();
  });

  test('a charge without a lease is refused whole', async () => {
    const owner = await fundOrganization(postgres, 10_000n);
    const epoch = await newEpoch();
    const record = terminalRecord(admittedRecord(owner));
    await assert.rejects(post(epoch, 0, 100, [record]));
    assert.equal(await findGeneration(postgres, { id: record.id, ...owner }), null);
    await assertBooksAgree();
  });

  test(
    'labels that Postgres cannot hold do not stop the batch; an organization that is not billed has no ' +
      'ledger entry',
    async () => {
      const owner = await fundOrganization(postgres, 10_000n);
      const epoch = await newEpoch();
      const odd = terminalRecord(
        admittedRecord(owner, {
          walletId: null,
          authorizedAmount: null,
          clientRequestId: 'a\0b\ud800c',
          requestedModel: 'C:\\u0000',
        }),
        {
          billingStatus: 'not_billed',
          charge: null,
          usage: null,
          usageSource: null,
          outcome: 'provider_refused',
          errorCode: '\udfff',
        },
      );
      assert.equal((await post(epoch, 0, 100, [odd])).status, 'posted');
      const wanted = { organizationId: owner.organizationId, walletId: null };
      const [found] = await listGenerationsByClientRequestId(postgres, {
        clientRequestId: 'a\uFFFDb\uFFFDc',
        ...wanted,
      });
      assert.equal(found?.id, odd.id);
      assert.equal(found?.inputTokens, null);
      assert.deepEqual(await listGenerationsByClientRequestId(postgres, { clientRequestId: 'a\0b', ...wanted }), []);
      await assertBooksAgree();
    },
  );

  test('the ledger refuses change, removal and entries that do not sum to zero', async () => {
    await assert.rejects(postgres.query('UPDATE ledger_entries SET amount = 1'), /append-only/);
    await assert.rejects(postgres.query('DELETE FROM ledger_transfers'), /append-only/);
    await assert.rejects(postgres.query('TRUNCATE ledger_entries'), /append-only/);
    const unbalanced = postgres.query(
      `WITH t AS (INSERT INTO ledger_transfers (reference, kind) VALUES ('x', 'correction') RETURNING id)
       INSERT INTO ledger_entries (transfer_id, account_id, amount) SELECT id, 2, 5 FROM t`,
    );
    await assert.rejects(unbalanced, /does not sum to zero/);
  });
});

describe('a dead epoch', () => {
  test('returns the holds of what it left open also where the facts of it cannot be kept', async () => {
    const owner = await fundOrganization(postgres, 10_000n);
    const epoch = await newEpoch();
    await takeLease(postgres, { epoch, walletId: owner.walletId, amount: 5_000n, minimum: 1n });
    await post(epoch, 0, 100, [admittedRecord(owner, { authorizedAmount: '1500' })]);
    await postgres.transaction((client) => closeDeadEpoch(client, epoch));
    const keep = async () => {
      for await (const records of resolveAllPending(postgres, 1_790_000_009_000))
        throw new Error(`ClickHouse is away, and has not ${records.length}`);
    };
    await assert.rejects(keep(), /has not 1/);
    assert.deepEqual(await readWallet(owner.walletId), { balance: 10_000n, leased: 0n });
    await assertBooksAgree();
  });

  test('a return that is carried out behind the closing changes nothing', async () => {
    const owner = await fundOrganization(postgres, 10_000n);
    const { walletId } = owner;
    const epoch = await newEpoch();
    await takeLease(postgres, { epoch, walletId, amount: 5_000n, minimum: 1n, call: 1 });
    const open = admittedRecord(owner, { authorizedAmount: '1500' });
    await post(epoch, 0, 100, [open]);
    await postgres.transaction((client) => closeDeadEpoch(client, epoch));
    // Its process was killed while Postgres let this wait for the wallet.
    await returnLease(postgres, { epoch, walletId, amount: 800n, call: 2 });
    assert.deepEqual(await readWallet(walletId), { balance: 10_000n, leased: 1_500n });
    await post(epoch, 100, 200, [terminalRecord(open, { charge: '1400' })]);
    for await (const _ of resolveAllPending(postgres, 1_790_000_009_000)) assert.fail('nothing is open');
    assert.deepEqual(await readWallet(walletId), { balance: 8_600n, leased: 0n });
    await assertBooksAgree();
  });

  test('a posting that is carried out behind the closing leaves nothing lent', async () => {
    const owner = await fundOrganization(postgres, 10_000n);
    const epoch = await newEpoch();
    await takeLease(postgres, { epoch, walletId: owner.walletId, amount: 5_000n, minimum: 1n });
    const open = admittedRecord(owner, { authorizedAmount: '1500' });
    const late = admittedRecord(owner);
    await post(epoch, 0, 100, [open, late]);
    await postgres.transaction((client) => closeDeadEpoch(client, epoch));
    // The power was cut when jobs had sent this, and no other process finds it in the spool.
    await post(epoch, 100, 200, [terminalRecord(late)]);

    const resolved: string[] = [];
    for await (const records of resolveAllPending(postgres, 1_790_000_009_000))
      resolved.push(...records.map(({ id }) => id));
    assert.deepEqual(resolved, [open.id]);
    assert.deepEqual(await readWallet(owner.walletId), { balance: 9_300n, leased: 0n });
    await assertBooksAgree();
  });

  test(
    'what was not held returns at closing, open executions are cancelled by the rule and their holds ' + 'return',
    async () => {
      const owner = await fundOrganization(postgres, 10_000n);
      const epoch = await newEpoch();
      await takeLease(postgres, { epoch, walletId: owner.walletId, amount: 5_000n, minimum: 1n });
      const done = admittedRecord(owner);
      const open = admittedRecord(owner, { authorizedAmount: '1500' });
      const unbilled = admittedRecord(owner, { walletId: null, authorizedAmount: null });
      await post(epoch, 0, 100, [done, open, unbilled, terminalRecord(done)]);

      // An epoch that lives keeps what is its own.
      assert.deepEqual(
        await postgres.transaction((client) => resolvePending(client, { nowMs: 1_790_000_009_000, max: 100 })),
        [],
      );
      assert.deepEqual(
        (await listOpenEpochs(postgres, 'm')).some((found) => found.epoch === epoch),
        true,
      );
      assert.deepEqual(await postgres.transaction((client) => closeDeadEpoch(client, epoch)), { returned: 2_800n });
      assert.deepEqual(await postgres.transaction((client) => closeDeadEpoch(client, epoch)), { returned: 0n });
      assert.deepEqual(await readWallet(owner.walletId), { balance: 9_300n, leased: 1_500n });
      assert.deepEqual(
        (await listOpenEpochs(postgres, 'm')).some((found) => found.epoch === epoch),
        false,
      );

      const resolved = await postgres.transaction((client) =>
        resolvePending(client, { nowMs: 1_790_000_009_000, max: 100 }),
      );
      const byId = new Map(resolved.map((record) => [record.id, record]));
      assert.equal(byId.size, 2);
      assert.deepEqual(byId.get(open.id), {
        ...open,
        type: 'terminal',
        endedAtMs: 1_790_000_009_000,
        outcome: 'process_killed',
        status: null,
        errorCode: 'process_killed',
        usage: null,
        usageSource: null,
        billingStatus: 'cancelled',
        ratedCost: null,
        charge: '0',
        suspense: '0',
        latencyMs: 9_000,
        ttftMs: null,
        responseBytes: 0,
      });
      assert.equal(byId.get(unbilled.id)?.billingStatus, 'not_billed');
      assert.deepEqual(await postgres.transaction((client) => closeDeadEpoch(client, epoch)), { returned: 1_500n });
      assert.deepEqual(await readWallet(owner.walletId), { balance: 9_300n, leased: 0n });
      assert.deepEqual(await postgres.transaction((client) => resolvePending(client, { nowMs: 1, max: 100 })), []);
      assert.equal((await findGeneration(postgres, { id: open.id, ...owner }))?.billingStatus, 'cancelled');
      await assertBooksAgree();
    },
  );
});
