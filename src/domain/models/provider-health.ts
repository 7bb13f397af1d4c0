// How a provider is doing, put together from what all gateway processes have seen of it.

/** `key_refused`: the provider does not accept the service's key. Clients see it as `unavailable`. */
export type ProviderFailure =
  | 'connect'
  | 'no_reply'
  | 'timeout'
  | 'cut'
  | 'rate_limited'
  | 'server_error'
  | 'key_refused';

export interface ProviderPause {
  /** The provider's name for the model; null: the whole provider is paused. */
  readonly model: string | null;
  readonly untilMs: number;
  /** False: the pause applies to some organizations only. */
  readonly isForAll: boolean;
}

/** The token's state at a provider that takes a token instead of a key. */
export interface TokenHealth {
  /** null: there is no token for the provider's present account. */
  readonly expiresAtMs: number | null;
  readonly obtainedAtMs: number | null;
  /** Why the last attempt to get a token failed, without secrets; null: it succeeded, or there was none. */
  readonly failure: string | null;
  readonly nextAttemptAtMs: number | null;
}

export interface ProviderHealth {
  /** null: none is known. */
  readonly lastSuccessAtMs: number | null;
  readonly lastFailureAtMs: number | null;
  readonly lastFailure: ProviderFailure | null;
  /** The status of the provider's reply; null: there was no reply. */
  readonly lastFailureStatus: number | null;
  /** Recent time from a call to the first byte of its reply. */
  readonly latencyMs: number | null;
  readonly pauses: readonly ProviderPause[];
  /** null: the provider takes a key. */
  readonly token: TokenHealth | null;
}

export const UNKNOWN_HEALTH: ProviderHealth = {
  lastSuccessAtMs: null,
  lastFailureAtMs: null,
  lastFailure: null,
  lastFailureStatus: null,
  latencyMs: null,
  pauses: [],
  token: null,
};

export type ProviderStatus = 'ok' | 'failing' | 'unknown';

export type RenewalStatus = 'ok' | 'failing' | 'unknown';

/** Whether the last attempt to renew the token succeeded. */
export function renewalOf({ expiresAtMs, failure }: TokenHealth): RenewalStatus {
  if (failure !== null) return 'failing';
  return expiresAtMs === null ? 'unknown' : 'ok';
}

/** `ok` or `failing` by whichever came last, a success or a failure. */
export function statusOf({ lastSuccessAtMs, lastFailureAtMs }: ProviderHealth): ProviderStatus {
  if (lastSuccessAtMs === null && lastFailureAtMs === null) return 'unknown';
  return (lastSuccessAtMs ?? 0) >= (lastFailureAtMs ?? 0) ? 'ok' : 'failing';
}
