// Gives the data plane the own provider keys of an organization.

import type { FindOwnKeys } from '../../generation/own-keys/own-key-set.ts';
import type { Log } from '../../platform/log.ts';
import { readOwnKeysInUse } from '../../storage/postgres/own-keys/own-keys-in-use.ts';
import type { Postgres } from '../../storage/postgres/pool.ts';
import type { SecretBox } from '../../storage/postgres/secret-box.ts';

export function ownKeysIn(postgres: Postgres, box: SecretBox, log: Log): FindOwnKeys {
  const onUnreadable = (keyId: string, fault: unknown): void =>
    log.error({ err: fault, credential_id: keyId }, 'an own provider key cannot be opened');
  return (organizationId) => readOwnKeysInUse(postgres, { box, onUnreadable }, organizationId);
}
