// The bootstrap platform administrator: whoever holds ADMIN_TOKEN. The token is a setting and never stored (DESIGN 5).

import { timingSafeEqual } from 'node:crypto';
import { hashCredential } from './key-hash.ts';
import type { Principal } from './principal.ts';

/** Where a credential's id is asked for: this one has none. */
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
  limits: [],
  expiresAtMs: null,
};

/** Tells by a credential's hash, in constant time, whether it is ADMIN_TOKEN; without the setting nothing is. */
export function createBootstrapCheck(
  pepper: Buffer,
  adminToken: string | null,
): (credentialHash: Buffer) => Principal | null {
  if (adminToken === null) return () => null;
  const expected = hashCredential(pepper, adminToken);
  return (credentialHash) => (timingSafeEqual(credentialHash, expected) ? BOOTSTRAP_ADMINISTRATOR : null);
}
