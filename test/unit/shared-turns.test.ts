// One route a turn: in this process, between processes, with a claimant that is gone, with a store that is away.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { RouteDecision } from '../../src/domain/routing/decide-route.ts';
import { SharedTurns, type TurnDecider, type TurnRoute } from '../../src/generation/routing/shared-turns.ts';
import type { TurnKey } from '../../src/generation/routing/turn-memory.ts';
import type { PreviousTurn, StoredTurn, TurnStore } from '../../src/generation/routing/turn-store.ts';
import { systemClock } from '../../src/platform/clock.ts';

function key(turn: string, changes: Partial<TurnKey> = {}): TurnKey {
  const plain = { alsoNamed: null, previousTurns: [], offersTools: false, instructions: 'i', organizationId: 'o' };
  return { conversation: 'k', turn, ...plain, ...changes };
}

function decision(model: string): RouteDecision {
  return { model, tier: 'light', reason: 'classified' } as RouteDecision;
}

/** What Postgres does, for several processes in one. */
class Turns implements TurnStore {
  readonly rows = new Map<string, { turn: TurnKey; decision: RouteDecision | null; claimedAtMs: number }>();
  isAway = false;
  calls = 0;

  private begin(): void {
    this.calls += 1;
    if (this.isAway) throw new Error('away');
  }

  async claim(turn: TurnKey): Promise<StoredTurn & { claimed: boolean }> {
    this.begin();
    const claimed = !this.rows.has(turn.turn);
    if (claimed) this.rows.set(turn.turn, { turn, decision: null, claimedAtMs: performance.now() });
    return { ...this.read(turn), claimed };
  }

  async find(turn: TurnKey): Promise<StoredTurn> {
    this.begin();
    return this.read(turn);
  }

  async decide(turn: TurnKey, wanted: RouteDecision): Promise<RouteDecision | null> {
    this.begin();
    const row = this.rows.get(turn.turn);
    if (row?.decision != null) return row.decision;
    if (row !== undefined) row.decision = wanted;
    return null;
  }

  async release(turn: TurnKey): Promise<void> {
    this.begin();
    if (this.rows.get(turn.turn)?.decision === null) this.rows.delete(turn.turn);
  }

  private read(turn: TurnKey): StoredTurn {
    const row = this.rows.get(turn.turn);
    const earlier = [...this.rows.values()]
      .filter((other) => other.decision !== null && other.turn.turn !== turn.turn)
      .at(-1);
    const previous =
      earlier?.decision == null
        ? null
        : { turn: earlier.turn.turn, decision: earlier.decision, inputTokens: null, requestBytes: null };
    return {
      decision: row?.decision ?? null,
      claimedAgoMs: row === undefined ? null : performance.now() - row.claimedAtMs,
      previous,
    };
  }
}

class Decider implements TurnDecider {
  isGone = false;
  asked = 0;
  unasked = 0;
  previous: PreviousTurn | null = null;
  readonly classifierTimeoutMs: number;
  private readonly model: string;
  private readonly takesMs: number;

  constructor(model: string, options: { takesMs?: number; timeoutMs?: number } = {}) {
    this.model = model;
    this.takesMs = options.takesMs ?? 5;
    this.classifierTimeoutMs = options.timeoutMs ?? 60_000;
  }

  hasLeft = (): boolean => this.isGone;

  decide = async (previous: PreviousTurn | null): Promise<RouteDecision> => {
    this.asked += 1;
    this.previous = previous;
    await new Promise((resolve) => setTimeout(resolve, this.takesMs));
    return decision(this.model);
  };

  decideUnasked = (previous: PreviousTurn | null): RouteDecision => {
    this.unasked += 1;
    this.previous = previous;
    return decision(`${this.model} unasked`);
  };
}

/** One process; whoever asks here stays, unless the test asks by `shared`. */
function process(store: TurnStore): {
  turns: { routeOf: (...asked: Parameters<SharedTurns['routeOf']>) => Promise<TurnRoute>; find: SharedTurns['find'] };
  shared: SharedTurns;
  faults: unknown[];
} {
  const faults: unknown[] = [];
  const shared = new SharedTurns({ store, clock: systemClock, onStoreFault: (fault) => faults.push(fault) });
  const routeOf = async (...asked: Parameters<SharedTurns['routeOf']>): Promise<TurnRoute> => {
    const route = await shared.routeOf(...asked);
    assert.ok(route !== null, 'whoever stays has a route');
    return route;
  };
  return { turns: { routeOf, find: (turn) => shared.find(turn) }, shared, faults };
}

