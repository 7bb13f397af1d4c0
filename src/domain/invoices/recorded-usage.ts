// What our records say that a provider was used for, summed up so that every price of a sum is one price.

import type { Meters } from './meters.ts';

/**
 * `reported`: the provider's own usage. `counted`: ours, since it reported none. `unseen`: it was asked, and nobody
 * knows what it did: the client left before the first byte, no reply came, or our process died. `open`: not over yet.
 */
export type Known = 'reported' | 'counted' | 'unseen' | 'open';

export interface RecordedUsage {
  /** Which of the compared days; -1 and their number are before the first and after the last. */
  readonly day: number;
  readonly provider: string;
  readonly providerModel: string;
  /** An organization's own key; null: the service's. */
  readonly credentialId: string | null;
  /** null: none. */
  readonly priceVersion: string | null;
  /** null: plain. */
  readonly tier: string | null;
  readonly speed: string | null;
  readonly geo: string | null;
  /** Each request had at least so much input, and less than the next size. */
  readonly inputFrom: number;
  readonly known: Known;
  /** Of those that are unseen. */
  readonly outcome: string | null;
  /** Open at midnight, or within a minute of it. */
  readonly isAtEdge: boolean;
  readonly requests: number;
  readonly meters: Meters;
  /** What our prices make of it. */
  readonly cost: bigint;
  /** Requests with a usage that our prices make nothing of. */
  readonly unrated: number;
  /** Requests of which something went to suspense, and how much. */
  readonly suspected: number;
  readonly suspense: bigint;
}

/** By what the key is known that a request was sent with: the own key's id, else the provider's. */
export function credentialOf({ provider, credentialId }: Pick<RecordedUsage, 'provider' | 'credentialId'>): string {
  return credentialId ?? provider;
}
