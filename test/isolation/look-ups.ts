// Look-ups that wait: a table is locked, or the classifier does not answer, while clients wait that no gateway has seen
// before. Most of them leave before the look-up returns, and no provider may be called for those.
//
// A client counts as known to have left from the moment at which the system on the gateway's side has the end of the
// connection (connection-ends.ts), if the look-up cannot have returned by then: it is held, and the gateway has not yet
// waited as long as it waits for a store. From that moment every call for the client is a violation, whether or not the
// gateway has read the end, and however soon the look-up returns. The end may arrive later than the look-up's return,
// because more of the request lies before it than a gateway reads of an unknown caller. Nobody could know of such a
// departure: these clients are counted separately, and so are those of them for which a provider is called.

import { createPostgres, type Postgres } from '../../src/storage/postgres/pool.ts';
import { SeededRandom } from '../simulation/seeded-random.ts';
import { silentLog } from '../support/silent-log.ts';
import { pause, waitFor } from '../support/waiting.ts';
import { ClientConnection } from './client.ts';
import type { ColdSupply } from './cold-supply.ts';
import { readConnectionEnds } from './connection-ends.ts';
import { Leaver } from './leaver.ts';
import { markOf } from './marks.ts';
import { buildExchange, type Exchange, type ExchangeKind } from './plan.ts';
import type { Watch } from './watch.ts';
import { TENANTS, warmKey } from './world.ts';

/** What a look-up asks for. `turn`: whether the turn's route is decided; `route`: the classifier's answer. */
export const LOOK_UPS = ['credential', 'lease', 'continuation', 'turn', 'route'] as const;
export type LookUp = (typeof LOOK_UPS)[number];

const TABLES = {
  credential: 'api_keys',
  lease: 'leases',
  continuation: 'saved_responses',
  turn: 'routing_turns',
} as const;
const KINDS: Readonly<Record<LookUp, readonly ExchangeKind[]>> = {
  credential: ['chat', 'responses', 'messages', 'count', 'image', 'edit', 'systemone', 'auto'],
  lease: ['messages', 'chat', 'auto'],
  continuation: ['continued'],
  turn: ['auto'],
  route: ['auto'],
};
/** Sizes of bodies, in bytes. */
const SIZES = [300, 300, 5_000, 20_000, 65_536] as const;
/**
 * More than the system buffers for a connection that is not read. Few clients send this much, since their rounds wait
 * for them.
 */
const LARGE_BYTES = 200_000;
const LARGE_SHARE = 0.02;
const STAYS_EVERY = 3;
/** How long clients wait before they leave. After the shortest times some gateways have not read the request. */
const ARRIVAL_MS = [5, 25, 25, 60] as const;
/** How much longer the look-up is held once all ends have arrived. With 0 most ends are not read by then. */
const HELD_ON_MS = [0, 0, 10, 200] as const;
const ENDS_MS_MAX = 400;
const ENDS_POLL_MS = 2;
const ASKED_MS_MAX = 1_500;
/** The shortest time after which a gateway continues without an answer of a store or of the classifier (world.ts). */
const DEADLINE_MS = { credential: 2_000, lease: 2_000, continuation: 2_000, turn: 3_000, route: 5_000 } as const;
/** Where the system does not report ends: after this time they have arrived. */
const HEARD_MS = 200;
/** How long a call for a client who has left is looked for. */
const KEPT_MS = 20_000;

export interface LookUpParts {
  readonly postgresUrl: string;
  readonly port: number;
  readonly open: Map<number, Exchange>;
  readonly watch: Watch;
  readonly seed: number;
  readonly supply: ColdSupply;
}

/** Keeps the look-ups of one round from returning. */
interface Hold {
  isHeld: boolean;
  release(): Promise<void>;
}

export class LookUps {
  private readonly parts: LookUpParts;
  private readonly postgres: Postgres;
  private readonly random: SeededRandom;
  /** By kind: clients that left in time and whose departure was known. */
  private readonly known = new Map<LookUp, number>();
  /** What an exchange's classifier call waits for. */
  private readonly held = new Map<number, { readonly released: Promise<void>; hasCome: boolean }>();
  private readonly over: { readonly exchange: Exchange; readonly atMs: number }[] = [];

  constructor(parts: LookUpParts) {
    this.parts = parts;
    this.postgres = createPostgres({ url: parts.postgresUrl, log: silentLog, max: 2 });
    this.random = new SeededRandom(parts.seed);
  }