describe('a turn', () => {
  test('is decided once, however many requests of it come at once, on however many processes', async () => {
    const store = new Turns();
    const processes = Array.from({ length: 4 }, () => process(store));
    const deciders = Array.from({ length: 12 }, (_, index) => new Decider(`model-${index}`));
    const routes = await Promise.all(
      deciders.map((decider, index) => processes[index % 4]?.turns.routeOf(key('t'), decider) as Promise<TurnRoute>),
    );
    assert.equal(new Set(routes.map((route) => route.decision.model)).size, 1);
    assert.equal(
      deciders.reduce((sum, { asked, unasked }) => sum + asked + unasked, 0),
      1,
    );
    assert.equal(routes.filter(({ cached }) => !cached).length, 1);
    assert.deepEqual(
      processes.flatMap(({ faults }) => faults),
      [],
    );
  });

  test('that is known asks nobody', async () => {
    const store = new Turns();
    const { turns } = process(store);
    await turns.routeOf(key('t'), new Decider('a'));
    const { calls } = store;
    assert.deepEqual(await turns.routeOf(key('t'), new Decider('b')), { decision: decision('a'), cached: true });
    assert.deepEqual(await turns.find(key('t')), decision('a'));
    assert.equal(store.calls, calls);
  });

  test('is told of the turn before it, also where that was another process’s', async () => {
    const store = new Turns();
    await process(store).turns.routeOf(key('first'), new Decider('a'));
    const decider = new Decider('b');
    await process(store).turns.routeOf(key('second'), decider);
    assert.equal(decider.previous?.decision.model, 'a');
  });

  test('whose claimant is gone is decided without asking again, for everybody alike', async () => {
    const store = new Turns();
    await store.claim(key('t'));
    const deciders = [new Decider('a', { timeoutMs: -1_490 }), new Decider('b', { timeoutMs: -1_490 })];
    const routes = await Promise.all(deciders.map((decider) => process(store).turns.routeOf(key('t'), decider)));
    assert.equal(new Set(routes.map((route) => route.decision.model)).size, 1);
    assert.match(routes[0]?.decision.model ?? '', / unasked$/);
    assert.equal(
      deciders.reduce((sum, { asked }) => sum + asked, 0),
      0,
    );
  });

  test('of which somebody else wrote the decision meanwhile has that one', async () => {
    const store = new Turns();
    const { turns } = process(store);
    const decider = new Decider('late', { takesMs: 50 });
    const deciding = turns.routeOf(key('t'), decider);
    await new Promise((resolve) => setTimeout(resolve, 10));
    await store.decide(key('t'), decision('early'));
    assert.deepEqual(await deciding, { decision: decision('early'), cached: true });
    assert.deepEqual(await turns.find(key('t')), decision('early'));
  });

  test('that is only asked about is not claimed', async () => {
    const store = new Turns();
    assert.equal(await process(store).turns.find(key('t')), null);
    assert.equal(store.rows.size, 0);
  });

  test('whose decider fails fails, and can be decided by the next', async () => {
    const store = new Turns();
    const { turns } = process(store);
    const failing: TurnDecider = {
      hasLeft: () => false,
      decide: () => Promise.reject(new Error('a bug')),
      decideUnasked: () => decision('x'),
      classifierTimeoutMs: 0,
    };
    await assert.rejects(turns.routeOf(key('t'), failing), /a bug/);
    const route = await turns.routeOf(key('t'), new Decider('b', { timeoutMs: -1_500 }));
    assert.equal(route.decision.model, 'b unasked');
  });
});

