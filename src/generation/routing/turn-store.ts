// The turns that all processes remember: what routing asks of storage. Each of these rejects when the store cannot be
// asked.

import type { RouteDecision } from '../../domain/routing/decide-route.ts';
import type { TurnKey } from './turn-memory.ts';

export interface PreviousTurn {
  readonly decision: RouteDecision;
  /** Of its largest request; null: not known yet. */
  readonly inputTokens: number | null;
  readonly requestBytes: number | null;
}

export interface StoredTurn {
  /** null: nobody has decided it. */
  readonly decision: RouteDecision | null;
  /** How long ago somebody claimed it, in milliseconds; null: nobody has, or just now. */
  readonly claimedAgoMs: number | null;
  /** The nearest earlier turn of the conversation that was decided. */
  readonly previous: PreviousTurn | null;
}

export interface TurnStore {
  /** `claimed`: the turn is the caller's to decide, and nobody else's. */
  claim(turn: TurnKey): Promise<StoredTurn & { readonly claimed: boolean }>;
  find(turn: TurnKey): Promise<StoredTurn>;
  /** Gives up a claim whose turn nobody wants decided any more; a decided turn stays. The next to come may claim it. */
  release(turn: TurnKey): Promise<void>;
  /** Writes the turn's decision. null: it holds from now on. Otherwise the turn had one, and that holds. */
  decide(turn: TurnKey, decision: RouteDecision): Promise<RouteDecision | null>;
}
