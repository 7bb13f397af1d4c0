// Gives the data plane the own provider keys of an organization, and tells the store of keys that providers refuse.

import type { OwnKeyUse } from '../generation/catalog/serving-catalog.ts';
import type { FindOwnKeys } from '../generation/own-keys/own-key-set.ts';
import type { Log } from '../platform/log.ts';
import { readOwnKeysInUse, suspectOwnKey } from '../storage/postgres/own-keys/own-keys-in-use.ts';
import type { Postgres } from '../storage/postgres/pool.ts';
import type { SecretBox } from '../storage/postgres/secret-box.ts';

export function ownKeysIn(postgres: Postgres, box: SecretBox, log: Log): FindOwnKeys {
  const onUnreadable = (keyId: string, fault: unknown): void =>
    log.error({ err: fault, credential_id: keyId }, 'an own provider key cannot be opened');
  return (organizationId) => readOwnKeysInUse(postgres, { box, onUnreadable }, organizationId);
}

/** A provider has refused the key. Where the store cannot be told, the next refusal tells it again. */
export function suspecting(postgres: Postgres, log: Log): (key: OwnKeyUse) => void {
  return ({ keyId, organizationId }) => {
    log.warn({ credential_id: keyId, organization_id: organizationId }, 'a provider refuses an own key');
    suspectOwnKey(postgres, keyId).catch((fault: unknown) =>
      log.warn({ err: fault, credential_id: keyId }, 'the refusal of an own key could not be stored'),
    );
  };
}
