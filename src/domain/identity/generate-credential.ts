// Makes new credentials: 256 random bits after a prefix that tells their kind.

import { randomBytes } from 'node:crypto';

const CREDENTIAL_BYTES = 32;

/** A new inference key: `tg-` and 43 characters. */
export function generateKey(): string {
  return `tg-${randomBytes(CREDENTIAL_BYTES).toString('base64url')}`;
}

/** A new access token: `tgt-` and 43 characters. */
export function generateToken(): string {
  return `tgt-${randomBytes(CREDENTIAL_BYTES).toString('base64url')}`;
}

/** Every session begins with this prefix, so that a lookup knows its kind. */
export const SESSION_PREFIX = 'tgs-';

/** A new session of the console: `tgs-` and 43 characters. */
export function generateSession(): string {
  return `${SESSION_PREFIX}${randomBytes(CREDENTIAL_BYTES).toString('base64url')}`;
}

/** The code of a new one-time link: `tgl-` and 43 characters. */
export function generateLinkCode(): string {
  return `tgl-${randomBytes(CREDENTIAL_BYTES).toString('base64url')}`;
}
