// Gives every request of a human turn the same route, on every process (spec 4.11). The first request that claims the
// turn decides it, and the others use its decision. Within a process they share a promise, between processes the store,
// whose first writer wins.

import type { RouteDecision } from '../../domain/routing/decide-route.ts';
import type { Clock } from '../../platform/clock.ts';
import { withDeadline } from '../../platform/deadline.ts';
import { socketsRead, withSocketsRead } from '../../platform/event-loop/tick.ts';
import { type TurnKey, TurnMemory } from './turn-memory.ts';
import type { PreviousTurn, TurnStore } from './turn-store.ts';

/** How a request decides a turn that it has claimed. */
export interface TurnDecider {
  /** The client has disconnected, so nothing is asked or decided for it any more. */
  hasLeft(): boolean;
  /** Asks the classifier, then decides. */
  decide(previous: PreviousTurn | null): Promise<RouteDecision>;
  /** Decides without the classifier: the process that asked it has died, or the store is away. */
  decideUnasked(previous: PreviousTurn | null): RouteDecision;
  /** How long the request that claimed the turn may take to ask the classifier. */
  readonly classifierTimeoutMs: number;
}

export interface TurnRoute {
  readonly decision: RouteDecision;
  /** Another request has decided the turn. */
  readonly cached: boolean;
}

export interface SharedTurnsParts {
  readonly store: TurnStore;
  readonly clock: Clock;
  readonly onStoreFault: (fault: unknown) => void;
}

/** A turn that this process is deciding, or waiting for. */
interface Deciding {
  /** The requests of the turn in the order of their arrival. The first whose client is still connected decides. */
  readonly deciders: TurnDecider[];
  /** null: all of their clients have disconnected. */
  readonly decided: Promise<Decided | null>;
}

interface Decided {
  readonly decision: RouteDecision;
  /** The request that decided. null: it was decided before, or by another process. */
  readonly by: TurnDecider | null;
}

/** A store that does not answer in this time is away: a request must not wait for the timeouts of a connection. */
const STORE_DEADLINE_MS = 3_000;
/** How long a store that was away is not asked again. */
const AWAY_MS = 1_000;
/** Time to write a decision, beyond the classifier's deadline. */
const DECISION_MARGIN_MS = 1_500;
const ASK_AGAIN_MIN_MS = 15;
const ASK_AGAIN_MAX_MS = 100;

export class SharedTurns {
  private readonly memory = new TurnMemory();
  private readonly deciding = new Map<string, Deciding>();
  private readonly parts: SharedTurnsParts;
  /** The store did not answer the last call. */
  private isAway = false;
  private notBeforeMs = 0;

  constructor(parts: SharedTurnsParts) {
    this.parts = parts;
  }

  /**
   * The turn's route, decided by `decider` if nobody has decided it; null when its client disconnects before. If the
   * client of the deciding request disconnects, the next request of this process decides. Rejects only if the decider
   * does.
   */
  async routeOf(turn: TurnKey, decider: TurnDecider): Promise<TurnRoute | null> {
    if (decider.hasLeft()) return null;
    const known = this.memory.find(turn);
    if (known !== null) return { decision: known, cached: true };
    const name = nameOf(turn);
    let deciding = this.deciding.get(name);
    if (deciding === undefined) {
      const deciders = [decider];
      deciding = { deciders, decided: this.resolve(turn, deciders).finally(() => this.forget(name, deciders)) };
      this.deciding.set(name, deciding);
    } else {
      deciding.deciders.push(decider);
    }
    const decided = await withSocketsRead(deciding.decided);
    return decided === null ? null : { decision: decided.decision, cached: decided.by !== decider };
  }

  /** The turn's route if it is decided, without claiming the turn: for requests that must not decide it. */
  async find(turn: TurnKey): Promise<RouteDecision | null> {
    const known = this.memory.find(turn);
    if (known !== null) return known;
    for (const named of namesOf(turn)) {
      const deciding = (await this.deciding.get(nameOf(named))?.decided)?.decision ?? null;
      const decision = deciding ?? (await this.ask((store) => store.find(named)))?.decision ?? null;
      if (decision !== null) this.memory.remember(named, decision);
      if (decision !== null) return decision;
    }
    return null;
  }

  /** The turn before this one, if it is remembered. Claims and remembers nothing. */
  async previousOf(turn: TurnKey): Promise<PreviousTurn | null> {
    const found = await this.ask((store) => store.find(turn));
    return found === null ? this.previousHere(turn) : found.previous;
  }

  /** The previous turn, as far as this process has served the conversation. */
  private previousHere(turn: TurnKey): PreviousTurn | null {
    const previous = this.memory.previousOf(turn);
    if (previous === null) return null;
    return { turn: previous.turn, decision: previous.decision, inputTokens: null, requestBytes: null };
  }

