// Writes the audit entries of own provider keys, without secrets.

import type { Actor } from '../../../domain/identity/actor.ts';
import type { AuditAction } from '../../../domain/identity/audit-entry.ts';
import type { OwnKey } from '../../../domain/own-keys/own-key.ts';
import { recordAudit } from '../identity/audit.ts';
import type { PostgresClient } from '../pool.ts';

export async function auditOwnKey(
  client: PostgresClient,
  actor: Actor,
  action: AuditAction,
  before: OwnKey | null,
  after: OwnKey | null,
): Promise<void> {
  const key = after ?? before;
  if (key === null) return;
  const [shownBefore, shownAfter] = [plain(before), plain(after)];
  // A verification that confirms the known state is not a change.
  if (action === 'own_key.state' && JSON.stringify(shownBefore) === JSON.stringify(shownAfter)) return;
  const target = { kind: 'own_key', id: key.id } as const;
  const change = { organizationId: key.organizationId, action, target, before: shownBefore, after: shownAfter };
  await recordAudit(client, actor, change);
}

function plain(key: OwnKey | null): object | undefined {
  if (key === null) return undefined;
  const { verifiedAtMs: _, lastUsedAtMs: __, organizationId: ___, ...shown } = key;
  return shown;
}
