// Finds the principal of a credential, by the credential's hash under the installation's pepper.

import type { CompleteConfig } from '../../config.ts';
import { createBootstrapCheck } from '../../domain/identity/bootstrap-administrator.ts';
import { SESSION_PREFIX } from '../../domain/identity/generate-credential.ts';
import { hashCredential } from '../../domain/identity/key-hash.ts';
import type { FindPrincipal } from '../../generation/identity/authenticate.ts';
import {
  findPrincipalByCredentialHash,
  findPrincipalBySessionHash,
} from '../../storage/postgres/catalog/credentials.ts';
import type { InstallationSecrets } from '../../storage/postgres/installation-secrets.ts';
import type { Postgres } from '../../storage/postgres/pool.ts';

/** The bootstrap administrator is recognized without the identity store. */
export function findPrincipalIn(
  postgres: Postgres,
  { pepper }: InstallationSecrets,
  { adminToken }: CompleteConfig,
): FindPrincipal {
  const findBootstrap = createBootstrapCheck(pepper, adminToken);
  const bootstrapHash = adminToken === null ? null : hashCredential(pepper, adminToken);
  return async (credential) => {
    const hash = hashCredential(pepper, credential);
    if (credential.startsWith(SESSION_PREFIX)) return findPrincipalBySessionHash(postgres, hash, bootstrapHash);
    return findBootstrap(hash) ?? findPrincipalByCredentialHash(postgres, hash);
  };
}
