// Saved responses in Postgres: posted once with their execution, found only by their own organization and payer,
// forgotten in time.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, beforeEach, describe, test } from 'node:test';
import type { JobContext } from '../../jobs/scheduling/job.ts';
import { forgetOldSavedResponses } from '../../jobs/tasks/forget-saved-responses.ts';
import type { ExecutionRecord, TerminalRecord } from '../../src/records/execution-record.ts';
import { findGeneration } from '../../src/storage/postgres/ledger/generations.ts';
import { type PostResult, postExecutions } from '../../src/storage/postgres/ledger/post-executions.ts';
import { registerEpoch, takeLease } from '../../src/storage/postgres/ledger/wallets.ts';
import type { Postgres, PostgresClient } from '../../src/storage/postgres/pool.ts';
import { findSavedItems } from '../../src/storage/postgres/saved/saved-items.ts';
import { findSavedResponse, forgetSavedResponses } from '../../src/storage/postgres/saved/saved-responses.ts';
import { admittedRecord, type FundedOrganization, fundOrganization, terminalRecord } from '../support/executions.ts';
import { openTestDatabase, type TestDatabase } from '../support/postgres.ts';

let database: TestDatabase;
let postgres: Postgres;
let owner: FundedOrganization;
let epoch: number;
before(async () => {
  database = await openTestDatabase();
  ({ postgres } = database);
});
after(() => database?.close());
beforeEach(async () => {
  owner = await fundOrganization(postgres, 100_000n);
  epoch = await registerEpoch(postgres, { machine: 'm', pid: 1, kind: 'gateway' });
  await takeLease(postgres, { epoch, walletId: owner.walletId, amount: 50_000n, minimum: 1n });
});

/** An execution of the Responses dialect whose reply was saved under `responseId`. */
function savedRecord(responseId: string, changes: Partial<TerminalRecord> = {}): TerminalRecord {
  return terminalRecord(admittedRecord(owner, { api: 'responses' }), { responseId, ...changes });
}

function post(fromOffset: number, toOffset: number, records: readonly ExecutionRecord[]): Promise<PostResult> {
  return postgres.transaction((client) => postExecutions(client, { epoch, segment: 1, fromOffset, toOffset, records }));
}

async function readRows(): Promise<{ response_id: string; execution_id: string }[]> {
  const { rows } = await postgres.query<{ response_id: string; execution_id: string }>(
    'SELECT response_id, execution_id::text FROM saved_responses WHERE organization_id = $1 ORDER BY response_id',
    [owner.organizationId],
  );
  return rows;
}

