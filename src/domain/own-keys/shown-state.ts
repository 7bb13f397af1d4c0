// The state of an own key as it is shown: its stored state at a moment, and whether its provider is still the
// destination that its secret was given for.

import type { Catalog } from '../models/catalog.ts';
import { isKeyProblem, ownProvider, secretNeededFor } from './key-kinds.ts';
import { type OwnKey, presentState, type ShownKeyState } from './own-key.ts';

export interface ShownState {
  readonly state: ShownKeyState;
  readonly reason: string | null;
  readonly untilMs: number | null;
}

export function shownState(key: OwnKey, catalog: Pick<Catalog, 'models'>, nowMs: number): ShownState {
  const state = presentState(key, nowMs);
  const own = ownProvider(catalog, key.kind, key);
  const other = state === 'disabled' || isKeyProblem(own) ? null : secretNeededFor(key, own);
  if (other !== null) {
    const reason = `its provider has ${other} now: rotate the key to enter the secret again`;
    return { state: 'secret_needed', reason, untilMs: null };
  }
  return state === key.state
    ? { state, reason: key.stateReason, untilMs: key.stateUntilMs }
    : { state, reason: null, untilMs: null };
}
