// The modelled database as a server: slow, hanging and broken connections, transactions that hold its lock, restarts;
// and a process's client, with the interface of storage/postgres/pool.ts. Transactions are atomic and run one after
// another.

import { type Postgres, type PostgresClient, type Statement } from '../../src/storage/postgres/pool.ts';
import { ModelBooks } from './model-books.ts';
import { answerStatement, isLockFree } from './model-statements.ts';
import { DatabaseFault, FENCED } from './model-tables.ts';
import type { SimulatedNetwork } from './simulated-network.ts';
import type { SimulatedProcess, World } from './virtual-world.ts';

type Result = { rows: readonly object[] } | { fault: Error };
type Told = (result: Result) => void;

const LOCK_TIMEOUT_MS = 10_000;
/** The lock timeout of the functions that grant and take back leases. */
const LENDING_LOCK_TIMEOUT_MS = 200;
const IDLE_IN_TRANSACTION_MS = 2_000;

const LENDING = /^(?:take|return|give_back|recover)_(?:limit_)?lease$/;

/** One connection's transaction. */
class Session {
  state: 'idle' | 'open' | 'failed' | 'broken' = 'idle';
}

interface Waiting {
  readonly sender: SimulatedProcess;
  readonly session: Session | null;
  readonly statement: string;
  readonly values: readonly unknown[];
  readonly told: Told;
  over: boolean;
}

export class SimulatedPostgres {
  readonly books: ModelBooks;
  /** Grows with each change of any table. */
  version = 0;
  up = true;
  /** Receives notifications when they are committed. */
  onNotify: (payload: string) => void = () => undefined;
  onRestart: () => void = () => undefined;
  private readonly world: World;
  private holder: Session | null = null;
  private isStalled = false;
  private waiting: Waiting[] = [];
  private sessions = new Set<Session>();
  private readonly orders: { readonly what: string; readonly change: (books: ModelBooks) => void }[] = [];

  constructor(world: World) {
    this.world = world;
    let ids = 0;
    this.books = new ModelBooks(() => {
      ids += 1;
      return `00000000-0000-4000-8000-${String(ids).padStart(12, '0')}`;
    });
  }

  /** A change by the operator, outside every session; these run one after another. */
  administer(what: string, change: (books: ModelBooks) => void): void {
    this.orders.push({ what, change });
    if (this.orders.length === 1) this.followOrders();
  }

  private followOrders(): void {
    const [order] = this.orders;
    if (order === undefined) return;
    if (this.holder !== null || !this.up) return;
    this.orders.shift();
    this.world.note(`operator: ${order.what}`);
    order.change(this.books);
    this.books.commit();
    this.version += 1;
    this.followOrders();
  }

  crash(downMs: number): void {
    if (!this.up) return;
    this.world.note('postgres stops');
    this.up = false;
    for (const waiting of this.waiting.splice(0)) this.turnAway(waiting);
    for (const session of this.sessions) this.breakSession(session);
    this.world.in(downMs, 'postgres starts', () => {
      this.up = true;
      this.followOrders();
      this.onRestart();
    });
  }

  /**
   * Holds a lock that every other transaction needs. `stalls`: the server itself hangs, so that no lock timeout runs.
   */
  lock(forMs: number, stalls: boolean): void {
    if (this.holder !== null || !this.up) return;
    const session = this.connect();
    session.state = 'open';
    this.holder = session;
    this.isStalled = stalls;
    this.world.in(forMs, 'lock is let go', () => {
      this.isStalled = false;
      this.breakSession(session);
    });
  }

  connect(): Session {
    const session = new Session();
    this.sessions.add(session);
    return session;
  }

  /** Breaks a connection: what its client did not commit is gone. */
  breakSession(session: Session): void {
    if (session.state === 'broken') return;
    session.state = 'broken';
    this.sessions.delete(session);
    if (this.holder === session) this.end(false);
  }

  receive(
    sender: SimulatedProcess,
    session: Session | null,
    statement: string,
    values: readonly unknown[],
    told: Told,
  ): void {
    if (!this.up) {
      told({ fault: Object.assign(new Error('connection refused'), { code: 'ECONNREFUSED' }) });
      return;
    }
    if (session?.state === 'broken') {
      told({ fault: Object.assign(new Error('connection reset'), { code: 'ECONNRESET' }) });
      return;
    }
    if (session !== null && (statement === 'BEGIN' || statement === 'COMMIT' || statement === 'ROLLBACK')) {
      this.control(session, statement, told);
      return;
    }
    if (session?.state === 'failed') {
      told({ fault: new DatabaseFault('25P02', 'current transaction is aborted') });
      return;
    }
    if (this.holder !== null && this.holder !== session && !isLockFree(statement))
      this.wait({ sender, session, statement, values, told, over: false });
    else this.execute(sender, session, statement, values, told);
  }

  private control(session: Session, statement: string, told: Told): void {
    if (statement === 'BEGIN') {
      session.state = 'open';
      this.world.in(IDLE_IN_TRANSACTION_MS, 'idle in transaction', () => this.breakSession(session));
    } else {
      if (this.holder === session) this.end(statement === 'COMMIT' && session.state === 'open');
      session.state = 'idle';
      this.sessions.delete(session);
    }
    told({ rows: [] });
  }

