// How a provider is doing, put together from what all gateway processes have seen of it.

/**
 * `unavailable`: it does not accept the key of the service, or there is no token for it; clients are not told more.
 */
export type ProviderFailure =
  | 'connect'
  | 'no_reply'
  | 'timeout'
  | 'cut'
  | 'rate_limited'
  | 'server_error'
  | 'key_refused';

export interface ProviderPause {
  /** The provider's name of the model; null: its whole address is passed over. */
  readonly model: string | null;
  readonly untilMs: number;
  /** False: for one or some organizations. */
  readonly isForAll: boolean;
}

/** Of a provider that takes a token in the place of a key. */
export interface TokenHealth {
  /** null: there is no token of its present account. */
  readonly expiresAtMs: number | null;
  readonly obtainedAtMs: number | null;
  /** Why the last attempt has failed, without a secret; null: it has not, or there was none. */
  readonly failure: string | null;
  readonly nextAttemptAtMs: number | null;
}

export interface ProviderHealth {
  /** null: none is known. */
  readonly lastSuccessAtMs: number | null;
  readonly lastFailureAtMs: number | null;
  readonly lastFailure: ProviderFailure | null;
  /** Of the provider's reply; null: there was none. */
  readonly lastFailureStatus: number | null;
  /** From the call to the first byte of the reply, of late. */
  readonly latencyMs: number | null;
  readonly pauses: readonly ProviderPause[];
  /** null: it has a key. */
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

/** By how the last attempt went. */
export function renewalOf({ expiresAtMs, failure }: TokenHealth): RenewalStatus {
  if (failure !== null) return 'failing';
  return expiresAtMs === null ? 'unknown' : 'ok';
}

/** By what came last. */
export function statusOf({ lastSuccessAtMs, lastFailureAtMs }: ProviderHealth): ProviderStatus {
  if (lastSuccessAtMs === null && lastFailureAtMs === null) return 'unknown';
  return (lastSuccessAtMs ?? 0) >= (lastFailureAtMs ?? 0) ? 'ok' : 'failing';
}
