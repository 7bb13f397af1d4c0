// Which models an organization, a team or a key may use, as they are shown and set.

import type { LimitScope } from './limit-scope.ts';
import type { SetBy } from './set-by.ts';

export type ModelAccessScope = Exclude<LimitScope, { kind: 'user' }>;

/** Public model ids; null: every model. */
export type AllowedModels = readonly string[] | null;

export type ModelLists = Readonly<Record<SetBy, AllowedModels>>;

export interface ModelAccess {
  /** The models that both lists allow. */
  readonly allowedModels: AllowedModels;
  /** The platform's list and the organization's. */
  readonly allowedModelsSetBy: ModelLists;
}

/** Replaces the list that this party set. */
export interface SetModelAccessParams {
  readonly setBy: SetBy;
  readonly models: AllowedModels;
}

export function replaceModels(lists: ModelLists, { setBy, models }: SetModelAccessParams): ModelLists {
  return { ...lists, [setBy]: models };
}
