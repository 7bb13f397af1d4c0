// THE table of operations on the catalog: what a configuration file, commands and requests do to providers, models and
// routing policies, each in one transaction with its audit entry and its notification.

import type { CatalogKind } from '../../../domain/configuration/difference.ts';
import type { Actor } from '../../../domain/identity/actor.ts';
import { isRefused, type Refused } from '../../../domain/refusals/refused.ts';
import type { PolicyDefinition } from '../../../domain/routing/policy-definition.ts';
import type { PolicyHistory } from '../../../domain/routing/stored-policy.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import { transactionOrRollback } from '../rollback.ts';
import { getPolicy, putPolicy, removePolicy } from '../routing/policies.ts';
import { changeCatalog } from './change-catalog.ts';
import { removeModel } from './model-changes.ts';
import { removeProvider } from './provider-changes.ts';

/** null: it is done. A refusal may come after a write. */
type Change = (client: PostgresClient) => Promise<Refused | null>;

/** In the order in which removals leave nothing that refers to what is gone. */
export const REMOVE: Readonly<Record<CatalogKind, (client: PostgresClient, id: string) => Promise<Refused | null>>> = {
  routing_policy: removePolicy,
  model: removeModel,
  provider: removeProvider,
};

export async function removeFromCatalog(
  postgres: Postgres,
  actor: Actor,
  { kind, id }: { readonly kind: CatalogKind; readonly id: string },
): Promise<{ readonly removed: true } | Refused> {
  return changeOnce(
    postgres,
    actor,
    (client) => REMOVE[kind](client, id),
    async () => ({ removed: true }),
  );
}

export async function publishPolicy(
  postgres: Postgres,
  actor: Actor,
  { name, definition }: { readonly name: string; readonly definition: PolicyDefinition },
): Promise<PolicyHistory | Refused> {
  return changeOnce(
    postgres,
    actor,
    (client) => putPolicy(client, name, definition),
    (client) => getPolicy(client, name),
  );
}

/** Makes one change of the catalog, and shows what `read` finds after it. */
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