  classifierWaits({ index }: Exchange): Promise<void> | null {
    const held = this.held.get(index);
    if (held === undefined) return null;
    held.hasCome = true;
    return held.released;
  }

  knownLeavers(lookUp: LookUp): number {
    return this.known.get(lookUp) ?? 0;
  }

  /** False: the supply for this kind of look-up is used up. */
  canRun(lookUp: LookUp): boolean {
    return lookUp !== 'lease' || this.parts.supply.hasWallet;
  }

  /** Runs one round of clients. */
  async run(lookUp: LookUp, clients: number): Promise<void> {
    const { watch, port } = this.parts;
    this.forget();
    const exchanges = await this.planAll(lookUp, clients);
    const hold = await this.hold(lookUp, exchanges);
    if (hold === null) return watch.count(watch.lookUps, `${lookUp}: no lock`);
    const leavers: Leaver[] = [];
    const stayers: { readonly exchange: Exchange; readonly ended: Promise<unknown> }[] = [];
    for (const [place, exchange] of exchanges.entries()) {
      if (place % STAYS_EVERY === STAYS_EVERY - 1) {
        const connection = new ClientConnection(port, watch, () => undefined);
        stayers.push({ exchange, ended: connection.run([exchange]).finally(() => connection.close()) });
      } else {
        leavers.push(new Leaver(port, exchange, lookUp === 'route', this.random, watch));
      }
    }
    try {
      await this.leave(lookUp, leavers, hold);
      await pause(this.random.pick(HELD_ON_MS));
    } finally {
      await hold.release();
    }
    for (const { exchange, ended } of stayers) {
      await ended;
      watch.count(watch.lookUps, `${lookUp}: stayed${exchange.replies.length === 0 ? ', not served' : ''}`);
    }
    watch.exchanges += exchanges.length;
    for (const exchange of exchanges) this.over.push({ exchange, atMs: performance.now() });
    this.held.clear();
  }

  private async leave(lookUp: LookUp, leavers: readonly Leaver[], hold: Hold): Promise<void> {
    await Promise.all(leavers.map(({ connected }) => connected));
    if (lookUp === 'route') await this.waitForClassifier(leavers);
    await pause(this.random.pick(ARRIVAL_MS));
    const ports = new Map(leavers.map((leaver) => [leaver, leaver.port]));
    for (const leaver of leavers) leaver.leave();
    const untilMs = performance.now() + ENDS_MS_MAX;
    let unseen = leavers;
    while (unseen.length > 0 && performance.now() < untilMs) {
      const hasEnded = readConnectionEnds(this.parts.port);
      if (hasEnded === null) await pause(HEARD_MS);
      const isSeen = (leaver: Leaver): boolean => {
        const end = hasEnded?.(ports.get(leaver) ?? 0);
        // Only a credential is looked up before the body is read. On a busy machine, a gateway may read a request only
        // after the hold is over: then it looks it up then, or not at all.
        return end === undefined || (end.hasCome && (end.isRead || lookUp === 'credential'));
      };
      for (const leaver of unseen) if (isSeen(leaver)) this.noteEnd(lookUp, leaver, hold);
      unseen = unseen.filter((leaver) => !isSeen(leaver));
      if (unseen.length > 0) await pause(ENDS_POLL_MS);
    }
    for (const leaver of unseen) this.noteUnknowable(lookUp, leaver, 'its end had not come');
  }

  /** Notes that the client's end has reached the gateway's system. */
  private noteEnd(lookUp: LookUp, leaver: Leaver, hold: Hold): void {
    const { watch } = this.parts;
    const { exchange, sentAtMs } = leaver;
    if (sentAtMs === 0) return watch.count(watch.lookUps, `${lookUp}: not connected`);
    if (!hold.isHeld || performance.now() - sentAtMs >= DEADLINE_MS[lookUp])
      return this.noteUnknowable(lookUp, leaver, 'the look-up may have come back');
    if (lookUp === 'route' && this.held.get(exchange.index)?.hasCome !== true)
      return this.noteUnknowable(lookUp, leaver, 'the classifier was not asked');
    const why = `its client left (${leaver.manner}) while its ${lookUp} was looked up`;
    if (lookUp !== 'route') exchange.unclassifiable = why;
    // While the store is away, the turn is decided without it.
    if (lookUp === 'turn') exchange.countedAs = 'turn: left, and served without a look-up';
    else exchange.forbidden = why;
    this.known.set(lookUp, this.knownLeavers(lookUp) + 1);
    watch.count(watch.lookUps, `${lookUp}: left`);
  }