describe('posting', () => {
  test(
    'a saved response is found once its execution is posted, and a batch ' + 'that comes again changes nothing',
    async () => {
      const first = savedRecord('resp_1');
      const second = savedRecord('resp_2', {
        usage: null,
        usageSource: null,
        provider: 'other',
        model: 'other/small',
        providerModel: 'small-1',
      });
      assert.equal(await findSavedResponse(postgres, { ...owner, responseId: 'resp_1' }), null);
      await post(0, 100, [first, second]);
      assert.deepEqual(await findSavedResponse(postgres, { ...owner, responseId: 'resp_1' }), {
        provider: 'sim',
        ownKeyId: null,
        model: 'sim/large',
        providerModel: 'large-2026',
        inputTokens: 10,
        outputTokens: 20,
      });
      assert.deepEqual(await findSavedResponse(postgres, { ...owner, responseId: 'resp_2' }), {
        provider: 'other',
        ownKeyId: null,
        model: 'other/small',
        providerModel: 'small-1',
        inputTokens: null,
        outputTokens: null,
      });
      const rows = await readRows();
      assert.deepEqual(rows, [
        { response_id: 'resp_1', execution_id: first.id },
        { response_id: 'resp_2', execution_id: second.id },
      ]);
      assert.equal((await post(0, 100, [first, second])).status, 'already_posted');
      // The same records further on in the spool, as after a write that was tried twice.
      assert.deepEqual(await post(100, 200, [first, second, second]), { status: 'posted', terminals: [] });
      assert.deepEqual(await readRows(), rows);
    },
  );

  test('what was forgotten does not come back with a record that comes again', async () => {
    const record = savedRecord('resp_1');
    await post(0, 100, [record]);
    await postgres.query('DELETE FROM saved_responses WHERE organization_id = $1', [owner.organizationId]);
    await post(100, 200, [record]);
    assert.deepEqual(await readRows(), []);
  });

  test('of executions with the same id the newest has it, in whatever order they are posted', async () => {
    const [oldest, older, middle, newest] = [1, 2, 3, 4].map((place) =>
      savedRecord('resp_1', { provider: `place-${place}` }),
    ) as [TerminalRecord, TerminalRecord, TerminalRecord, TerminalRecord];
    await post(0, 100, [middle]);
    await post(100, 200, [newest, older]);
    assert.deepEqual(await readRows(), [{ response_id: 'resp_1', execution_id: newest.id }]);
    await post(200, 300, [oldest]);
    assert.deepEqual(await readRows(), [{ response_id: 'resp_1', execution_id: newest.id }]);
    assert.equal((await findSavedResponse(postgres, { ...owner, responseId: 'resp_1' }))?.provider, 'place-4');
  });

  test('no id, another status than 200, an admission alone: no row', async () => {
    const withoutId = terminalRecord(admittedRecord(owner, { api: 'responses' }));
    const withNull = terminalRecord(admittedRecord(owner, { api: 'responses' }), { responseId: null });
    const refused = savedRecord('resp_refused', { status: 429, outcome: 'provider_refused', charge: '0' });
    const unanswered = savedRecord('resp_unanswered', { status: null });
    await post(0, 100, [withoutId, withNull, refused, unanswered, admittedRecord(owner, { api: 'responses' })]);
    assert.deepEqual(await readRows(), []);
  });

  test('an id that Postgres could not keep is left out, and its execution is posted all the same', async () => {
    const ids = ['', 'a\0b', 'resp_\ud800', 'r'.repeat(257), 'x'.repeat(100_000), 'resp 1', 'resp_ä'];
    const records = ids.map((id) => savedRecord(id, { clientRequestId: 'a\0b' }));
    const longest = savedRecord('r'.repeat(256), { clientRequestId: 'a\0b\ud800' });
    assert.equal((await post(0, 100, [...records, longest])).status, 'posted');
    for (const { id } of records)
      assert.equal((await findGeneration(postgres, { id, ...owner }))?.billingStatus, 'final');
    assert.deepEqual(await readRows(), [{ response_id: 'r'.repeat(256), execution_id: longest.id }]);
    for (const responseId of ids) assert.equal(await findSavedResponse(postgres, { ...owner, responseId }), null);
  });

  test('a transaction that dies after posting leaves no row', async () => {
    const torn = postgres.transaction(async (client) => {
      await postExecutions(client, {
        epoch,
        segment: 1,
        fromOffset: 0,
        toOffset: 100,
        records: [savedRecord('resp_1')],
      });
      throw new Error('torn');
    });
    await assert.rejects(torn, /torn/);
    assert.deepEqual(await readRows(), []);
  });

  test('a batch is one statement, so that no process that stops can hold what it locks', async () => {
    const countStatements = async (fromOffset: number, records: readonly ExecutionRecord[]): Promise<number> => {
      let statements = 0;
      const counting: PostgresClient = {
        query: (statement, values) => (statements++, postgres.query(statement, values)),
      };
      await postExecutions(counting, { epoch, segment: 1, fromOffset, toOffset: fromOffset + 100, records });
      return statements;
    };
    assert.equal(
      await countStatements(0, [terminalRecord(admittedRecord(owner)), terminalRecord(admittedRecord(owner))]),
      1,
    );
    const saved = Array.from({ length: 10 }, (_, index) => savedRecord(`resp_${index}`));
    assert.equal(await countStatements(100, [terminalRecord(admittedRecord(owner)), ...saved]), 1);
    assert.equal((await readRows()).length, 10);
  });
});

