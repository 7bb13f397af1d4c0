// The simulation has a true model of the database: the same random operations, through the real storage functions, on a
// real Postgres and on the model, give the same answers, the same refusals and the same tables.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import type { AdmittedRecord, ExecutionRecord, TerminalRecord } from '../../src/records/execution-record.ts';
import { closeDeadEpoch, fenceEpoch, resolvePending } from '../../src/storage/postgres/ledger/epochs.ts';
import { postExecutions } from '../../src/storage/postgres/ledger/post-executions.ts';
import {
  advanceFactsOffsets,
  deleteSpoolCursors,
  readSpoolCursors,
} from '../../src/storage/postgres/ledger/spool-cursors.ts';
import { recoverLease, registerEpoch, returnLease, takeLease } from '../../src/storage/postgres/ledger/wallets.ts';
import { recoverLimitLease, returnLimitLease, takeLimitLease } from '../../src/storage/postgres/limits/limit-leases.ts';
import { createPostgres, type Postgres, type PostgresClient, type Statement } from '../../src/storage/postgres/pool.ts';
import { ModelBooks } from '../simulation/model-books.ts';
import type { LastCall, UsageLimitRow } from '../simulation/model-limits.ts';
import { answerStatement } from '../simulation/model-statements.ts';
import { SeededRandom } from '../simulation/seeded-random.ts';
import { howMany } from '../support/at-length.ts';
import { admittedRecord, fundOrganization, terminalRecord } from '../support/executions.ts';
import { silentLog, startTestPostgres, type TestPostgres } from '../support/postgres.ts';

const SEQUENCES = howMany({ short: 12, long: 200 });
const OPERATIONS = 40;

/** The model behind the interface that the storage functions know. */
class ModelPostgres implements Postgres {
  readonly books = new ModelBooks(randomUUID);

  async query<Row extends object>(
    statement: Statement,
    values: readonly unknown[] = [],
  ): Promise<{ rows: Row[]; rowCount: number }> {
    try {
      const result = this.answer<Row>(statement, values);
      this.books.commit();
      return result;
    } catch (fault) {
      this.books.rollBack();
      throw fault;
    }
  }

  private answer<Row extends object>(
    statement: Statement,
    values: readonly unknown[],
  ): { rows: Row[]; rowCount: number } {
    const context = { books: this.books, nowMs: 0, notify: () => undefined };
    const rows = answerStatement(context, typeof statement === 'string' ? statement : statement.name, values) as Row[];
    return { rows, rowCount: rows.length };
  }

  async transaction<T>(work: (client: PostgresClient) => Promise<T>): Promise<T> {
    try {
      const result = await work({ query: async (statement, values = []) => this.answer(statement, values) });
      this.books.commit();
      return result;
    } catch (fault) {
      this.books.rollBack();
      throw fault;
    }
  }

  async close(): Promise<void> {
    // There is nothing to close.
  }
}

/** One of the two, with its own names for epochs and for the pools of budgets. */
interface Side {
  readonly postgres: Postgres;
  readonly epochs: number[];
  /** Grants by the place in the sequence at which they were first given. */
  readonly grants: Map<number, string>;
}

interface Limit {
  readonly id: string;
  readonly kind: UsageLimitRow['kind'];
  readonly period: UsageLimitRow['period'];
}

interface Execution {
  readonly start: AdmittedRecord;
  readonly epoch: number;
  readonly grants: readonly number[];
}

interface Operation {
  readonly name: string;
  act(side: Side): Promise<unknown>;
}

/** A sequence of operations on one organization; time goes on by itself. */
class Sequence {
  readonly random: SeededRandom;
  readonly real: Side;
  readonly model: Side;
  readonly books: ModelBooks;
  readonly owner: { readonly organizationId: string; readonly walletId: string };
  readonly limits: Limit[] = [];
  private readonly executions: Execution[] = [];
  /** By epoch and segment: as far as posted. */
  private readonly offsets = new Map<string, number>();
  /** The limit of each grant. */
  private readonly grantLimits = new Map<number, Limit>();
  private atMs: number;
  private epochs = 0;
  private step = 0;

