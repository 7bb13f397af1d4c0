// The parameters by which an own key is created or changed.

import type { KeyDestination } from '../models/key-destination.ts';
import type { KeyAddress, KeyAudience, KeyFallback, KeyPlace, KeyState } from './own-key.ts';

/** What a verification found: the provider accepts the key, may accept it, or does not. */
export interface KeyVerdict {
  readonly state: Extract<KeyState, 'active' | 'unverified' | 'invalid'>;
  readonly reason: string | null;
}

export interface NewOwnKey extends KeyAudience, KeyAddress {
  readonly organizationId: string;
  readonly kind: string;
  readonly name: string;
  readonly secret: string;
  /** null: the catalog does not have the key's provider. */
  readonly givenFor: KeyDestination | null;
  readonly place: KeyPlace;
  readonly fallback: KeyFallback;
  readonly modelMap: Readonly<Record<string, string>>;
  readonly expiresAtMs: number | null;
  readonly verdict: KeyVerdict;
}

/** A new secret for an existing key. */
export interface RotatedSecret {
  readonly secret: string;
  readonly givenFor: KeyDestination | null;
  /** How long the previous secret is tried when the new one is refused, if both were given for the same destination. */
  readonly overlapSeconds: number;
  readonly verdict: KeyVerdict;
}

export interface OwnKeyReference {
  readonly organizationId: string;
  readonly keyId: string;
}

/**
 * Absent fields stay as they are. The address cannot be changed, since a stored secret is sent only to the destination
 * that it was given for.
 */
export interface OwnKeyChange extends Partial<KeyAudience> {
  readonly name?: string;
  readonly place?: KeyPlace;
  readonly fallback?: KeyFallback;
  readonly modelMap?: Readonly<Record<string, string>>;
  readonly expiresAtMs?: number | null;
  readonly isEnabled?: boolean;
}

/** The keys of one kind, first to last: those before the service's own deployments and those after. */
export interface KeyOrder {
  readonly kind: string;
  readonly before: readonly string[];
  readonly after: readonly string[];
}