describe('a turn whose claimer leaves', () => {
  /** The store answers a claim when the test says so. */
  function slowClaims(store: Turns): { open(): void } {
    const { promise, resolve } = Promise.withResolvers<void>();
    const claim = store.claim.bind(store);
    store.claim = async (turn) => {
      const claimed = await claim(turn);
      await promise;
      return claimed;
    };
    return { open: resolve };
  }

  test('is decided by the next who waits for it here, and asked about once', async () => {
    const store = new Turns();
    const claims = slowClaims(store);
    const { shared } = process(store);
    const [gone, next, last] = [new Decider('gone'), new Decider('next'), new Decider('last')];
    const routes = Promise.all([gone, next, last].map((decider) => shared.routeOf(key('t'), decider)));
    gone.isGone = true;
    claims.open();
    const [, second, third] = await routes;
    assert.deepEqual([gone.asked, gone.unasked, next.asked, last.asked], [0, 0, 1, 0]);
    assert.deepEqual(second, { decision: decision('next'), cached: false });
    assert.deepEqual(third, { decision: decision('next'), cached: true });
  });

  test('is nobody’s when nobody waits for it, and the next to come decides it at once', async () => {
    const store = new Turns();
    const claims = slowClaims(store);
    const { shared, turns } = process(store);
    const gone = new Decider('gone');
    const left = shared.routeOf(key('t'), gone);
    gone.isGone = true;
    claims.open();
    assert.equal(await left, null);
    assert.deepEqual([gone.asked, gone.unasked, store.rows.size], [0, 0, 0]);
    const next = new Decider('next');
    assert.deepEqual(await turns.routeOf(key('t'), next), { decision: decision('next'), cached: false });
    assert.equal(next.asked, 1);
  });

  test('is claimed by another process that waits for it', async () => {
    const store = new Turns();
    const claims = slowClaims(store);
    const gone = new Decider('gone');
    const left = process(store).shared.routeOf(key('t'), gone);
    const other = new Decider('other');
    const waiting = process(store).turns.routeOf(key('t'), other);
    gone.isGone = true;
    claims.open();
    assert.equal(await left, null);
    assert.deepEqual(await waiting, { decision: decision('other'), cached: false });
    assert.deepEqual([gone.asked, other.asked, other.unasked], [0, 1, 0]);
  });

  test('while the classifier is asked is decided by the answer all the same', async () => {
    const store = new Turns();
    const { shared, turns } = process(store);
    const gone = new Decider('gone', { takesMs: 30 });
    const left = shared.routeOf(key('t'), gone);
    while (gone.asked === 0) await new Promise((resolve) => setImmediate(resolve));
    gone.isGone = true;
    assert.deepEqual(await turns.routeOf(key('t'), new Decider('next')), { decision: decision('gone'), cached: true });
    assert.notEqual(await left, null);
  });

  test('before it asked for the turn is not even claimed', async () => {
    const store = new Turns();
    const gone = new Decider('gone');
    gone.isGone = true;
    assert.equal(await process(store).shared.routeOf(key('t'), gone), null);
    assert.equal(store.calls, 0);
  });

  test('is not waited for by whoever leaves while another process decides', async () => {
    const store = new Turns();
    await store.claim(key('t'));
    const gone = new Decider('gone', { timeoutMs: -1_400 });
    const left = process(store).shared.routeOf(key('t'), gone);
    await new Promise((resolve) => setTimeout(resolve, 5));
    gone.isGone = true;
    assert.equal(await left, null);
    assert.deepEqual([gone.asked, gone.unasked, store.rows.get('t')?.decision], [0, 0, null]);
  });
});

describe('while the store is away', () => {
  test('a new turn is decided without asking, by what this process remembers; known ones are served', async () => {
    const store = new Turns();
    const { turns, faults } = process(store);
    await turns.routeOf(key('first'), new Decider('a'));
    store.isAway = true;
    assert.equal((await turns.routeOf(key('first'), new Decider('x'))).decision.model, 'a');
    assert.equal(faults.length, 0);
    const decider = new Decider('b');
    const route = await turns.routeOf(key('second'), decider);
    assert.deepEqual([route.decision.model, route.cached, decider.previous?.decision.model], ['b unasked', false, 'a']);
    assert.equal(faults.length, 1);
    // The turn keeps its model, also when the store is back.
    store.isAway = false;
    assert.equal((await turns.routeOf(key('second'), new Decider('c'))).decision.model, 'b unasked');
  });

  test('it is not asked for every request', async () => {
    const store = new Turns();
    store.isAway = true;
    const { turns } = process(store);
    for (const name of ['a', 'b', 'c']) await turns.routeOf(key(name, { conversation: name }), new Decider(name));
    assert.equal(store.calls, 1);
  });

  test('one request at a time waits to find out whether it is back', async ({ mock }) => {
    mock.timers.enable({ apis: ['setTimeout'] });
    const store = new Turns();
    store.isAway = true;
    let nowMs = 1_000;
    const clock = { nowMs: () => nowMs, monotonicMs: () => nowMs };
    const shared = new SharedTurns({ store, clock, onStoreFault: () => undefined });
    const routeOf = (name: string) => shared.routeOf(key(name, { conversation: name }), new Decider(name));
    await routeOf('a');
    nowMs += 1_000;
    let hanging = 0;
    store.claim = () => {
      hanging += 1;
      return new Promise<never>(() => undefined);
    };
    const waiting = routeOf('b');
    for (const name of ['c', 'd', 'e']) assert.equal((await routeOf(name))?.decision.model, `${name} unasked`);
    assert.equal(hanging, 1);
    mock.timers.tick(3_000);
    assert.equal((await waiting)?.decision.model, 'b unasked');
  });

  test('a decision that cannot be written holds here', async () => {
    const store = new Turns();
    const { turns } = process(store);
    const deciding = turns.routeOf(key('t'), new Decider('a', { takesMs: 30 }));
    await new Promise((resolve) => setTimeout(resolve, 5));
    store.isAway = true;
    assert.deepEqual(await deciding, { decision: decision('a'), cached: false });
    assert.equal((await turns.find(key('t')))?.model, 'a');
  });
});