  private wait(waiting: Waiting): void {
    this.waiting.push(waiting);
    this.world.in(
      LENDING.test(waiting.statement) && !this.isStalled ? LENDING_LOCK_TIMEOUT_MS : LOCK_TIMEOUT_MS,
      'lock timeout',
      () => {
        if (waiting.over) return;
        waiting.over = true;
        this.world.note(`postgres: ${nameOf(waiting.statement)}: canceling statement due to lock timeout`);
        this.waiting = this.waiting.filter((one) => one !== waiting);
        waiting.told({ fault: new DatabaseFault('55P03', 'canceling statement due to lock timeout') });
      },
    );
  }

  private turnAway(waiting: Waiting): void {
    if (!waiting.over)
      waiting.told({ fault: new DatabaseFault('57P01', 'terminating connection due to administrator command') });
    waiting.over = true;
  }

  private execute(
    sender: SimulatedProcess,
    session: Session | null,
    statement: string,
    values: readonly unknown[],
    told: Told,
  ): void {
    const { books, world } = this;
    const notes: string[] = [];
    const before = books.undo.length;
    try {
      const nowMs = world.wallMs();
      const rows = answerStatement({ books, nowMs, notify: (_, payload) => notes.push(payload) }, statement, values);
      if (world.log !== null) world.note(`postgres: ${nameOf(statement)} ${show(values)} -> ${show(rows)}`);
      for (const payload of notes) this.onNotify(payload);
      if (session === null) books.commit();
      else if (books.undo.length > before || !isLockFree(statement)) this.holder = session;
      this.version += 1;
      told({ rows });
    } catch (fault) {
      if (world.log !== null)
        world.note(`postgres: ${nameOf(statement)} ${show(values)} -> ${(fault as Error).message}`);
      if (!(fault instanceof DatabaseFault)) throw fault;
      // No client may try what the constraints of the tables forbid, unless its process died while the statement was on
      // its way.
      if (fault.code !== FENCED && sender.alive)
        world.violate(`${sender.name}: ${nameOf(statement)} ${show(values)}: ${fault.message}`);
      if (session === null) books.rollBack();
      else {
        this.holder = session;
        session.state = 'failed';
      }
      told({ fault });
    }
  }

  private end(commits: boolean): void {
    if (commits) this.books.commit();
    else this.books.rollBack();
    this.version += 1;
    this.holder = null;
    this.followOrders();
    while (this.holder === null) {
      const next = this.waiting.shift();
      if (next === undefined) break;
      if (next.over) continue;
      if (next.session?.state === 'broken') {
        this.turnAway(next);
        continue;
      }
      next.over = true;
      this.execute(next.sender, next.session, next.statement, next.values, next.told);
    }
  }

  /** A transaction is open, so visible changes may still be undone. */
  get busy(): boolean {
    return this.holder !== null;
  }
}

/** A process's pool of connections. */
export class PostgresOfProcess implements Postgres {
  private readonly process: SimulatedProcess;
  private readonly server: SimulatedPostgres;
  private readonly network: SimulatedNetwork;
  private readonly sessions = new Set<Session>();

  constructor(process: SimulatedProcess, server: SimulatedPostgres, network: SimulatedNetwork) {
    this.process = process;
    this.server = server;
    this.network = network;
  }

  query<Row extends object>(
    statement: Statement,
    values: readonly unknown[] = [],
  ): Promise<{ rows: Row[]; rowCount: number }> {
    return this.send<Row>(null, statement, values);
  }

  async transaction<T>(work: (client: PostgresClient) => Promise<T>): Promise<T> {
    const session = this.server.connect();
    this.sessions.add(session);
    try {
      await this.send(session, 'BEGIN', []);
      const result = await work({ query: (statement, values = []) => this.send(session, statement, values) });
      await this.send(session, 'COMMIT', []);
      return result;
    } catch (error) {
      await this.send(session, 'ROLLBACK', []).catch(() => this.server.breakSession(session));
      throw error;
    } finally {
      this.sessions.delete(session);
    }
  }

  async close(): Promise<void> {
    // The connections end with the process.
  }

  /** The process is dead; the server notices sooner or later. */
  abandon(): void {
    const { world } = this.process;
    for (const session of this.sessions)
      world.in(world.random.between(0, 50), 'connection of a dead process', () => this.server.breakSession(session));
  }

  private send<Row extends object>(
    session: Session | null,
    statement: Statement,
    values: readonly unknown[],
  ): Promise<{ rows: Row[]; rowCount: number }> {
    const { process, server, network } = this;
    const text = typeof statement === 'string' ? statement : statement.name;
    return new Promise((resolve, reject) => {
      process.step(`sending ${nameOf(text)}`);
      network.call<Result>({
        process,
        label: nameOf(text),
        act: (told) => server.receive(process, session, text, values, told),
        answered: (result) => {
          if ('fault' in result) reject(result.fault);
          else resolve({ rows: result.rows as Row[], rowCount: result.rows.length });
        },
        broken: (fault) => {
          if (session !== null) process.world.in(0, 'connection broke', () => server.breakSession(session));
          reject(fault);
        },
      });
    });
  }
}

const names = new Map<string, string>();

function nameOf(statement: string): string {
  let name = names.get(statement);
  if (name === undefined) {
    name = statement.trim().slice(0, 48).replaceAll(/\s+/g, ' ');
    names.set(statement, name);
  }
  return name;
}

function show(value: unknown): string {
  const text = JSON.stringify(value, (_, one: unknown) => (typeof one === 'bigint' ? String(one) : one)) ?? '';
  return text.length > 400 ? `${text.slice(0, 400)}…` : text;
}
