// The secrets of an installation that has always had the same master key.

import { deriveDelegationKey } from '../../src/domain/identity/delegation-token.ts';
import { derivePepper } from '../../src/domain/identity/key-hash.ts';
import type { InstallationSecrets } from '../../src/storage/postgres/installation-secrets.ts';
import { createSecretBox } from '../../src/storage/postgres/secret-box.ts';

export function secretsOf(masterKey: Buffer): InstallationSecrets {
  return {
    box: createSecretBox({ current: masterKey, previous: [] }),
    pepper: derivePepper(masterKey),
    delegationKey: deriveDelegationKey(masterKey),
  };
}