  constructor(seed: number, postgres: Postgres, owner: Sequence['owner']) {
    const model = new ModelPostgres();
    this.random = new SeededRandom(seed);
    this.owner = owner;
    this.real = { postgres, epochs: [], grants: new Map() };
    this.model = { postgres: model, epochs: [], grants: new Map() };
    this.books = model.books;
    this.atMs = Date.UTC(2026, 10, 30, 23, 59, 20) + this.random.whole(-30_000, 30_000);
    model.books.openWallet(owner.walletId);
    model.books.commit();
  }

  async run(): Promise<void> {
    for (const kind of ['requests_per_minute', 'tokens_per_minute', 'concurrent_requests', 'budget'] as const)
      await this.makeLimit(kind);
    await this.both(this.register());
    for (this.step = 0; this.step < OPERATIONS; this.step += 1) {
      this.atMs += Math.round(this.random.magnitude(1, 20_000)) - 1;
      await this.both(this.next());
    }
    assert.deepEqual(await tablesOf(this), modelTablesOf(this));
  }

  /** Does it on both sides: the same answer, or the same refusal. */
  private async both(operation: Operation): Promise<void> {
    const outcomes: unknown[] = [];
    for (const side of [this.real, this.model]) outcomes.push(await actOn(side, operation));
    assert.deepEqual(outcomes[0], outcomes[1], `${operation.name} in step ${this.step}: Postgres and the model differ`);
  }

  private next(): Operation {
    const { random } = this;
    const choices: readonly (() => Operation)[] = [
      () => this.register(),
      () => this.takeCredit(),
      () => this.takeCredit(),
      () => this.returnCredit(),
      () => this.recoverCredit(),
      () => this.deposit(),
      () => this.freeze(),
      () => this.takeLimit(),
      () => this.takeLimit(),
      () => this.takeLimit(),
      () => this.giveBack(),
      () => this.giveBack(),
      () => this.recoverLimit(),
      () => this.changeLimit(),
      () => this.post(),
      () => this.post(),
      () => this.post(),
      () => this.moveFacts(),
      () => this.fence(),
      () => this.close(),
      () => this.resolve(),
    ];
    return random.pick(choices)();
  }

  private async makeLimit(kind: UsageLimitRow['kind']): Promise<void> {
    const period = kind === 'budget' ? this.random.pick(['hour', 'day', 'week', 'month'] as const) : null;
    const limit: Limit = { id: randomUUID(), kind, period };
    this.limits.push(limit);
    const amount = BigInt(this.random.whole(1, kind === 'budget' ? 3_000 : 30));
    await this.real.postgres.query(
      'INSERT INTO usage_limits (id, organization_id, kind, time_window, amount) VALUES ($1, $2, $3, $4, $5)',
      [limit.id, this.owner.organizationId, kind, period, amount.toString()],
    );
    this.books.limits.limits.set(limit.id, { ...limit, amount });
    this.books.commit();
  }

  private register(): Operation {
    this.epochs += 1;
    return {
      name: 'register an epoch',
      act: async ({ postgres, epochs }) => {
        epochs.push(await registerEpoch(postgres, { machine: 'test', kind: 'gateway', pid: 1 }));
      },
    };
  }

  private anyEpoch(): number {
    return this.random.below(this.epochs);
  }

  /** A call's number: the next one, one of long ago, or none. */
  private anyCall(): { readonly call?: number } {
    const { random, step } = this;
    return random.chance(0.3) ? {} : { call: random.chance(0.7) ? step + 1 : random.whole(1, step + 1) };
  }