describe('items', () => {
  const find = async (
    itemIds: readonly string[],
    asked: { organizationId: string; walletId: string | null } = owner,
  ): Promise<unknown> => Object.fromEntries(await findSavedItems(postgres, { ...asked, itemIds }));
  const of = (responseId: string, provider = 'sim') => ({ provider, ownKeyId: null, responseId, outputTokens: 20 });

  test('are found with their response, by their organization and payer alone, and forgotten with it', async () => {
    const records = [
      savedRecord('resp_1', { itemIds: ['rs_1', 'msg_1'] }),
      savedRecord('resp_2', { itemIds: ['msg_2'], usage: null }),
      savedRecord('resp_3'),
    ];
    await post(0, 100, records);
    assert.deepEqual(await find(['msg_1', 'msg_2', 'rs_1', 'msg_3', 'resp_1', 'MSG_1', 'a\0b']), {
      rs_1: of('resp_1'),
      msg_1: of('resp_1'),
      msg_2: { ...of('resp_2'), outputTokens: null },
    });
    const others = [
      { ...owner, walletId: null },
      { ...owner, walletId: randomUUID() },
      { ...owner, organizationId: randomUUID() },
    ];
    for (const asked of others) assert.deepEqual(await find(['msg_1'], asked), {});
    await forgetSavedResponses(postgres, new Date('2100-01-01'));
    assert.deepEqual(await find(['msg_1', 'msg_2', 'rs_1']), {});
  });

  test('have an id that the newest execution gave, and one that Postgres could not keep is left out', async () => {
    const older = savedRecord('resp_1', { itemIds: ['msg_1', 'msg_1'] });
    const newer = savedRecord('resp_2', { itemIds: ['msg_1', 'a\0b', 'x'.repeat(129), 'msg 1'] });
    await post(0, 100, [newer]);
    await post(100, 200, [older]);
    assert.deepEqual(await find(['msg_1']), { msg_1: of('resp_2') });
    const { rows } = await postgres.query('SELECT item_id FROM saved_items WHERE organization_id = $1', [
      owner.organizationId,
    ]);
    assert.deepEqual(rows, [{ item_id: 'msg_1' }]);
    const many = Array.from({ length: 100 }, (_, index) => `msg_many_${index}`);
    await post(200, 300, [savedRecord('resp_3', { itemIds: many })]);
    assert.equal(Object.keys((await find(many)) as object).length, 64);
  });

  test('of a reply that was refused are nobody’s', async () => {
    await post(0, 100, [
      savedRecord('resp_1', { itemIds: ['msg_1'], status: 429, outcome: 'provider_refused', charge: '0' }),
    ]);
    assert.deepEqual(await find(['msg_1']), {});
  });
});

describe('finding', () => {
  test('another wallet, nobody’s wallet and another organization do not find it', async () => {
    await post(0, 100, [savedRecord('resp_1')]);
    const wanted = { ...owner, responseId: 'resp_1' };
    assert.notEqual(await findSavedResponse(postgres, wanted), null);
    assert.equal(await findSavedResponse(postgres, { ...wanted, walletId: randomUUID() }), null);
    assert.equal(await findSavedResponse(postgres, { ...wanted, walletId: null }), null);
    assert.equal(await findSavedResponse(postgres, { ...wanted, organizationId: randomUUID() }), null);
    assert.equal(await findSavedResponse(postgres, { ...wanted, responseId: 'RESP_1' }), null);
  });

  test('an organization that is not billed finds its own, and a payer of it does not', async () => {
    const unbilled = admittedRecord(owner, { api: 'responses', walletId: null, authorizedAmount: null });
    await post(0, 100, [terminalRecord(unbilled, { responseId: 'resp_1', billingStatus: 'not_billed', charge: null })]);
    assert.notEqual(await findSavedResponse(postgres, { ...owner, walletId: null, responseId: 'resp_1' }), null);
    assert.equal(await findSavedResponse(postgres, { ...owner, responseId: 'resp_1' }), null);
  });

  test('two organizations with the same id each find their own', async () => {
    const other = await fundOrganization(postgres, 10_000n);
    await takeLease(postgres, { epoch, walletId: other.walletId, amount: 5_000n, minimum: 1n });
    const theirs = terminalRecord(admittedRecord(other, { api: 'responses', provider: 'theirs' }), {
      responseId: 'resp_1',
    });
    await post(0, 100, [savedRecord('resp_1'), theirs]);
    assert.equal((await findSavedResponse(postgres, { ...owner, responseId: 'resp_1' }))?.provider, 'sim');
    assert.equal((await findSavedResponse(postgres, { ...other, responseId: 'resp_1' }))?.provider, 'theirs');
  });
});

test('a row is forgotten 90 days after its execution ended', async () => {
  const dayMs = 86_400_000;
  const endedAtMs = 1_600_000_000_000;
  await post(0, 100, [savedRecord('resp_old', { endedAtMs }), savedRecord('resp_young', { endedAtMs: endedAtMs + 2 })]);
  const run = (nowMs: number) =>
    forgetOldSavedResponses({ postgres, clock: { nowMs: () => nowMs, monotonicMs: () => 0 } } as JobContext);
  assert.deepEqual(await run(endedAtMs + 90 * dayMs), { forgotten: 0 });
  assert.deepEqual(await run(endedAtMs + 90 * dayMs + 1), { forgotten: 1 });
  assert.deepEqual(
    (await readRows()).map((row) => row.response_id),
    ['resp_young'],
  );
  assert.equal(await forgetSavedResponses(postgres, new Date(endedAtMs + 3)), 1);
});
