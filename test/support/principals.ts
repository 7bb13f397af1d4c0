// The principal that a test's credential stands for: a key of a billed organization, unless the test says otherwise.

import type { Principal } from '../../src/domain/identity/principal.ts';

export function principalOf(organizationId: string, more: Partial<Principal> = {}): Principal {
  return {
    credential: 'key',
    apiKeyId: `key-of-${organizationId}`,
    organizationId,
    teamId: null,
    userId: null,
    walletId: `wallet-of-${organizationId}`,
    billed: true,
    permissions: ['inference'],
    teamPermissions: new Map(),
    platformAdmin: false,
    allowedModels: null,
    hasOwnKeys: false,
    limits: [],
    expiresAtMs: null,
    ...more,
  };
}