  /** The last call, or one of long ago; of any kind. */
  private recoverCredit(): Operation {
    const [index, call] = [this.anyEpoch(), this.random.whole(Math.max(1, this.step - 6), this.step + 1)];
    const { walletId } = this.owner;
    return {
      name: 'recover a lease call',
      act: ({ postgres, epochs }) => recoverLease(postgres, { epoch: epochs[index] as number, walletId, call }),
    };
  }

  private recoverLimit(): Operation {
    const { random, atMs, step } = this;
    const index = this.anyEpoch();
    const limit = random.pick(this.limits.filter(({ kind }) => kind === 'budget' || kind === 'concurrent_requests'));
    const call = random.whole(Math.max(1, step - 6), step + 1);
    // What is granted is a grant like others.
    this.grantLimits.set(step, limit);
    return {
      name: `recover a call about ${limit.kind}`,
      act: async ({ postgres, epochs, grants }) => {
        const request = { epoch: epochs[index] as number, limitId: limit.id, call, atMs };
        const recovered = await recoverLimitLease(postgres, request);
        if (!recovered.isDone) return recovered;
        grants.set(step, recovered.grantId);
        return recovered.granted;
      },
    };
  }

  private takeCredit(): Operation {
    const call = this.anyCall();
    const [index, amount] = [this.anyEpoch(), BigInt(this.random.whole(0, 4_000))];
    const minimum = BigInt(this.random.whole(-1, Number(amount) + (this.random.chance(0.05) ? 1 : 0)));
    const { walletId } = this.owner;
    return {
      name: 'take a lease',
      act: ({ postgres, epochs }) =>
        takeLease(postgres, { epoch: epochs[index] as number, walletId, amount, minimum, ...call }),
    };
  }

  private returnCredit(): Operation {
    const [index, amount] = [this.anyEpoch(), BigInt(this.random.whole(this.random.chance(0.05) ? -1 : 0, 2_000))];
    const { walletId } = this.owner;
    const call = this.anyCall();
    return {
      name: 'return a lease',
      act: ({ postgres, epochs }) =>
        returnLease(postgres, { epoch: epochs[index] as number, walletId, amount, ...call }),
    };
  }

  private deposit(): Operation {
    const [amount, reference] = [BigInt(this.random.whole(1, 5_000)), `${this.step}`];
    const { walletId } = this.owner;
    return {
      name: 'deposit',
      act: async ({ postgres }) => {
        if (postgres === this.model.postgres) {
          this.books.deposit(walletId, amount, reference);
          this.books.commit();
        } else await postgres.query('SELECT post_deposit($1, $2, $3)', [walletId, amount.toString(), reference]);
      },
    };
  }

  private freeze(): Operation {
    const frozen = this.random.chance(0.3);
    return {
      name: 'freeze or thaw',
      act: async ({ postgres }) => {
        if (postgres === this.model.postgres) {
          this.books.freeze(this.owner.walletId, frozen);
          this.books.commit();
        } else await postgres.query('UPDATE wallets SET frozen = $2 WHERE id = $1', [this.owner.walletId, frozen]);
      },
    };
  }

  private takeLimit(): Operation {
    const { random, atMs, step } = this;
    const [index, limit] = [this.anyEpoch(), random.pick(this.limits)];
    const amount = BigInt(random.whole(0, limit.kind === 'budget' ? 2_000 : 15));
    const minimum = BigInt(random.whole(0, Number(amount)));
    const earlier = [...this.grantLimits].filter(([, of]) => of === limit).map(([place]) => place);
    const present =
      earlier.length > 0 && random.chance(0.5)
        ? { place: random.pick(earlier), free: BigInt(random.whole(0, 12)) }
        : null;
    const call = this.anyCall();
    this.grantLimits.set(step, limit);
    return {
      name: `take of ${limit.kind}`,
      act: async ({ postgres, epochs, grants }) => {
        const grantId = present === null ? undefined : grants.get(present.place);
        const answer = await takeLimitLease(postgres, {
          epoch: epochs[index] as number,
          limitId: limit.id,
          amount,
          minimum,
          present: present === null || grantId === undefined ? null : { grantId, available: present.free },
          atMs,
          ...call,
        });
        grants.set(step, answer.grantId);
        const { validForMs, retryAfterMs, ...rest } = answer;
        // Each side has its own ids of pools; of the seconds of a rate both must agree.
        const round = (ms: number | null): number | null => (ms === null ? null : Math.round(ms));
        return {
          ...rest,
          grantId: answer.grantId.split('@')[1] ?? null,
          validForMs: round(validForMs),
          retryAfterMs: round(retryAfterMs),
        };
      },
    };
  }

