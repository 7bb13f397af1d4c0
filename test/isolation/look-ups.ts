// Look-ups that wait: a table is locked, or the classifier does not answer, while clients of a cold key, a cold wallet,
// an unknown response or an unrouted turn wait. Half of them leave before the look-up comes back: for those no provider
// may be called.

import { readFileSync } from 'node:fs';
import { createPostgres, type Postgres } from '../../src/storage/postgres/pool.ts';
import { SeededRandom } from '../simulation/seeded-random.ts';
import { silentLog } from '../support/silent-log.ts';
import { pause, waitFor } from '../support/waiting.ts';
import { ClientConnection } from './client.ts';
import { markOf } from './marks.ts';
import { buildExchange, type Exchange, type ExchangeKind } from './plan.ts';
import type { Watch } from './watch.ts';
import { COLD_TENANTS, coldKey, FIRST_COLD_TENANT, TENANTS, warmKey } from './world.ts';

const LOOK_UPS = ['credential', 'lease', 'continuation', 'route'] as const;
type LookUp = (typeof LOOK_UPS)[number];

const TABLES = { credential: 'api_keys', lease: 'leases', continuation: 'saved_responses' } as const;
const KINDS: Readonly<Record<LookUp, ExchangeKind>> = {
  credential: 'chat',
  lease: 'messages',
  continuation: 'continued',
  route: 'auto',
};
const CLIENTS = 6;
/** Numbers of these exchanges begin here. */
const FIRST_INDEX = 50_000_000_000;
const ARRIVAL_MS = 25;
const HEARD_MS = 200;
/** With the pause below what a gateway waits for a store, after which it lets in whom it remembers. */
const SEEN_MS_MAX = 1_500;

export class LookUps {
  private readonly postgres: Postgres;
  private readonly port: number;
  private readonly open: Map<number, Exchange>;
  private readonly watch: Watch;
  private readonly random: SeededRandom;
  private next = FIRST_INDEX;
  private coldKeys = 0;
  private coldTenants = 0;
  /** What an exchange's classifier call waits for. */
  private readonly held = new Map<number, { readonly released: Promise<void>; hasCome: boolean }>();

  constructor(parts: { postgresUrl: string; port: number; open: Map<number, Exchange>; watch: Watch; seed: number }) {
    this.postgres = createPostgres({ url: parts.postgresUrl, log: silentLog, max: 2 });
    this.port = parts.port;
    this.open = parts.open;
    this.watch = parts.watch;
    this.random = new SeededRandom(parts.seed);
  }

  classifierWaits({ index }: Exchange): Promise<void> | null {
    const held = this.held.get(index);
    if (held === undefined) return null;
    held.hasCome = true;
    return held.released;
  }

  /** One of each, unless the run is over before. */
  async runAll(isOver: () => boolean): Promise<void> {
    for (const lookUp of LOOK_UPS) {
      if (isOver()) return;
      if (lookUp !== 'lease' || this.coldTenants < COLD_TENANTS) await this.run(lookUp);
    }
  }

  private async run(lookUp: LookUp): Promise<void> {
    const { watch } = this;
    const released = Promise.withResolvers<void>();
    const exchanges = Array.from({ length: CLIENTS }, () => this.plan(lookUp));
    if (lookUp === 'lease') this.coldTenants += 1;
    const lock =
      lookUp === 'route'
        ? this.holdClassifier(exchanges, released.promise)
        : await this.lock(TABLES[lookUp], released.promise);
    const waiting = exchanges.map((exchange) => {
      const connection = new ClientConnection(this.port, watch, () => undefined);
      const one = { exchange, connection, hasEnded: false, ended: connection.run([exchange]) };
      void one.ended.then(() => {
        one.hasEnded = true;
      });
      return one;
    });
    // A gateway that is being replaced closes connections that it has not looked at.
    const isAsked = (): boolean =>
      waiting.every(({ exchange, hasEnded }) => hasEnded || this.held.get(exchange.index)?.hasCome === true);
    try {
      if (lookUp === 'route') await waitFor('the classifier to be asked', isAsked, Boolean, SEEN_MS_MAX);
      await pause(ARRIVAL_MS);
      const leavers = waiting.filter((_, place) => place % 2 === 0);
      const ports = leavers.map(({ connection }) => connection.localPort);
      for (const { connection } of leavers) {
        watch.count(watch.faults, `client leaves while its ${lookUp} is looked up`);
        connection.leave('left');
      }
      await waitFor(
        'word of it to come to the gateway',
        () => connectionsWithoutEnd(this.port, ports),
        (count) => count === 0,
        SEEN_MS_MAX,
      );
      // The system knows of it at once; a gateway that reads the connection hears of it when it runs next.
      await pause(HEARD_MS);
      // Only now: had the gateway given the look-up up before, it could not know that they left.
      for (const { exchange } of leavers) exchange.forbidden = `its client left while its ${lookUp} was looked up`;
    } catch {
      this.giveUp(waiting);
    } finally {
      released.resolve();
      await lock.isFree.catch(() => this.giveUp(waiting));
      this.held.clear();
    }
    for (const { ended, connection } of waiting) {
      watch.exchanges += 1;
      watch.count(watch.answers, await ended);
      connection.close();
    }
  }

