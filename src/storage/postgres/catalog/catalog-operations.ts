// THE table of operations on the catalog: how configuration files, commands and requests change providers, models,
// prices and routing policies. Each operation is one transaction with its audit entry and its notification.

import type { ConfiguredModel, ProviderChange } from '../../../domain/configuration/configuration.ts';
import type { CatalogKind, CatalogState } from '../../../domain/configuration/difference.ts';
import type { CatalogEntry } from '../../../domain/configuration/find-warnings.ts';
import type { Actor } from '../../../domain/identity/actor.ts';
import { isRefused, type Refused } from '../../../domain/refusals/refused.ts';
import type { PolicyDefinition } from '../../../domain/routing/policy-definition.ts';
import type { PolicyHistory } from '../../../domain/routing/stored-policy.ts';
import { conflict, contradicts, NOT_FOUND } from '../identity/change.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import { transactionOrRollback } from '../rollback.ts';
import { getPolicy, putPolicy, removePolicy } from '../routing/policies.ts';
import type { SecretBox } from '../secret-box.ts';
import { readCatalogState } from './catalog-states.ts';
import { readWarnings } from './catalog-warnings.ts';
import { changeCatalog } from './change-catalog.ts';
import { type PriceChange, putModels, putPrice, removeModel } from './model-changes.ts';
import { putProvider, removeProvider } from './provider-changes.ts';

interface Target {
  readonly kind: CatalogKind;
  readonly id: string;
}

/** null: the change is done. After a refusal the transaction must be rolled back, since writes may precede it. */
type Change = (client: PostgresClient) => Promise<Refused | null>;

/** The removals by kind. In this order, an entry is removed before the entries that it refers to. */
export const REMOVE: Readonly<Record<CatalogKind, (client: PostgresClient, id: string) => Promise<Refused | null>>> = {
  routing_policy: removePolicy,
  model: removeModel,
  provider: removeProvider,
};

/** `version`: the version that the change was made from; null: none was given. */
type Based = { readonly version: number | null };

export async function removeFromCatalog(
  postgres: Postgres,
  actor: Actor,
  { version, ...target }: Target & Based,
): Promise<{ readonly removed: true } | Refused> {
  const remove: Change = (client) => REMOVE[target.kind](client, target.id);
  const work = version === null ? remove : basedOn(target, version, remove);
  return changeOnce(postgres, actor, work, async () => ({ removed: true }));
}

export async function publishProvider(
  postgres: Postgres,
  { box }: { readonly box: SecretBox },
  actor: Actor,
  { provider, version }: { readonly provider: ProviderChange } & Based,
): Promise<CatalogEntry | Refused> {
  const target = { kind: 'provider', id: provider.id } as const;
  const put: Change = (client) => putProvider(client, box, provider);
  return changeOnce(postgres, actor, basedOn(target, version, put), (client) => readEntry(client, target));
}

export async function publishModel(
  postgres: Postgres,
  actor: Actor,
  { model, version }: { readonly model: ConfiguredModel } & Based,
): Promise<CatalogEntry | Refused> {
  const target = { kind: 'model', id: model.id } as const;
  const put: Change = (client) => putModels(client, [model]);
  return changeOnce(postgres, actor, basedOn(target, version, put), (client) => readEntry(client, target));
}

export async function publishPrice(
  postgres: Postgres,
  actor: Actor,
  { version, ...price }: PriceChange & Based,
): Promise<CatalogEntry | Refused> {
  const target = { kind: 'model', id: price.model } as const;
  const put: Change = async (client) =>
    (await readCatalogState(client, 'model', price.model)) === null ? NOT_FOUND : putPrice(client, price);
  return changeOnce(postgres, actor, basedOn(target, version, put), (client) => readEntry(client, target));
}

/** Every version of a policy is kept, so a change that names no version may overwrite the present one. */
export async function publishPolicy(
  postgres: Postgres,
  actor: Actor,
  { name, definition, version }: { readonly name: string; readonly definition: PolicyDefinition } & Based,
): Promise<PolicyHistory | Refused> {
  const put: Change = (client) => putPolicy(client, name, definition);
  const work = version === null ? put : basedOn({ kind: 'routing_policy', id: name }, version, put);
  return changeOnce(postgres, actor, work, (client) => getPolicy(client, name));
}

export async function getFromCatalog(client: PostgresClient, { kind, id }: Target): Promise<CatalogState | Refused> {
  return (await readCatalogState(client, kind, id)) ?? NOT_FOUND;
}

/** An existing entry is changed only from its present version, so that nobody overwrites another change unseen. */
function basedOn({ kind, id }: Target, version: number | null, work: Change): Change {
  return async (client) => {
    const present = await readCatalogState(client, kind, id);
    if (present === null) return version === null || version === 0 ? work(client) : contradicts('it does not exist');
    if (version === null) return conflict('version', `is needed: version ${present.version} exists`);
    if (version !== present.version) return conflict('version', `is not the present one, ${present.version}`);
    return work(client);
  };
}

/** Makes one change of the catalog in a transaction, and returns what `read` finds after it. */
async function changeOnce<T>(
  postgres: Postgres,
  actor: Actor,
  work: Change,
  read: (client: PostgresClient) => Promise<T | Refused>,
): Promise<T | Refused> {
  return transactionOrRollback<T | Refused>(postgres, async (client, rollBack) => {
    const { result } = await changeCatalog(client, actor, () => work(client));
    return isRefused(result) ? rollBack(result) : read(client);
  });
}

async function readEntry(client: PostgresClient, { kind, id }: Target): Promise<CatalogEntry | Refused> {
  const state = await readCatalogState(client, kind, id);
  return state === null ? NOT_FOUND : { state, warnings: await readWarnings(client, [state]) };
}
