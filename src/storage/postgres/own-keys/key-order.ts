// Sets in which order the own keys of one kind are tried.

import type { Actor } from '../../../domain/identity/actor.ts';
import { areUuids } from '../../../domain/identity/names.ts';
import type { KeyOrder } from '../../../domain/own-keys/key-changes.ts';
import type { OwnKey } from '../../../domain/own-keys/own-key.ts';
import type { Refused } from '../../../domain/refusals/refused.ts';
import { notifyOwnKeysChanged } from '../changes.ts';
import { recordAudit } from '../identity/audit.ts';
import { change, invalid, NOT_FOUND } from '../identity/change.ts';
import type { Postgres } from '../pool.ts';
import { lockOrganization } from './byok-settings.ts';
import { listOwnKeys } from './list-own-keys.ts';

/** Every key of the kind must be named once, so that a key that somebody has just added is not placed by accident. */
export async function setKeyOrder(
  postgres: Postgres,
  actor: Actor,
  organizationId: string,
  { kind, before, after }: KeyOrder,
): Promise<readonly OwnKey[] | Refused> {
  if (!areUuids(organizationId)) return NOT_FOUND;
  return change(postgres, 'order', async (client) => {
    const refused = await lockOrganization(client, organizationId);
    if (refused !== null) return refused;
    const present = (await listOwnKeys(client, organizationId)).filter((key) => key.kind === kind);
    const named = [...before, ...after];
    const isWhole = named.length === present.length && present.every(({ id }) => named.includes(id));
    if (!isWhole) return invalid('before', 'and after must name each key of the kind once');
    await client.query(
      `UPDATE own_keys SET place = wanted.place, position = wanted.position
         FROM unnest($2::uuid[], $3::text[]) WITH ORDINALITY AS wanted (id, place, position)
        WHERE own_keys.organization_id = $1 AND own_keys.id = wanted.id`,
      [organizationId, named, named.map((_, at) => (at < before.length ? 'before' : 'after'))],
    );
    const target = { kind: 'byok', id: organizationId } as const;
    const shown = { kind, before: idsAt(present, 'before'), after: idsAt(present, 'after') };
    const changed = {
      organizationId,
      action: 'byok.order',
      target,
      before: shown,
      after: { kind, before, after },
    } as const;
    await recordAudit(client, actor, changed);
    await notifyOwnKeysChanged(client, organizationId);
    return listOwnKeys(client, organizationId);
  });
}

function idsAt(keys: readonly OwnKey[], place: OwnKey['place']): string[] {
  return keys.filter((key) => key.place === place).map(({ id }) => id);
}