  private noteUnknowable(lookUp: LookUp, { exchange }: Leaver, why: string): void {
    const { watch } = this.parts;
    watch.count(watch.lookUps, `${lookUp}: left, but ${why}`);
    exchange.countedAs = `${lookUp}: left, but ${why}, and a provider was called`;
  }

  /** Waits for the classifier calls. A gateway that is being replaced closes connections that it has not looked at. */
  private async waitForClassifier(leavers: readonly Leaver[]): Promise<void> {
    const isAsked = (): boolean => leavers.every(({ exchange }) => this.held.get(exchange.index)?.hasCome === true);
    await waitFor('the classifier to be asked', isAsked, Boolean, ASKED_MS_MAX).catch(() => undefined);
  }

  private forget(): void {
    const beforeMs = performance.now() - KEPT_MS;
    while ((this.over[0]?.atMs ?? Number.POSITIVE_INFINITY) < beforeMs)
      this.parts.open.delete(this.over.shift()?.exchange.index ?? 0);
  }

  private async planAll(lookUp: LookUp, clients: number): Promise<Exchange[]> {
    const { random, postgres } = this;
    const { supply, open } = this.parts;
    const wallet = lookUp === 'lease' ? supply.takeWallet() : null;
    const tenants = Array.from({ length: clients }, () => wallet ?? random.whole(1, TENANTS));
    const keys =
      lookUp === 'credential'
        ? await supply.makeKeys(postgres, tenants)
        : tenants.map((tenant) => warmKey(tenant, false));
    const exchanges = tenants.map((tenant, place) => this.plan(lookUp, tenant, keys[place] ?? ''));
    for (const exchange of exchanges) open.set(exchange.index, exchange);
    if (lookUp === 'continuation') {
      const saved = exchanges.map(({ tenant, index, models }) => ({
        tenant,
        responseId: savedIdOf(tenant, index),
        model: models[0] ?? '',
      }));
      await supply.saveResponses(postgres, saved);
    }
    return exchanges;
  }

  private plan(lookUp: LookUp, tenant: number, key: string): Exchange {
    const { random } = this;
    const index = this.parts.supply.nextIndex();
    return buildExchange(
      {
        index,
        tenant,
        kind: random.pick(KINDS[lookUp]),
        key,
        bytes: random.chance(LARGE_SHARE) ? LARGE_BYTES : random.pick(SIZES),
        providerSteps: [],
        client: 'stays',
        isStream: random.chance(0.5),
        savedId: savedIdOf(tenant, index),
        reply: { bytes: 400, framing: 'length', pieces: 1 },
      },
      random,
    );
  }

  /** Holds the look-ups; null: the table could not be locked in time. */
  private async hold(lookUp: LookUp, exchanges: readonly Exchange[]): Promise<Hold | null> {
    const released = Promise.withResolvers<void>();
    if (lookUp === 'route') {
      for (const { index } of exchanges) this.held.set(index, { released: released.promise, hasCome: false });
      return { isHeld: true, release: async () => released.resolve() };
    }
    const locked = Promise.withResolvers<void>();
    const isFree = this.lock(TABLES[lookUp], locked.resolve, released.promise).catch(() => {
      hold.isHeld = false;
      // The look-ups may have returned at any time, so these exchanges may be served.
      for (const exchange of exchanges) Object.assign(exchange, { forbidden: null, unclassifiable: null });
    });
    const hold: Hold = {
      isHeld: true,
      release: async () => {
        released.resolve();
        await isFree;
      },
    };
    await Promise.race([locked.promise, isFree]);
    return hold.isHeld ? hold : null;
  }

  private async lock(table: string, onLocked: () => void, released: Promise<void>): Promise<void> {
    await this.postgres.transaction(async (client) => {
      // The server's limit on idle transactions would end this one, and with it the lock, while clients still leave.
      await client.query('SET LOCAL idle_in_transaction_session_timeout = 0');
      await client.query(`LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
      onLocked();
      await released;
    });
  }

  close(): Promise<void> {
    return this.postgres.close();
  }
}

function savedIdOf(tenant: number, index: number): string {
  return `resp_${markOf(tenant, 'p', index)}`;
}
