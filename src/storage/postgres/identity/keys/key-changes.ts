// The beginning and the end of every change of a key. At the beginning the key is locked, and the actor's right to
// change it is checked. At the end the change is written to the audit log, and gateways are notified.

import type { Actor } from '../../../../domain/identity/actor.ts';
import type { Key, KeyReference } from '../../../../domain/identity/api-key.ts';
import type { AuditAction } from '../../../../domain/identity/audit-entry.ts';
import { isRefused, type Refused } from '../../../../domain/refusals/refused.ts';
import { notifyPrincipalsChanged } from '../../changes.ts';
import type { PostgresClient } from '../../pool.ts';
import { recordAudit } from '../audit.ts';
import { conflict } from '../change.ts';
import { refuseKeyChange } from './key-payer.ts';
import { type FoundKey, findKey } from './key-rows.ts';

/** Returns the key and locks it until the end of the transaction. `conflict`: the key is revoked. */
export async function lockKeyToChange(
  client: PostgresClient,
  actor: Actor,
  reference: KeyReference,
): Promise<FoundKey | Refused> {
  const found = await findKey(client, reference, 'lock');
  if (isRefused(found)) return found;
  const refused = await refuseKeyChange(client, actor, reference, found.key);
  if (refused !== null) return refused;
  return found.key.revokedAtMs === null ? found : conflict('key', 'is revoked');
}

/**
 * The end of every change of a key: writes the audit entry and notifies the gateways. All secrets of a key have the
 * same principal, and its id invalidates them all.
 */
export async function recordKeyChange(
  client: PostgresClient,
  actor: Actor,
  action: AuditAction,
  reference: KeyReference,
  before: Key,
): Promise<Key | Refused> {
  const after = await findKey(client, reference);
  if (isRefused(after)) return after;
  await auditKey(client, actor, action, reference.organizationId, before, after.key);
  await notifyPrincipalsChanged(client, [reference.keyId]);
  return after.key;
}

export async function auditKey(
  client: PostgresClient,
  actor: Actor,
  action: AuditAction,
  organizationId: string,
  before: Key | null,
  after: Key,
): Promise<void> {
  await recordAudit(client, actor, { organizationId, action, target: { kind: 'key', id: after.id }, before, after });
}
