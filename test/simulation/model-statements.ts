// The answers of the modelled database to each statement that gateways and jobs send, in the types in which the driver
// returns rows. An unknown statement is a fault: whoever adds a statement to the accounting core adds it here and to
// the differential test.

import type { RecoveredCall } from '../../src/domain/quotas/lease.ts';
import type { ExecutionRecord } from '../../src/records/execution-record.ts';
import type { ModelBooks } from './model-books.ts';
import type { LimitReturn } from './model-limits.ts';

type Values = readonly unknown[];
type Rows = readonly object[];

export interface StatementContext {
  readonly books: ModelBooks;
  /** The time of the database's clock. */
  readonly nowMs: number;
  readonly notify: (channel: string, payload: string) => void;
}

type Answer = (context: StatementContext, values: Values) => Rows;

/** The answers, by the statement's name or by a part of its text that no other statement has. */
const ANSWERS: readonly (readonly [mark: string, answer: Answer])[] = [
  ['take_lease', ({ books }, values) => takeLease(books, values)],
  [
    'return_lease',
    ({ books }, [epoch, wallet, amount, call]) =>
      done(books.returnLease(Number(epoch), String(wallet), BigInt(String(amount)), callOf(call))),
  ],
  [
    'recover_lease',
    ({ books }, [epoch, wallet, call]) => {
      const recovered = books.recoverLease(Number(epoch), String(wallet), Number(call));
      return [recoveredRow(recovered)];
    },
  ],
  [
    'recover_limit_lease',
    ({ books, nowMs }, [epoch, limitId, call, atMs]) => {
      const recovered = books.limits.recover(
        { epoch: Number(epoch), limitId: String(limitId), call: Number(call) },
        typeof atMs === 'number' ? atMs : nowMs,
      );
      return [recoveredRow(recovered)];
    },
  ],
  ['take_limit_lease', takeLimitLease],
  ['give_back_limit_lease', ({ books }, values) => done(books.limits.giveBack(giveBackOf(values)))],
  ['INSERT INTO process_epochs', ({ books }) => [{ epoch: String(books.registerEpoch()) }]],
  // Gateways of the simulation write no beats.
  ['FROM process_beats', () => [{ is_beating: null }]],
  [
    'pg_notify',
    ({ notify }, [channel, payloads]) => {
      for (const payload of payloads as string[]) notify(String(channel), payload);
      return [];
    },
  ],
  ['SELECT 1', () => []],
  ['post_executions', post],
  [
    'SELECT posted_offset',
    ({ books }, [epoch, segment]) => [{ posted_offset: String(books.postedOffset(Number(epoch), Number(segment))) }],
  ],
  ['SELECT segment, posted_offset', ({ books }, [epoch]) => readCursors(books, Number(epoch))],
  [
    'advance_facts_offsets',
    ({ books }, [epochs, segments, offsets]) =>
      advanceFacts(books, epochs as number[], segments as number[], offsets as number[]),
  ],
  ['DELETE FROM spool_cursors', ({ books }, [epoch]) => done(books.deleteCursors(Number(epoch)))],
  ['UPDATE process_epochs SET fenced_at', ({ books }, [epoch]) => done(books.fence(Number(epoch)))],
  ['released AS MATERIALIZED', ({ books }, [epoch]) => [{ returned: String(books.closeLeases(Number(epoch))) }]],
  ['SELECT id FROM wallets WHERE id IN (SELECT wallet_id FROM leases', () => []],
  ['SELECT DISTINCT epoch FROM leases', ({ books }) => books.closedWithLeases().map((epoch) => ({ epoch }))],
  ['UPDATE process_epochs SET shipped_at', ({ books }, [epoch]) => done(books.markReturned(Number(epoch)))],
  ['DELETE FROM limit_leases USING locked', ({ books }, [epoch]) => done(books.limits.returnAll(Number(epoch)))],
  ['DELETE FROM rate_holdings WHERE epoch', ({ books }, [epoch]) => done(books.limits.dropHoldings(Number(epoch)))],
  [
    'AND process_epochs.returned_at IS NOT NULL',
    ({ books }, [nowMs, max]) => books.resolve(Number(nowMs), Number(max)),
  ],
  [
    "outcome = 'process_killed' ORDER BY id",
    ({ books }, [, epoch]) => books.killedOf(Number(epoch)).map((record) => ({ record })),
  ],
];

