// An organization's own key for a provider, as plain data without its secret: which requests it is for, and its state.

import type { KeyDestination } from '../models/key-destination.ts';

/** Before the service's own deployments, or only after them. */
export const KEY_PLACES = ['before', 'after'] as const;
export type KeyPlace = (typeof KEY_PLACES)[number];

/** Whether the service may serve if this key cannot; `inherit`: as the organization has set it. */
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

/**
 * `secret_needed` is not stored: it follows from comparing the catalog's provider with the destination that the secret
 * was given for.
 */
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

/** Where requests with the key are sent, in addition to what its kind says. */
export interface KeyAddress {
  /** Parameters of the kind's preset, such as the name of an Azure resource. */
  readonly settings: Readonly<Record<string, string>>;
  /** Only for kind `custom`; null for every other. */
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
  /** Equal for equal secrets, and used only to compare them. */
  readonly fingerprint: string;
  /** The only destination that the secret is sent to. null: the destination is unknown (deploy/postgres/0049). */
  readonly givenFor: KeyDestination | null;
  readonly place: KeyPlace;
  /** Lower ones are tried first. */
  readonly position: number;
  readonly fallback: KeyFallback;
  /** The provider's own model for a public id, if it is not the catalog's. */
  readonly modelMap: Readonly<Record<string, string>>;
  readonly state: KeyState;
  readonly stateReason: string | null;
  readonly stateUntilMs: number | null;
  readonly verifiedAtMs: number | null;
  readonly lastUsedAtMs: number | null;
  readonly expiresAtMs: number | null;
  readonly rotatedAtMs: number | null;
  /** Until when the previous secret is tried if the present one is refused; null: there is no previous secret. */
  readonly previousUntilMs: number | null;
  readonly createdAtMs: number;
}

/** The end of a secret may be shown if the rest is long enough to stay unguessable. */
const SHOWN_FROM_LENGTH = 20;
const SHOWN_CHARACTERS = 4;

export function labelOf(secret: string): string | null {
  return secret.length < SHOWN_FROM_LENGTH ? null : `…${secret.slice(-SHOWN_CHARACTERS)}`;
}

/**
 * The state at a moment. A key whose cool-down is over is active: by reporting a spent account its provider has
 * accepted the key.
 */
export function presentState({ state, stateUntilMs }: Pick<OwnKey, 'state' | 'stateUntilMs'>, nowMs: number): KeyState {
  return state === 'cooling_down' && stateUntilMs !== null && stateUntilMs <= nowMs ? 'active' : state;
}
