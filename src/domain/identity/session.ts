// A session of the console: how long it lasts, who opened it, and the one-time link that can.

import type { Role } from './roles.ts';

/** A session ends when nobody has used it for so long. */
export const SESSION_IDLE_SECONDS = 12 * 3600;
/** However much it is used. */
export const SESSION_SECONDS_MAX = 7 * 86_400;
/** A session is moved on at most this often. */
export const SESSION_EXTENDED_EVERY_SECONDS = 1_800;
export const LINK_SECONDS = 600;

/** Whom a session stands for, and what opened it. */
export interface OpenSessionParams {
  /** null: for the platform's administrator without a person, as ADMIN_TOKEN is. */
  readonly userId: string | null;
  /** null: an organization of the user. */
  readonly organizationId: string | null;
  /** How the audit log names the way in. */
  readonly way: string;
  /** The access token that opened it; null: something else did. */
  readonly tokenId: string | null;
  /** It was opened by ADMIN_TOKEN. */
  readonly isBootstrap: boolean;
}

export interface OpenedSession {
  readonly id: string;
  /** Goes into the cookie, and nowhere else. */
  readonly secret: string;
  readonly expiresAtMs: number;
}

export interface OneTimeLink {
  readonly code: string;
  readonly expiresAtMs: number;
}

/** The person and the organization that a session works for, by name. */
export interface SessionNames {
  readonly email: string | null;
  readonly organization: {
    readonly id: string;
    readonly slug: string;
    readonly displayName: string;
    readonly role: Role | null;
  } | null;
}
