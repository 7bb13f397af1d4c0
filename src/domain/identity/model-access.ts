// Which models an organization, a team or a key may use, as it is shown and set.

import type { LimitScope } from './limit-scope.ts';

export type ModelAccessScope = Exclude<LimitScope, { kind: 'user' }>;

export interface ModelAccess {
  /** Public model ids; null: every model. */
  readonly allowedModels: readonly string[] | null;
}
