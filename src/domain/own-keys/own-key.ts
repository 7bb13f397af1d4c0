// An organization's own key for a provider, as plain data without its secret: for whom and what it is used, and in
// which state it is.

import type { KeyDestination } from '../models/key-destination.ts';

/** Before the service's own deployments, or only after them. */
export const KEY_PLACES = ['before', 'after'] as const;
export type KeyPlace = (typeof KEY_PLACES)[number];

/** Whether the service may serve where this key cannot; `inherit`: as the organization has set it. */
export const KEY_FALLBACKS = ['inherit', 'on', 'off'] as const;
export type KeyFallback = (typeof KEY_FALLBACKS)[number];

/**
 * - active: it is used.
 * - unverified: it is used; nothing has shown yet that the provider accepts it.
 * - cooling_down: its provider has refused it for lack of credit or quota; it rests until `stateUntilMs`.
 * - invalid: its provider does not accept it. It is tried again every hour, and recovers by itself.
 * - disabled: an administrator has turned it off.
 */
export const KEY_STATES = ['active', 'unverified', 'cooling_down', 'invalid', 'disabled'] as const;
export type KeyState = (typeof KEY_STATES)[number];

/** `secret_needed` is not stored: the catalog says whether its provider is still what the secret was given for. */
export const SHOWN_KEY_STATES = [...KEY_STATES, 'secret_needed'] as const;
export type ShownKeyState = (typeof SHOWN_KEY_STATES)[number];

/** Which requests a key is for; null: every one. */
export interface KeyAudience {
  /** Public ids. */
  readonly models: readonly string[] | null;
  readonly teams: readonly string[] | null;
  readonly apiKeys: readonly string[] | null;
  readonly users: readonly string[] | null;
}

/** Where requests with the key go, beside what its kind says. */
export interface KeyAddress {
  /** What the kind's preset takes, such as the name of an Azure resource. */
  readonly settings: Readonly<Record<string, string>>;
  /** Of kind `custom`; null for every other. */
  readonly baseUrl: string | null;
}

export interface OwnKey extends KeyAudience, KeyAddress {
  readonly id: string;
  readonly organizationId: string;
  /** The name of a preset or of a configured provider, or `custom`. */
  readonly kind: string;
  readonly name: string;
  /** The end of a long secret; null: it is too short to show any of it. */
  readonly label: string | null;
  /** Equal for equal secrets, and of no other use. */
  readonly fingerprint: string;
  /** Its secret is sent nowhere else. null: nobody has said where its provider is (deploy/postgres/0049). */
  readonly givenFor: KeyDestination | null;
  readonly place: KeyPlace;
  /** Lower ones are tried first. */
  readonly position: number;
  readonly fallback: KeyFallback;
  /** The provider's own model by public id, where it is not the catalog's. */
  readonly modelMap: Readonly<Record<string, string>>;
  readonly state: KeyState;
  readonly stateReason: string | null;
  readonly stateUntilMs: number | null;
  readonly verifiedAtMs: number | null;
  readonly lastUsedAtMs: number | null;
  readonly expiresAtMs: number | null;
  readonly rotatedAtMs: number | null;
  /** Until when the secret before the present one is tried where that is refused; null: there is none. */
  readonly previousUntilMs: number | null;
  readonly createdAtMs: number;
}

/** How much of a secret may be shown: its end, of one that is long enough to stay unguessable without it. */
const SHOWN_FROM_LENGTH = 20;
const SHOWN_CHARACTERS = 4;

export function labelOf(secret: string): string | null {
  return secret.length < SHOWN_FROM_LENGTH ? null : `…${secret.slice(-SHOWN_CHARACTERS)}`;
}

/** The state that counts at a moment: a provider that says that a key's account is spent has accepted the key. */
export function presentState({ state, stateUntilMs }: Pick<OwnKey, 'state' | 'stateUntilMs'>, nowMs: number): KeyState {
  return state === 'cooling_down' && stateUntilMs !== null && stateUntilMs <= nowMs ? 'active' : state;
}
