// Which of a provider's refusals send a request on to the next deployment, and which begin a cooldown (DESIGN 3).

/** A real provider sends Retry-After with a 200 too: only these begin a cooldown. */
export const COOLDOWN_STATUSES: ReadonlySet<number> = new Set([429, 503, 529]);
/** Another provider may well serve what this one could not. 529: overloaded, in the Messages dialect. */
export const FAILOVER_STATUSES: ReadonlySet<number> = new Set([429, 500, 502, 503, 504, 529]);
