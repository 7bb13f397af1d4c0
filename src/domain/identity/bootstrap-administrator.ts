// The bootstrap platform administrator: whoever holds ADMIN_TOKEN. The token is a setting and is never stored.

import { timingSafeEqual } from 'node:crypto';
import { hashCredential } from './key-hash.ts';
import type { Principal } from './principal.ts';

/** The bootstrap administrator has no credential in the database; records that need a credential's id get this one. */
const NO_ID = '00000000-0000-0000-0000-000000000000';

const BOOTSTRAP_ADMINISTRATOR: Principal = {
  credential: 'token',
  apiKeyId: NO_ID,
  organizationId: null,
  teamId: null,
  userId: null,
  walletId: null,
  billed: false,
  permissions: ['platform.admin'],
  teamPermissions: new Map(),
  platformAdmin: true,
  allowedModels: null,
  hasOwnKeys: false,
  limits: [],
  expiresAtMs: null,
};

/** Compares a credential's hash with ADMIN_TOKEN's in constant time. Without the setting no credential matches. */
export function createBootstrapCheck(
  pepper: Buffer,
  adminToken: string | null,
): (credentialHash: Buffer) => Principal | null {
  if (adminToken === null) return () => null;
  const expected = hashCredential(pepper, adminToken);
  return (credentialHash) => (timingSafeEqual(credentialHash, expected) ? BOOTSTRAP_ADMINISTRATOR : null);
}
