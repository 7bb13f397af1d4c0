// The ceilings on use of one scope, as they are shown and replaced.

import type { UsageLimit } from '../configuration/configuration.ts';
import type { SetBy } from './set-by.ts';

export type SetLimit = UsageLimit & { readonly setBy: SetBy };

/** Of both who set them. */
export interface Limits {
  readonly items: readonly SetLimit[];
}

/** All that one of the two sets on a scope, in place of what it had set there before. */
export interface LimitsOrder {
  readonly setBy: SetBy;
  readonly limits: readonly UsageLimit[];
}
