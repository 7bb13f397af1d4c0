// Makes new credentials: 256 random bits behind a prefix that tells a key from a token.

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