  private giveBack(): Operation {
    const { random } = this;
    const place = this.grantLimits.size === 0 ? null : random.pick([...this.grantLimits.keys()]);
    if (place === null) return this.takeLimit();
    const [index, limit] = [this.anyEpoch(), this.grantLimits.get(place) as Limit];
    const amount = BigInt(random.whole(random.chance(0.05) ? -1 : 0, limit.kind === 'budget' ? 800 : 6));
    const call = this.anyCall();
    return {
      name: `give back of ${limit.kind}`,
      act: async ({ postgres, epochs, grants }) => {
        const grantId = grants.get(place);
        if (grantId !== undefined)
          await returnLimitLease(postgres, {
            epoch: epochs[index] as number,
            limitId: limit.id,
            grantId,
            amount,
            ...call,
          });
      },
    };
  }

  private changeLimit(): Operation {
    const { random } = this;
    const [limit, isRemoved] = [random.pick(this.limits), random.chance(0.1)];
    const amount = BigInt(random.whole(0, limit.kind === 'budget' ? 3_000 : 30));
    return {
      name: 'change a limit',
      act: async ({ postgres }) => {
        if (postgres !== this.model.postgres) {
          if (isRemoved) await postgres.query('DELETE FROM usage_limits WHERE id = $1', [limit.id]);
          else await postgres.query('UPDATE usage_limits SET amount = $2 WHERE id = $1', [limit.id, amount.toString()]);
          return;
        }
        const { limits } = this.books.limits;
        if (isRemoved) limits.delete(limit.id);
        else if (limits.get(limit.id) !== undefined) limits.set(limit.id, { ...limit, amount });
        this.books.commit();
      },
    };
  }

  private post(): Operation {
    const { random } = this;
    const [index, segment] = [this.anyEpoch(), random.whole(1, 2)];
    const cursor = `${index}/${segment}`;
    const fromOffset = random.chance(0.85) ? (this.offsets.get(cursor) ?? 0) : random.whole(0, 300);
    const toOffset = fromOffset + random.whole(1, 100);
    const written = Array.from({ length: random.whole(0, 4) }, () => this.record(index));
    return {
      name: 'post a batch',
      act: async (side) => {
        const records = written.map(({ record, grants }) => withBudgets(record, grants, side));
        const epoch = side.epochs[index] as number;
        const result = await side.postgres.transaction((client) =>
          postExecutions(client, { epoch, segment, fromOffset, toOffset, records }),
        );
        if (result.status === 'posted') this.offsets.set(cursor, toOffset);
        return result.status === 'posted'
          ? { status: result.status, ids: result.terminals.map(({ id }) => id).sort() }
          : result;
      },
    };
  }

  /** Of a new execution or of an earlier one: admitted, ended, or both again. */
  private record(index: number): { record: ExecutionRecord; grants: readonly number[] } {
    const { random } = this;
    const isNew = this.executions.length === 0 || random.chance(0.5);
    const execution = isNew ? this.newExecution(index) : random.pick(this.executions);
    if (random.chance(0.4)) return { record: execution.start, grants: execution.grants };
    const charge = execution.start.walletId === null ? null : `${random.whole(0, 300)}`;
    const ending: Partial<TerminalRecord> = {
      charge,
      ratedCost: charge ?? '5',
      billingStatus: charge === null ? 'not_billed' : 'final',
      suspense: random.chance(0.2) ? `${random.whole(0, 50)}` : '0',
      latencyMs: 250,
      ttftMs: null,
      ...(execution.grants.length === 0 ? {} : { budgetUse: `${random.whole(0, 200)}` }),
    };
    // One end each: which of two is taken when both come at once is nobody's promise.
    this.executions.splice(this.executions.indexOf(execution), 1);
    return { record: terminalRecord(execution.start, ending), grants: execution.grants };
  }

