// Provides the operations on organizations' own provider keys to the control plane: those of storage, and asking a
// provider whether it accepts a key.

import type { OwnKeysStore } from '../../control-plane/own-keys/own-keys-store.ts';
import type { Catalog } from '../../domain/models/catalog.ts';
import type { KeyCaller } from '../../domain/own-keys/attempt-order.ts';
import { explainKeyUse, type KeyUseParams } from '../../domain/own-keys/explain-key-use.ts';
import { isRefused, type Refused } from '../../domain/refusals/refused.ts';
import type { KeyPauses } from '../../generation/own-keys/key-pauses.ts';
import type { Clock } from '../../platform/clock.ts';
import { invalid } from '../../storage/postgres/identity/change.ts';
import { findKey } from '../../storage/postgres/identity/keys/key-rows.ts';
import { getByokSettings, setByokChoices, setByokGrant } from '../../storage/postgres/own-keys/byok-settings.ts';
import { setKeyOrder } from '../../storage/postgres/own-keys/key-order.ts';
import { recordVerdict } from '../../storage/postgres/own-keys/key-states.ts';
import { listOwnKeys, listOwnKeysByPage } from '../../storage/postgres/own-keys/list-own-keys.ts';
import { readOwnKeyUsage } from '../../storage/postgres/own-keys/own-key-usage.ts';
import {
  createOwnKey,
  getOwnKey,
  type OwnKeySecrets,
  openOwnKey,
  removeOwnKey,
  rotateOwnKey,
  updateOwnKey,
} from '../../storage/postgres/own-keys/own-keys.ts';
import { getOwnPrice, listOwnPrices, putOwnPrice, removeOwnPrice } from '../../storage/postgres/own-keys/own-prices.ts';
import type { Postgres } from '../../storage/postgres/pool.ts';
import type { OwnKeyVerifier } from '../../upstream/own-key-verifier.ts';

interface OwnKeysParts {
  readonly controlPostgres: Postgres;
  readonly catalog: { readonly present: Catalog };
  readonly ownKeyVerifier: OwnKeyVerifier;
  /** The own keys that this process's data plane holds. */
  readonly ownKeys: { readonly pauses: KeyPauses };
}

export function createOwnKeysStore(
  { controlPostgres: postgres, catalog, ownKeyVerifier: verifier, ownKeys: { pauses } }: OwnKeysParts,
  secrets: OwnKeySecrets,
  clock: Clock,
): OwnKeysStore {
  return {
    nowMs: () => clock.nowMs(),
    catalog: () => catalog.present,
    getSettings: (organizationId) => getByokSettings(postgres, organizationId),
    setGrant: (actor, grant) => setByokGrant(postgres, actor, grant),
    setChoices: (actor, choices) => setByokChoices(postgres, actor, choices),
    listKeys: (params) => listOwnKeysByPage(postgres, params),
    getOrder: (organizationId) => listOwnKeys(postgres, organizationId),
    getKey: (reference) => getOwnKey(postgres, reference),
    createKey: (actor, made) => createOwnKey(postgres, secrets, actor, made),
    updateKey: (actor, reference, changed) => updateOwnKey(postgres, actor, reference, changed),
    removeKey: (actor, reference) => removeOwnKey(postgres, actor, reference),
    rotateKey: (actor, reference, rotated) => rotateOwnKey(postgres, secrets, actor, reference, rotated),
    openKey: (reference) => openOwnKey(postgres, secrets, reference),
    recordVerdict: (actor, reference, found) => recordVerdict(postgres, actor, reference, found),
    addressProblem: (own) => verifier.addressProblem(own),
    verify: (own, secret) => verifier.verify(own, secret),
    setOrder: (actor, organizationId, order) => setKeyOrder(postgres, actor, organizationId, order),
    async explain({ organizationId, model: name, api, caller: asked, allowedModels }) {
      const settings = await getByokSettings(postgres, organizationId);
      if (isRefused(settings)) return settings;
      const { present } = catalog;
      const model = present.byName.get(name);
      if (model === undefined || allowedModels?.has(model.id) === false) return { refused: 'not_found' };
      const caller = await callerOf(postgres, organizationId, asked);
      if (isRefused(caller)) return caller;
      const keys = await listOwnKeys(postgres, organizationId);
      const ownPrice = (await getOwnPrice(postgres, organizationId, model.id))?.price ?? null;
      const monotonicMs = clock.monotonicMs();
      const pauseOf: KeyUseParams['pauseOf'] = ({ id: keyId, fingerprint }, providerModel) =>
        pauses.find({ organizationId, keyId, fingerprint, providerModel }, monotonicMs)?.meaning ?? null;
      const told = { keys, settings, catalog: present, model, api, ownPrice, caller, nowMs: clock.nowMs(), pauseOf };
      return explainKeyUse(told);
    },
    readUsage: (params) => readOwnKeyUsage(postgres, params),
    listPrices: (organizationId) => listOwnPrices(postgres, organizationId),
    getPrice: (organizationId, model) => getOwnPrice(postgres, organizationId, model),
    putPrice: (actor, price) => putOwnPrice(postgres, actor, price),
    removePrice: (actor, price) => removeOwnPrice(postgres, actor, price),
  };
}

/** An inference key calls for the team and the person that it belongs to. */
async function callerOf(postgres: Postgres, organizationId: string, asked: KeyCaller): Promise<KeyCaller | Refused> {
  const { apiKeyId } = asked;
  if (apiKeyId === null) return asked;
  const found = await findKey(postgres, { organizationId, keyId: apiKeyId });
  if (isRefused(found)) return found;
  const { teamId, userId } = found.key;
  const isOther = (said: string | null, known: string | null): boolean => said !== null && said !== known;
  if (isOther(asked.teamId, teamId)) return invalid('teamId', 'is not the team of the key');
  if (isOther(asked.userId, userId)) return invalid('userId', 'is not the user of the key');
  return { apiKeyId, teamId, userId };
}