  /** The machine was too slow: the look-up may have come back before they had left. */
  private giveUp(waiting: readonly { readonly exchange: Exchange }[]): void {
    this.watch.count(this.watch.faults, 'look-ups given up');
    for (const { exchange } of waiting) exchange.forbidden = null;
  }

  private plan(lookUp: LookUp): Exchange {
    const { random } = this;
    const index = this.next++;
    const tenant = lookUp === 'lease' ? FIRST_COLD_TENANT + this.coldTenants : random.whole(1, TENANTS);
    const exchange = buildExchange(
      {
        index,
        tenant,
        kind: KINDS[lookUp],
        key: lookUp === 'credential' ? coldKey(tenant, this.coldKeys++) : warmKey(tenant, false),
        bytes: random.pick([300, 5_000, 65_536]),
        providerSteps: [],
        client: 'stays',
        isStream: random.chance(0.5),
        savedId: `resp_${markOf(tenant, 'p', index)}`,
        reply: { bytes: 400, framing: 'length', pieces: 1 },
      },
      random,
    );
    this.open.set(index, exchange);
    return exchange;
  }

  private holdClassifier(exchanges: readonly Exchange[], released: Promise<void>): { readonly isFree: Promise<void> } {
    for (const { index } of exchanges) this.held.set(index, { released, hasCome: false });
    return { isFree: released };
  }

  /** Resolves once the table is locked. */
  private async lock(table: string, released: Promise<void>): Promise<{ readonly isFree: Promise<void> }> {
    const locked = Promise.withResolvers<void>();
    const isFree = this.postgres.transaction(async (client) => {
      // The product's own transactions may not idle for long; the server would end this one, and with it the lock,
      // while clients still leave.
      await client.query('SET LOCAL idle_in_transaction_session_timeout = 0');
      await client.query(`LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
      locked.resolve();
      await released;
    });
    await Promise.race([locked.promise, isFree]);
    return { isFree };
  }

  close(): Promise<void> {
    return this.postgres.close();
  }
}

/** The states of /proc/net/tcp in which all that the other side sent, and its end behind it, has come. */
const ENDED_STATES = new Set(['06' /* TIME_WAIT */, '08' /* CLOSE_WAIT */, '09' /* LAST_ACK */]);

/**
 * Of how many of these clients the end has not come to the gateway's system; none where the system does not tell. A
 * connection that the gateway has paused, because more of its body was to come than it may keep of somebody unknown,
 * stays in CLOSE_WAIT until it is read again.
 */
function connectionsWithoutEnd(port: number, clientPorts: readonly number[]): number {
  const hex = (number: number): string => `:${number.toString(16).toUpperCase().padStart(4, '0')}`;
  const remotes = new Set(clientPorts.map(hex));
  let table: string;
  try {
    table = readFileSync('/proc/net/tcp', 'latin1');
  } catch {
    return 0;
  }
  return table.split('\n').filter((line) => {
    const [, local = '', remote = '', state = ''] = line.trim().split(/\s+/);
    return local.endsWith(hex(port)) && remotes.has(remote.slice(remote.indexOf(':'))) && !ENDED_STATES.has(state);
  }).length;
}
