// One route a human turn, on every process (spec 4.11): whoever claims a turn decides it, everybody else takes what was
// decided. In this process by one promise a turn, between processes by the store, whose first writer wins.

import type { RouteDecision } from '../../domain/routing/decide-route.ts';
import type { Clock } from '../../platform/clock.ts';
import { type TurnKey, TurnMemory } from './turn-memory.ts';
import type { PreviousTurn, TurnStore } from './turn-store.ts';

/** How the caller decides a turn that is its own to decide. */
export interface TurnDecider {
  /** Its client has left: nothing is asked or decided for it any more. */
  hasLeft(): boolean;
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

/** A turn that this process is deciding, or waiting for. */
interface Deciding {
  /** Whoever asked for it, in the order in which they came: the first that has not left decides. */
  readonly deciders: TurnDecider[];
  /** null: all of them have left. */
  readonly decided: Promise<Decided | null>;
}

interface Decided {
  readonly decision: RouteDecision;
  /** Whose decision it is; null: it was there before, or is another process's. */
  readonly by: TurnDecider | null;
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
  private readonly deciding = new Map<string, Deciding>();
  private readonly parts: SharedTurnsParts;
  private awayUntilMs = 0;

  constructor(parts: SharedTurnsParts) {
    this.parts = parts;
  }

  /**
   * The turn's route, decided by `decider` when nobody has decided it; null when its client left before. Who leaves
   * while others of this process wait for the turn is followed by the next of them. Rejects only where the decider
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
    const decided = await deciding.decided;
    return decided === null ? null : { decision: decided.decision, cached: decided.by !== decider };
  }

  /** The turn's route as far as it is decided, claiming nothing: for requests that are not to decide it. */
  async find(turn: TurnKey): Promise<RouteDecision | null> {
    const known = this.memory.find(turn) ?? (await this.deciding.get(nameOf(turn))?.decided)?.decision ?? null;
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

  /** null: all who asked have left. In the same moment the turn is nobody's any more: who comes then begins anew. */
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

  /** `released`: nobody has the turn any more, or nobody here wants it. */
  private async claimAndDecide(turn: TurnKey, deciders: readonly TurnDecider[]): Promise<Decided | 'released'> {
    const found = await this.ask((store) => store.claim(turn));
    if (found === null) return this.decideAlone(turn, deciders);
    if (found.decision !== null) return { decision: found.decision, by: null };
    if (!found.claimed) return this.waitFor(turn, deciders, found.claimedAgoMs ?? 0);
    const decider = firstOf(deciders);
    if (decider !== null) return this.write(turn, await decider.decide(found.previous), decider);
    await this.ask((store) => store.release(turn).then(() => true));
    return 'released';
  }

  /**
   * The store is away: this process keeps to what it decides now, and knows of the conversation what it has seen
   * itself.
   */
  private decideAlone(turn: TurnKey, deciders: readonly TurnDecider[]): Decided | 'released' {
    const decider = firstOf(deciders);
    if (decider === null) return 'released';
    const previous = this.memory.previousOf(turn);
    return {
      decision: decider.decideUnasked(
        previous === null ? null : { decision: previous, inputTokens: null, requestBytes: null },
      ),
      by: decider,
    };
  }

  private async write(turn: TurnKey, decision: RouteDecision, by: TurnDecider): Promise<Decided> {
    const earlier = await this.ask((store) => store.decide(turn, decision));
    return earlier === null ? { decision, by } : { decision: earlier, by: null };
  }

  /**
   * Somebody else is asking the classifier. When no decision comes, that somebody is gone: the turn is decided without
   * a second question.
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

  /** null also when the store is away. */
  private async ask<T>(call: (store: TurnStore) => Promise<T>): Promise<T | null> {
    const { clock, store, onStoreFault } = this.parts;
    if (clock.monotonicMs() < this.awayUntilMs) return null;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer within ${STORE_DEADLINE_MS} ms`)), STORE_DEADLINE_MS);
    });
    try {
      return await Promise.race([call(store), late]);
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

/** The first whose client has not left. */
function firstOf(deciders: readonly TurnDecider[]): TurnDecider | null {
  return deciders.find((decider) => !decider.hasLeft()) ?? null;
}
