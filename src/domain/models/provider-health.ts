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
}

export const UNKNOWN_HEALTH: ProviderHealth = {
  lastSuccessAtMs: null,
  lastFailureAtMs: null,
  lastFailure: null,
  lastFailureStatus: null,
  latencyMs: null,
  pauses: [],
};

export type ProviderStatus = 'ok' | 'failing' | 'unknown';

/** By what came last. */
export function statusOf({ lastSuccessAtMs, lastFailureAtMs }: ProviderHealth): ProviderStatus {
  if (lastSuccessAtMs === null && lastFailureAtMs === null) return 'unknown';
  return (lastSuccessAtMs ?? 0) >= (lastFailureAtMs ?? 0) ? 'ok' : 'failing';
}
