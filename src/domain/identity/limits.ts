// The usage limits of one scope, as they are shown and replaced.

import type { UsageLimit } from '../configuration/configuration.ts';
import type { SetBy } from './set-by.ts';

export type SetLimit = UsageLimit & { readonly setBy: SetBy };

/** The limits that the platform set and those that the organization set. */
export interface Limits {
  readonly items: readonly SetLimit[];
}

/** Replaces all limits that this party set on the scope; the other party's stay. */
export interface ReplaceLimitsParams {
  readonly setBy: SetBy;
  readonly limits: readonly UsageLimit[];
}
