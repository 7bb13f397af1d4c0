// The usage of a provider by our records, summed up so that one price applies to each sum.

import type { UsageSource } from '../usage/usage.ts';
import type { Meters } from './meters.ts';

/**
 * Where the usage is from, or why there is none. `reported`: the provider's own usage. `counted`: our own count, since
 * the provider reported none. `unseen`: the provider was called, but its usage is unknown: the client left before the
 * first byte, no reply came, or our process died. `open`: the request is not over yet.
 */
export type RecordedSource = UsageSource | 'unseen' | 'open';

export interface RecordedUsage {
  /** Index of the compared day; -1 is before the first day, and the number of days is after the last. */
  readonly day: number;
  readonly provider: string;
  readonly providerModel: string;
  /** An organization's own key; null: the service's. */
  readonly credentialId: string | null;
  /** null: the usage has no price. */
  readonly priceVersion: string | null;
  /** null: the ordinary service. */
  readonly tier: string | null;
  readonly speed: string | null;
  readonly geo: string | null;
  /** Each request had at least this many input tokens, and fewer than the next of `inputSizes`. */
  readonly inputFrom: number;
  readonly usageSource: RecordedSource;
  /** The outcome of unseen requests; null for others. */
  readonly outcome: string | null;
  /** The requests were open at midnight, or within a minute of it. */
  readonly isAtEdge: boolean;
  readonly requests: number;
  readonly meters: Meters;
  /** The usage at our prices, in pico-dollars. */
  readonly cost: bigint;
  /** Requests with a usage that our prices cannot rate. */
  readonly unrated: number;
  /** Requests of which a part went to suspense, and the sum of those parts in pico-dollars. */
  readonly suspected: number;
  readonly suspense: bigint;
}

/** The name of the key that the requests used: the own key's id, else the provider's id for the service's key. */
export function credentialOf({ provider, credentialId }: Pick<RecordedUsage, 'provider' | 'credentialId'>): string {
  return credentialId ?? provider;
}
