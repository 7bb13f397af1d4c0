// The kinds of usage limits and the periods of a budget: the one list for configuration files, commands, routes and
// leases.

/** Kinds whose limit is a whole number; a budget's is USD. */
export const COUNTED_KINDS = ['requests_per_minute', 'tokens_per_minute', 'concurrent_requests'] as const;

export const LIMIT_KINDS = [...COUNTED_KINDS, 'budget'] as const;

/** Calendar periods, in UTC. */
export const BUDGET_WINDOWS = ['hour', 'day', 'week', 'month'] as const;

export type CountedKind = (typeof COUNTED_KINDS)[number];
export type LimitKind = (typeof LIMIT_KINDS)[number];
export type BudgetWindow = (typeof BUDGET_WINDOWS)[number];
