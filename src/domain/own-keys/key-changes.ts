// What is said of an own key when it is made or changed.

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
  /** null: the catalog does not have its provider. */
  readonly givenFor: KeyDestination | null;
  readonly place: KeyPlace;
  readonly fallback: KeyFallback;
  readonly modelMap: Readonly<Record<string, string>>;
  readonly expiresAtMs: number | null;
  readonly verdict: KeyVerdict;
}

/** A new secret for a key that is there. */
export interface RotatedSecret {
  readonly secret: string;
  readonly givenFor: KeyDestination | null;
  /** How long the secret before is tried where the new one is refused, if both were given for the same. */
  readonly overlapSeconds: number;
  readonly verdict: KeyVerdict;
}

export interface OwnKeyReference {
  readonly organizationId: string;
  readonly keyId: string;
}

/** Absent fields stay as they are. The address stays: a stored secret goes where it was given for. */
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