const known = new Map<string, Answer>();

/** Answers a statement; `statement` is its name if it has one, otherwise its text. */
export function answerStatement(context: StatementContext, statement: string, values: Values): Rows {
  let answer = known.get(statement);
  if (answer === undefined) {
    const found = ANSWERS.filter(
      ([mark]) =>
        mark === statement ||
        (mark.includes(' ') && statement.includes(mark)) ||
        (mark === 'pg_notify' && statement.includes(mark)),
    );
    if (found.length !== 1) throw new Error(`the model knows ${found.length} answers to the statement: ${statement}`);
    answer = (found[0] as (typeof ANSWERS)[number])[1];
    known.set(statement, answer);
  }
  return answer(context, values);
}

/** Whether the statement neither waits for a lock nor takes one. */
export function isLockFree(statement: string): boolean {
  return (
    statement === 'SELECT 1' || statement.includes('pg_notify') || statement.startsWith('SELECT segment, posted_offset')
  );
}

function recoveredRow(recovered: RecoveredCall): object {
  if (!recovered.isDone) return { is_done: false, granted: '0', grant_id: null };
  return { is_done: true, granted: String(recovered.granted), grant_id: recovered.grantId };
}

function done(_nothing: void): Rows {
  return [];
}

function post({ books }: StatementContext, [epoch, json, segment, from, to]: Values): Rows {
  const moved = books.moveCursor(Number(epoch), Number(segment), Number(from), Number(to));
  return [{ moved, ...books.post(Number(epoch), moved ? (JSON.parse(String(json)) as ExecutionRecord[]) : []) }];
}

/** The number of the call; null: the statement is of an earlier version, which has no numbers. */
function callOf(value: unknown): number | null {
  return typeof value === 'number' ? value : null;
}

function takeLease(books: ModelBooks, [epoch, wallet, amount, minimum, call]: Values): Rows {
  const { granted, available, leasedElsewhere, frozen } = books.takeLease(
    Number(epoch),
    String(wallet),
    BigInt(String(amount)),
    BigInt(String(minimum)),
    callOf(call),
  );
  return [
    { granted: String(granted), available: String(available), leased_elsewhere: String(leasedElsewhere), frozen },
  ];
}

function takeLimitLease(
  { books, nowMs }: StatementContext,
  [epoch, limitId, amount, minimum, presentGrant, presentFree, atMs, call]: Values,
): Rows {
  const taken = books.limits.take(
    {
      epoch: Number(epoch),
      limitId: String(limitId),
      amount: BigInt(String(amount)),
      minimum: BigInt(String(minimum)),
      presentGrant: presentGrant as string | null,
      presentFree: BigInt(String(presentFree)),
      call: callOf(call),
    },
    typeof atMs === 'number' ? atMs : nowMs,
  );
  return [
    {
      granted: String(taken.granted),
      grant_id: taken.grantId,
      valid_for_ms: taken.validForMs,
      present_moved: taken.presentMoved,
      available: String(taken.available),
      leased_elsewhere: String(taken.leasedElsewhere),
      ceiling: taken.ceiling === null ? null : String(taken.ceiling),
      retry_after_ms: taken.retryAfterMs,
      gone: taken.gone,
    },
  ];
}

function giveBackOf([epoch, limitId, grantId, amount, call]: Values): LimitReturn {
  return {
    epoch: Number(epoch),
    limitId: String(limitId),
    grantId: String(grantId),
    amount: BigInt(String(amount)),
    call: callOf(call),
  };
}

function readCursors(books: ModelBooks, epoch: number): Rows {
  const cursors = books.cursors.values().filter((cursor) => cursor.epoch === epoch);
  return cursors.map(({ segment, posted, facts }) => ({
    segment,
    posted_offset: String(posted),
    facts_offset: String(facts),
  }));
}

function advanceFacts(
  books: ModelBooks,
  epochs: readonly number[],
  segments: readonly number[],
  offsets: readonly number[],
): Rows {
  for (const [index, epoch] of epochs.entries())
    books.advanceFacts(epoch, segments[index] as number, offsets[index] as number);
  return [];
}