  private newExecution(index: number): Execution {
    const { random } = this;
    const walletId = random.chance(0.8) ? this.owner.walletId : null;
    const grants = [...this.grantLimits]
      .filter(([, { kind }]) => kind === 'budget' && random.chance(0.3))
      .map(([place]) => place);
    const authorizedAmount = walletId === null ? null : `${random.whole(0, 400)}`;
    const start = admittedRecord(this.owner, {
      walletId: walletId as string,
      authorizedAmount,
      clientRequestId: null,
      tags: [],
    });
    const execution = { start, epoch: index, grants };
    this.executions.push(execution);
    return execution;
  }

  private moveFacts(): Operation {
    const { random } = this;
    const [index, segment, toOffset] = [this.anyEpoch(), random.whole(1, 2), random.whole(0, 200)];
    const isDeleted = random.chance(0.15);
    if (isDeleted) for (const one of [1, 2]) this.offsets.delete(`${index}/${one}`);
    return {
      name: 'move the facts',
      act: async ({ postgres, epochs }) => {
        const epoch = epochs[index] as number;
        await advanceFactsOffsets(postgres, [{ epoch, segment, toOffset }]);
        const cursors = await readSpoolCursors(postgres, epoch);
        if (isDeleted) await deleteSpoolCursors(postgres, epoch);
        return cursors.sort((one, other) => one.segment - other.segment);
      },
    };
  }

  private fence(): Operation {
    const index = this.anyEpoch();
    return { name: 'fence', act: ({ postgres, epochs }) => fenceEpoch(postgres, epochs[index] as number) };
  }

  private close(): Operation {
    const index = this.anyEpoch();
    return {
      name: 'close a dead epoch',
      act: ({ postgres, epochs }) => postgres.transaction((client) => closeDeadEpoch(client, epochs[index] as number)),
    };
  }

  private resolve(): Operation {
    return {
      name: 'resolve what is open',
      act: async ({ postgres }) => {
        const records = await postgres.transaction((client) =>
          resolvePending(client, { nowMs: this.atMs, max: 100_000 }),
        );
        return records
          .filter(({ organizationId }) => organizationId === this.owner.organizationId)
          .map(({ id, billingStatus, charge, outcome }) => ({ id, billingStatus, charge, outcome }))
          .sort((one, other) => (one.id < other.id ? -1 : 1));
      },
    };
  }
}

function withBudgets(record: ExecutionRecord, places: readonly number[], { grants }: Side): ExecutionRecord {
  const budgets = [...new Set(places.flatMap((place) => grants.get(place) ?? []))];
  return budgets.length === 0 ? record : { ...record, budgets };
}

/** `lock_not_available`: Postgres gave up on a lock and changed nothing. */
const LOCKED = '55P03';
const LOCKED_TRIES_MAX = 50;

/** Sequences run side by side in one database: on a busy machine one waits for the lock of another too long. */
async function actOn(side: Side, operation: Operation): Promise<unknown> {
  for (let tries = 1; ; tries += 1) {
    const outcome = await operation.act(side).catch(nameFault);
    const isLocked = isDeepStrictEqual(outcome, { refused: LOCKED });
    if (!isLocked || tries === LOCKED_TRIES_MAX) return outcome;
  }
}

function nameFault(fault: unknown): unknown {
  const { code, message } = fault as { code?: unknown; message: string };
  return { refused: typeof code === 'string' ? code : message.replaceAll(/\d+/g, 'N') };
}