  /** null: all clients have disconnected. In the same tick the turn is removed, so that a later request begins anew. */
  private async resolve(turn: TurnKey, deciders: readonly TurnDecider[]): Promise<Decided | null> {
    let decided: Decided | 'released' = 'released';
    while (decided === 'released') {
      if (firstOf(deciders) === null) {
        this.forget(nameOf(turn), deciders);
        return null;
      }
      decided = await this.claimAndDecide(turn, deciders);
    }
    this.memory.remember(turn, decided.decision);
    return decided;
  }

  private forget(name: string, deciders: readonly TurnDecider[]): void {
    if (this.deciding.get(name)?.deciders === deciders) this.deciding.delete(name);
  }

  /** `released`: the claim was given up, or no client of this process is left. */
  private async claimAndDecide(turn: TurnKey, deciders: readonly TurnDecider[]): Promise<Decided | 'released'> {
    const { alsoNamed } = turn;
    const also = alsoNamed === null ? null : await this.ask((store) => store.find({ ...turn, turn: alsoNamed }));
    if (also?.decision != null) return { decision: also.decision, by: null };
    const found = await this.ask((store) => store.claim(turn));
    if (found === null) return this.decideAlone(turn, deciders);
    if (found.decision !== null) return { decision: found.decision, by: null };
    if (!found.claimed) return this.waitFor(turn, deciders, found.claimedAgoMs ?? 0);
    // The classifier is not asked for a client that left while the turn was claimed.
    await socketsRead();
    const decider = firstOf(deciders);
    if (decider !== null) return this.write(turn, await decider.decide(found.previous), decider);
    await this.ask((store) => store.release(turn).then(() => true));
    return 'released';
  }

  /** The store is away: this process uses its own decisions. */
  private decideAlone(turn: TurnKey, deciders: readonly TurnDecider[]): Decided | 'released' {
    const decider = firstOf(deciders);
    if (decider === null) return 'released';
    return { decision: decider.decideUnasked(this.previousHere(turn)), by: decider };
  }

  private async write(turn: TurnKey, decision: RouteDecision, by: TurnDecider): Promise<Decided> {
    const earlier = await this.ask((store) => store.decide(turn, decision));
    return earlier === null ? { decision, by } : { decision: earlier, by: null };
  }

  /**
   * Another process is asking the classifier. If its decision does not come, that process has died, and the turn is
   * decided without asking again.
   */
  private async waitFor(
    turn: TurnKey,
    deciders: readonly TurnDecider[],
    claimedAgoMs: number,
  ): Promise<Decided | 'released'> {
    const { clock } = this.parts;
    const startedAtMs = clock.monotonicMs() - claimedAgoMs;
    for (let pauseMs = ASK_AGAIN_MIN_MS; ; pauseMs = Math.min(pauseMs * 1.5, ASK_AGAIN_MAX_MS)) {
      const found = await this.ask((store) => store.find(turn));
      if (found === null) return this.decideAlone(turn, deciders);
      if (found.decision !== null) return { decision: found.decision, by: null };
      const decider = firstOf(deciders);
      if (decider === null || found.claimedAgoMs === null) return 'released';
      const isLate = clock.monotonicMs() >= startedAtMs + decider.classifierTimeoutMs + DECISION_MARGIN_MS;
      if (isLate) return this.write(turn, decider.decideUnasked(found.previous), decider);
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }

  /** null can also mean that the store is away. While it is, one call at a time finds out whether it is back. */
  private async ask<T>(call: (store: TurnStore) => Promise<T>): Promise<T | null> {
    const { clock, store, onStoreFault } = this.parts;
    const nowMs = clock.monotonicMs();
    if (this.isAway && nowMs < this.notBeforeMs) return null;
    this.notBeforeMs = nowMs + STORE_DEADLINE_MS;
    try {
      const answer = await withDeadline(call(store), STORE_DEADLINE_MS);
      this.isAway = false;
      return answer;
    } catch (fault) {
      this.isAway = true;
      this.notBeforeMs = clock.monotonicMs() + AWAY_MS;
      onStoreFault(fault);
      return null;
    }
  }
}

function nameOf({ conversation, turn }: TurnKey): string {
  return `${conversation} ${turn}`;
}

function namesOf(turn: TurnKey): readonly TurnKey[] {
  return turn.alsoNamed === null ? [turn] : [turn, { ...turn, turn: turn.alsoNamed, alsoNamed: null }];
}

/** The first request whose client is still connected. */
function firstOf(deciders: readonly TurnDecider[]): TurnDecider | null {
  return deciders.find((decider) => !decider.hasLeft()) ?? null;
}
