// The turns that all processes share, as the functions that routing needs of storage. Each rejects when the store
// cannot be asked.

import type { RouteDecision } from '../../domain/routing/decide-route.ts';
import type { TurnKey } from './turn-memory.ts';

export interface PreviousTurn {
  readonly turn: string;
  readonly decision: RouteDecision;
  /** Input tokens of the turn's largest request; null: not known yet. */
  readonly inputTokens: number | null;
  readonly requestBytes: number | null;
}

export interface StoredTurn {
  /** null: the turn is not decided. */
  readonly decision: RouteDecision | null;
  /** How long ago the turn was claimed, in milliseconds; null: not claimed, or just now. */
  readonly claimedAgoMs: number | null;
  /** The turn before it that was decided (TurnKey.previousTurns says which that is). */
  readonly previous: PreviousTurn | null;
}

export interface TurnStore {
  /** `claimed`: the caller has the turn and must decide it. */
  claim(turn: TurnKey): Promise<StoredTurn & { readonly claimed: boolean }>;
  find(turn: TurnKey): Promise<StoredTurn>;
  /** Gives up the claim of an undecided turn, so that a later request may claim it. */
  release(turn: TurnKey): Promise<void>;
  /**
   * Writes the turn's decision. null: it is valid from now on. Otherwise the turn had a decision already, which stays
   * valid.
   */
  decide(turn: TurnKey, decision: RouteDecision): Promise<RouteDecision | null>;
}