type Tables = Record<string, unknown>;

/** What Postgres has of this sequence, with epochs and pools named by their place. */
async function tablesOf({ real, owner, limits }: Sequence): Promise<Tables> {
  const { postgres, epochs } = real;
  const ids = limits.map(({ id }) => id);
  const rowsOf = async (text: string, values: readonly unknown[]): Promise<unknown[]> =>
    (await postgres.query<{ row: unknown }>(text, values)).rows.map(({ row }) => row);
  const epochOf = 'array_position($1::bigint[], epoch) - 1';
  return {
    wallet: await rowsOf(`SELECT concat_ws(' ', balance, leased, frozen) AS row FROM wallets WHERE id = $1`, [
      owner.walletId,
    ]),
    epochs: await rowsOf(
      `SELECT concat_ws(' ', ${epochOf}, fenced_at IS NOT NULL, returned_at IS NOT NULL) AS row FROM process_epochs WHERE epoch = ANY($1) ORDER BY epoch`,
      [epochs],
    ),
    leases: await rowsOf(
      `SELECT concat_ws(' ', ${epochOf}, outstanding, last_call, coalesce(last_granted::text, '-')) AS row FROM leases WHERE epoch = ANY($1) AND wallet_id = $2 ORDER BY epoch`,
      [epochs, owner.walletId],
    ),
    generations: await rowsOf(
      `SELECT concat_ws(' ', id, ${epochOf}, wallet_id IS NOT NULL, authorized_amount, billing_status, coalesce(charge::text, '-'), coalesce(outcome, '-'), suspense) AS row
         FROM generations WHERE epoch = ANY($1) ORDER BY id`,
      [epochs],
    ),
    ledger: await rowsOf(
      `SELECT concat_ws(' ', coalesce(sum(amount), 0), count(*)) AS row FROM ledger_entries JOIN ledger_accounts ON id = account_id WHERE wallet_id = $1`,
      [owner.walletId],
    ),
    cursors: await rowsOf(
      `SELECT concat_ws(' ', ${epochOf}, segment, posted_offset, facts_offset) AS row FROM spool_cursors WHERE epoch = ANY($1) ORDER BY epoch, segment`,
      [epochs],
    ),
    pools: await rowsOf(
      `SELECT concat_ws(' ', limit_id, CASE WHEN isfinite(period_start) THEN extract(epoch FROM period_start)::bigint END, used, leased, highest_limit) AS row
         FROM limit_pools WHERE limit_id = ANY($1) ORDER BY limit_id, period_start`,
      [ids],
    ),
    limitLeases: await rowsOf(
      `SELECT concat_ws(' ', ${epochOf}, limit_id, CASE WHEN isfinite(period_start) THEN extract(epoch FROM period_start)::bigint END, outstanding, last_call, coalesce(last_granted::text, '-')) AS row
         FROM limit_leases JOIN limit_pools ON id = pool_id WHERE epoch = ANY($1) ORDER BY epoch, limit_id, period_start`,
      [epochs],
    ),
    windows: await rowsOf(
      `SELECT concat_ws(' ', limit_id, first_label, array_to_string(cells, ',')) AS row FROM rate_windows WHERE limit_id = ANY($1) ORDER BY limit_id`,
      [ids],
    ),
    holdings: await rowsOf(
      `SELECT concat_ws(' ', ${epochOf}, limit_id, first_label, array_to_string(cells, ',')) AS row FROM rate_holdings WHERE epoch = ANY($1) ORDER BY epoch, limit_id`,
      [epochs],
    ),
  };
}

function callText({ lastCall, lastGranted }: LastCall): string {
  return `${lastCall} ${lastGranted ?? '-'}`;
}

