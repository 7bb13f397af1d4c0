// The turns that this process remembers, in front of Postgres: a request of a remembered turn needs no look-up.

import type { RouteDecision } from '../../domain/routing/decide-route.ts';
import { BoundedMap } from '../../platform/bounded-map.ts';

/** A turn of a recognized conversation. */
export interface TurnKey {
  readonly conversation: string;
  readonly turn: string;
  readonly organizationId: string;
  /** What orders the turns of a conversation. */
  readonly humanMessages: number;
}

interface Remembered {
  readonly turn: string;
  readonly humanMessages: number;
  readonly decision: RouteDecision;
}

const CONVERSATIONS_MAX = 10_000;
/** Older turns are needed only when a client edits a conversation. Postgres has them. */
const TURNS_MAX = 4;

export class TurnMemory {
  /** The latest turns of each conversation, newest last. The conversation that was used last is last. */
  private readonly conversations = new BoundedMap<string, readonly Remembered[]>(CONVERSATIONS_MAX);

  find({ conversation, turn }: TurnKey): RouteDecision | null {
    const turns = this.conversations.get(conversation);
    const found = turns?.find((remembered) => remembered.turn === turn);
    if (turns === undefined || found === undefined) return null;
    this.conversations.set(conversation, turns);
    return found.decision;
  }

  /** The nearest earlier turn that this process remembers. */
  previousOf({ conversation, turn, humanMessages }: TurnKey): RouteDecision | null {
    const earlier = (this.conversations.get(conversation) ?? []).filter(
      (remembered) => remembered.turn !== turn && remembered.humanMessages < humanMessages,
    );
    return earlier.toSorted((one, other) => one.humanMessages - other.humanMessages).at(-1)?.decision ?? null;
  }

  remember({ conversation, turn, humanMessages }: TurnKey, decision: RouteDecision): void {
    const others = (this.conversations.get(conversation) ?? []).filter((remembered) => remembered.turn !== turn);
    this.conversations.set(conversation, [...others, { turn, humanMessages, decision }].slice(-TURNS_MAX));
  }
}
