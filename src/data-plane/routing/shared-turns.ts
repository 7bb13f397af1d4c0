// One route a human turn, on every process (spec 4.11): whoever claims a turn decides it, everybody else takes what was decided. In this process by
// one promise a turn, between processes by the store, whose first writer wins.

import type { RouteDecision } from '../../domain/routing/decide-route.ts';
import type { Clock } from '../../platform/clock.ts';
import { type TurnKey, TurnMemory } from './turn-memory.ts';
import type { PreviousTurn, StoredTurn, TurnStore } from './turn-store.ts';

/** How the caller decides a turn that is its own to decide. */
export interface TurnDecider {
  /** Asks the classifier, then decides. */
  decide(previous: PreviousTurn | null): Promise<RouteDecision>;
  /** Decides without asking anybody: the classifier's answer is somebody else's, who is gone, or the store is away. */
  decideUnasked(previous: PreviousTurn | null): RouteDecision;
  /** How long whoever claimed the turn may take to ask the classifier. */
  readonly classifierTimeoutMs: number;
}

export interface TurnRoute {
  readonly decision: RouteDecision;
  /** It was decided for another request. */
  readonly cached: boolean;
}

export interface SharedTurnsParts {
  readonly store: TurnStore;
  readonly clock: Clock;
  readonly onStoreFault: (fault: unknown) => void;
}

/** A store that does not answer in this time is away: a request must not wait for a connection's own timeouts. */
const STORE_DEADLINE_MS = 3_000;
/** For so long one that was away is not asked again. */
const AWAY_MS = 1_000;
/** For whoever claimed a turn, beyond the classifier's deadline, to write its decision. */
const DECISION_MARGIN_MS = 1_500;
const ASK_AGAIN_MIN_MS = 15;
const ASK_AGAIN_MAX_MS = 100;

export class SharedTurns {
  private readonly memory = new TurnMemory();
  /** Turns that this process is deciding, or waiting for. */
  private readonly deciding = new Map<string, Promise<TurnRoute>>();
  private readonly parts: SharedTurnsParts;
  private awayUntilMs = 0;

  constructor(parts: SharedTurnsParts) {
    this.parts = parts;
  }

  /** The turn's route, decided by `decider` when nobody has decided it. Rejects only where the decider does. */
  async routeOf(turn: TurnKey, decider: TurnDecider): Promise<TurnRoute> {
    const known = this.memory.find(turn);
    if (known !== null) return { decision: known, cached: true };
    const name = nameOf(turn);
    const deciding = this.deciding.get(name);
    if (deciding !== undefined) return { decision: (await deciding).decision, cached: true };
    const resolving = this.resolve(turn, decider).finally(() => this.deciding.delete(name));
    this.deciding.set(name, resolving);
    return resolving;
  }

  /** The turn's route as far as it is decided, claiming nothing: for requests that are not to decide it. */
  async find(turn: TurnKey): Promise<RouteDecision | null> {
    const known = this.memory.find(turn) ?? (await this.deciding.get(nameOf(turn)))?.decision ?? null;
    if (known !== null) return known;
    const stored = await this.ask((store) => store.find(turn));
    const decision = stored?.decision ?? null;
    if (decision !== null) this.memory.remember(turn, decision);
    return decision;
  }

  /** The turn before this one, as far as anybody remembers; claims and remembers nothing. */
  async previousOf(turn: TurnKey): Promise<PreviousTurn | null> {
    return (await this.ask((store) => store.find(turn)))?.previous ?? null;
  }

  private async resolve(turn: TurnKey, decider: TurnDecider): Promise<TurnRoute> {
    const found = await this.ask((store) => store.claim(turn));
    const route = found === null ? this.decideAlone(turn, decider) : await this.resolveFound(turn, decider, found);
    this.memory.remember(turn, route.decision);
    return route;
  }

  private async resolveFound(turn: TurnKey, decider: TurnDecider, found: StoredTurn & { readonly claimed: boolean }): Promise<TurnRoute> {
    if (found.decision !== null) return { decision: found.decision, cached: true };
    if (found.claimed) return this.write(turn, await decider.decide(found.previous));
    return this.waitFor(turn, decider, found.claimedAgoMs ?? 0);
  }

  /** The store is away: this process keeps to what it decides now, and knows of the conversation what it has seen itself. */
  private decideAlone(turn: TurnKey, decider: TurnDecider): TurnRoute {
    const previous = this.memory.previousOf(turn);
    return { decision: decider.decideUnasked(previous === null ? null : { decision: previous, inputTokens: null, requestBytes: null }), cached: false };
  }

  private async write(turn: TurnKey, decision: RouteDecision): Promise<TurnRoute> {
    const earlier = await this.ask((store) => store.decide(turn, decision));
    return earlier === null ? { decision, cached: false } : { decision: earlier, cached: true };
  }

  /** Somebody else is asking the classifier. When no decision comes, that somebody is gone: the turn is decided without a second question. */
  private async waitFor(turn: TurnKey, decider: TurnDecider, claimedAgoMs: number): Promise<TurnRoute> {
    const { clock } = this.parts;
    const untilMs = clock.monotonicMs() + decider.classifierTimeoutMs + DECISION_MARGIN_MS - claimedAgoMs;
    for (let pauseMs = ASK_AGAIN_MIN_MS; ; pauseMs = Math.min(pauseMs * 1.5, ASK_AGAIN_MAX_MS)) {
      const found = await this.ask((store) => store.find(turn));
      if (found === null) return this.decideAlone(turn, decider);
      if (found.decision !== null) return { decision: found.decision, cached: true };
      if (clock.monotonicMs() >= untilMs) return this.write(turn, decider.decideUnasked(found.previous));
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }

  /** null also when the store is away. */
  private async ask<T>(question: (store: TurnStore) => Promise<T>): Promise<T | null> {
    const { clock, store, onStoreFault } = this.parts;
    if (clock.monotonicMs() < this.awayUntilMs) return null;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer within ${STORE_DEADLINE_MS} ms`)), STORE_DEADLINE_MS);
    });
    try {
      return await Promise.race([question(store), late]);
    } catch (fault) {
      this.awayUntilMs = clock.monotonicMs() + AWAY_MS;
      onStoreFault(fault);
      return null;
    } finally {
      clearTimeout(timer);
    }
  }
}

function nameOf({ conversation, turn }: TurnKey): string {
  return `${conversation} ${turn}`;
}
