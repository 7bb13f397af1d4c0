// Remembers turns in this process, in front of Postgres: a request of a remembered turn needs no look-up.

import type { RouteDecision } from '../../domain/routing/decide-route.ts';
import { BoundedMap } from '../../platform/bounded-map.ts';

/** A turn of a recognized conversation. */
export interface TurnKey {
  readonly conversation: string;
  readonly turn: string;
  /** Another name under which an earlier request of the turn may have been remembered. */
  readonly alsoNamed: string | null;
  /**
   * Names of the turn before it, if the body shows that turn, the likelier name first. Otherwise the turn before is the
   * latest one of the conversation that offered tools if this one does, preferably with the same system prompt.
   */
  readonly previousTurns: readonly string[];
  readonly offersTools: boolean;
  readonly instructions: string;
  readonly organizationId: string;
}

interface Remembered extends Pick<TurnKey, 'turn' | 'offersTools' | 'instructions'> {
  readonly decision: RouteDecision;
}

const CONVERSATIONS_MAX = 10_000;
/** Older turns are needed only when a client edits a conversation. Postgres has them. */
const TURNS_MAX = 8;

export class TurnMemory {
  /** The latest turns of each conversation, newest last; conversations in the order of their last use. */
  private readonly conversations = new BoundedMap<string, readonly Remembered[]>(CONVERSATIONS_MAX);

  find({ conversation, turn, alsoNamed }: TurnKey): RouteDecision | null {
    const turns = this.conversations.get(conversation);
    const found =
      turns?.find((remembered) => remembered.turn === turn) ??
      turns?.find((remembered) => remembered.turn === alsoNamed);
    if (turns === undefined || found === undefined) return null;
    this.conversations.set(conversation, turns);
    return found.decision;
  }

  /** The turn before this one, among those that this process remembers. */
  previousOf({ conversation, turn, previousTurns, offersTools, instructions }: TurnKey): Remembered | null {
    const others = (this.conversations.get(conversation) ?? []).filter((remembered) => remembered.turn !== turn);
    const shown = previousTurns.map((name) => others.find((remembered) => remembered.turn === name));
    const alike = others.filter((remembered) => remembered.offersTools === offersTools);
    return (
      shown.find((remembered) => remembered !== undefined) ??
      alike.findLast((remembered) => remembered.instructions === instructions) ??
      alike.at(-1) ??
      null
    );
  }

  remember({ conversation, turn, offersTools, instructions }: TurnKey, decision: RouteDecision): void {
    const others = (this.conversations.get(conversation) ?? []).filter((remembered) => remembered.turn !== turn);
    this.conversations.set(conversation, [...others, { turn, offersTools, instructions, decision }].slice(-TURNS_MAX));
  }
}