function modelTablesOf({ books, model, owner }: Sequence): Tables {
  const placeOf = (epoch: number): number => model.epochs.indexOf(epoch);
  const flag = (value: boolean): string => (value ? 't' : 'f');
  const second = (ms: number): string => (Number.isFinite(ms) ? ` ${ms / 1_000}` : '');
  const { balance, leased, frozen } = books.wallet(owner.walletId);
  const { limits } = books;
  const entries = books.transfers.values().filter(({ kind }) => kind !== 'suspense').length;
  return {
    wallet: [`${balance} ${leased} ${flag(frozen)}`],
    epochs: books.epochs
      .values()
      .map(({ epoch, fenced, returned }) => `${placeOf(epoch)} ${flag(fenced)} ${flag(returned)}`),
    leases: sorted(
      books.leases
        .values()
        .map(({ epoch, outstanding, ...last }) => [
          placeOf(epoch),
          `${placeOf(epoch)} ${outstanding} ${callText(last)}`,
        ]),
    ),
    generations: sorted(
      books.generations.values().map(({ id, epoch, walletId, authorizedAmount, billingStatus, charge, terminal }) => {
        const authorized = authorizedAmount === null ? '' : ` ${authorizedAmount}`;
        return [
          id,
          `${id} ${placeOf(epoch)} ${flag(walletId !== null)}${authorized} ${billingStatus} ${charge ?? '-'} ${terminal?.outcome ?? '-'} ${terminal?.suspense ?? '0'}`,
        ];
      }),
    ),
    ledger: [`${books.account(`wallet ${owner.walletId}`)} ${entries}`],
    cursors: sorted(
      books.cursors
        .values()
        .map(({ epoch, segment, posted, facts }) => [
          placeOf(epoch) * 10 + segment,
          `${placeOf(epoch)} ${segment} ${posted} ${facts}`,
        ]),
    ),
    pools: sorted(
      limits.pools
        .values()
        .map(({ limitId, startMs, used, leased: lent, highest }) => [
          `${limitId}${startMs}`,
          `${limitId}${second(startMs)} ${used} ${lent} ${highest}`,
        ]),
    ),
    limitLeases: sorted(
      limits.leases.values().map(({ epoch, poolId, outstanding, ...last }) => {
        const pool = limits.pools.get(poolId);
        const startMs = pool?.startMs ?? 0;
        return [
          `${String(placeOf(epoch)).padStart(3, '0')} ${pool?.limitId} ${startMs}`,
          `${placeOf(epoch)} ${pool?.limitId}${second(startMs)} ${outstanding} ${callText(last)}`,
        ];
      }),
    ),
    windows: sorted(
      limits.windows.values().map(({ limitId, first, cells }) => [limitId, `${limitId} ${first} ${cells.join(',')}`]),
    ),
    holdings: sorted(
      limits.holdings
        .values()
        .map(({ epoch, limitId, first, cells }) => [
          `${String(placeOf(epoch)).padStart(3, '0')} ${limitId}`,
          `${placeOf(epoch)} ${limitId} ${first} ${cells.join(',')}`,
        ]),
    ),
  };
}

function sorted(rows: readonly (readonly [key: string | number, row: string])[]): string[] {
  return rows.toSorted(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0)).map(([, row]) => row);
}

describe("the simulation's model of the database", () => {
  let server: TestPostgres;
  let postgres: Postgres;

  before(async () => {
    server = await startTestPostgres();
    postgres = createPostgres({ url: await server.createDatabase(), log: silentLog, max: 1 });
  });

  after(async () => {
    await postgres?.close();
    await server?.stop();
  });

  test(`does as Postgres does: ${SEQUENCES} random sequences of ${OPERATIONS} operations`, async () => {
    for (let seed = 1; seed <= SEQUENCES; seed += 1) {
      const sequence = new Sequence(seed, postgres, await fundOrganization(postgres, 0n));
      try {
        await sequence.run();
      } catch (fault) {
        throw new Error(`sequence ${seed}`, { cause: fault });
      }
    }
  });
});
