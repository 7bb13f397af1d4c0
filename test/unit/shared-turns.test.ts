// One route a turn: in this process, between processes, with a claimant that is gone, with a store that is away.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { SharedTurns, type TurnDecider } from '../../src/data-plane/routing/shared-turns.ts';
import type { TurnKey } from '../../src/data-plane/routing/turn-memory.ts';
import type { PreviousTurn, StoredTurn, TurnStore } from '../../src/data-plane/routing/turn-store.ts';
import type { RouteDecision } from '../../src/domain/routing/decide-route.ts';
import { systemClock } from '../../src/platform/clock.ts';

function key(turn: string, humanMessages = 1, conversation = 'k'): TurnKey {
  return { conversation, turn, humanMessages, organizationId: 'o' };
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

  private read(turn: TurnKey): StoredTurn {
    const row = this.rows.get(turn.turn);
    const earlier = [...this.rows.values()].filter((other) => other.decision !== null && other.turn.humanMessages < turn.humanMessages).at(-1);
    const previous = earlier?.decision == null ? null : { decision: earlier.decision, inputTokens: null, requestBytes: null };
    return { decision: row?.decision ?? null, claimedAgoMs: row === undefined ? null : performance.now() - row.claimedAtMs, previous };
  }
}

class Decider implements TurnDecider {
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

function process(store: TurnStore): { turns: SharedTurns; faults: unknown[] } {
  const faults: unknown[] = [];
  return { turns: new SharedTurns({ store, clock: systemClock, onStoreFault: (fault) => faults.push(fault) }), faults };
}

describe('a turn', () => {
  test('is decided once, however many requests of it come at once, on however many processes', async () => {
    const store = new Turns();
    const processes = Array.from({ length: 4 }, () => process(store));
    const deciders = processes.map((_, index) => new Decider(`model-${index}`));
    const routes = await Promise.all(processes.flatMap(({ turns }, index) => [1, 2, 3].map(() => turns.routeOf(key('t'), deciders[index] as Decider))));
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
    await process(store).turns.routeOf(key('first', 1), new Decider('a'));
    const decider = new Decider('b');
    await process(store).turns.routeOf(key('second', 2), decider);
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
    const failing: TurnDecider = { decide: () => Promise.reject(new Error('a bug')), decideUnasked: () => decision('x'), classifierTimeoutMs: 0 };
    await assert.rejects(turns.routeOf(key('t'), failing), /a bug/);
    const route = await turns.routeOf(key('t'), new Decider('b', { timeoutMs: -1_500 }));
    assert.equal(route.decision.model, 'b unasked');
  });
});

describe('while the store is away', () => {
  test('a new turn is decided without asking, by what this process remembers; known ones are served', async () => {
    const store = new Turns();
    const { turns, faults } = process(store);
    await turns.routeOf(key('first', 1), new Decider('a'));
    store.isAway = true;
    assert.equal((await turns.routeOf(key('first', 1), new Decider('x'))).decision.model, 'a');
    assert.equal(faults.length, 0);
    const decider = new Decider('b');
    const route = await turns.routeOf(key('second', 2), decider);
    assert.deepEqual([route.decision.model, route.cached, decider.previous?.decision.model], ['b unasked', false, 'a']);
    assert.equal(faults.length, 1);
    // The turn keeps its model, also when the store is back.
    store.isAway = false;
    assert.equal((await turns.routeOf(key('second', 2), new Decider('c'))).decision.model, 'b unasked');
  });

  test('it is not asked for every request', async () => {
    const store = new Turns();
    store.isAway = true;
    const { turns } = process(store);
    for (const name of ['a', 'b', 'c']) await turns.routeOf(key(name, 1, name), new Decider(name));
    assert.equal(store.calls, 1);
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
