// A session of the console: how long it lasts, who opened it, and the one-time link that can open one.

import type { Role } from './roles.ts';

/** A session ends after this long without use. */
export const SESSION_IDLE_SECONDS = 12 * 3600;
/** A session ends after this long even if it is used. */
export const SESSION_SECONDS_MAX = 7 * 86_400;
/** The idle end of a session is postponed at most this often. */
export const SESSION_EXTENDED_EVERY_SECONDS = 1_800;
export const LINK_SECONDS = 600;

/** Whom a session stands for, and what opened it. */
export interface OpenSessionParams {
  /** null: a platform administrator without a person, such as the holder of ADMIN_TOKEN. */
  readonly userId: string | null;
  /** null: an organization of the user. */
  readonly organizationId: string | null;
  /** How the session was opened, as the audit log names it. */
  readonly way: string;
  /** The access token that opened it; null: something else did. */
  readonly tokenId: string | null;
  /** It was opened by ADMIN_TOKEN. */
  readonly isBootstrap: boolean;
}

export interface OpenedSession {
  readonly id: string;
  /** It goes into the cookie and nowhere else. */
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
