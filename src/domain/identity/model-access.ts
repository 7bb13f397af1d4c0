// Which models an organization, a team or a key may use, as it is shown and set.

import type { LimitScope } from './limit-scope.ts';
import type { SetBy } from './set-by.ts';

export type ModelAccessScope = Exclude<LimitScope, { kind: 'user' }>;

/** Public model ids; null: every model. */
export type AllowedModels = readonly string[] | null;

export type ModelLists = Readonly<Record<SetBy, AllowedModels>>;

export interface ModelAccess {
  /** What both lists allow. */
  readonly allowedModels: AllowedModels;
  /** The two lists. */
  readonly allowedModelsSetBy: ModelLists;
}

/** One of the two lists, in place of what it was. */
export interface ModelAccessOrder {
  readonly setBy: SetBy;
  readonly models: AllowedModels;
}

export function replaceModels(lists: ModelLists, { setBy, models }: ModelAccessOrder): ModelLists {
  return { ...lists, [setBy]: models };
}
