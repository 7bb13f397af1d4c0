// Makes new credentials: 256 random bits behind a prefix that tells what it is.

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

/** Every session begins with it, so that a look-up knows what it is for. */
export const SESSION_PREFIX = 'tgs-';

/** A new session of the console: `tgs-` and 43 characters. */
export function generateSession(): string {
  return `${SESSION_PREFIX}${randomBytes(CREDENTIAL_BYTES).toString('base64url')}`;
}

/** The code of a new one-time link: `tgl-` and 43 characters. */
export function generateLinkCode(): string {
  return `tgl-${randomBytes(CREDENTIAL_BYTES).toString('base64url')}`;
}
