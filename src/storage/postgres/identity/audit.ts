// The audit log: who changed what, with the state before and after. It is append-only and never contains a secret.

import type { Actor } from '../../../domain/identity/actor.ts';
import type { AuditAction, AuditEntry, AuditTarget } from '../../../domain/identity/audit-entry.ts';
import type { Page, PageParams } from '../../../domain/lists/page.ts';
import type { Refused } from '../../../domain/refusals/refused.ts';
import type { PostgresClient } from '../pool.ts';
import { PAGE_COLUMNS, readPage } from './page.ts';

/** A change with the target's plain data before and after; absent: it did not exist. Amounts are decimal dollars. */
export interface AuditedChange {
  readonly organizationId: string | null;
  readonly action: AuditAction;
  readonly target: AuditTarget;
  readonly before?: unknown;
  readonly after?: unknown;
}

/** Must run in the transaction of the change itself, so that neither exists without the other. */
export async function recordAudit(
  client: PostgresClient,
  actor: Actor,
  { organizationId, action, target, before, after }: AuditedChange,
): Promise<void> {
  await client.query(
    `INSERT INTO audit_log (organization_id, actor_kind, actor_user_id, actor_label, action, target_kind, target_id,
      before, after)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [
      organizationId,
      actor.kind,
      actor.userId,
      actor.label,
      action,
      target.kind,
      target.id,
      toJson(before),
      toJson(after),
    ],
  );
}

function toJson(value: unknown): string | null {
  return value === undefined || value === null ? null : JSON.stringify(value);
}

interface AuditRow {
  readonly id: string;
  readonly created_us: string;
  readonly organization_id: string | null;
  readonly actor_kind: Actor['kind'];
  readonly actor_user_id: string | null;
  readonly actor_label: string;
  readonly action: AuditAction;
  readonly target_kind: AuditTarget['kind'];
  readonly target_id: string;
  readonly before: unknown;
  readonly after: unknown;
}

const LIST_AUDIT = {
  name: 'list_audit',
  text: `SELECT ${PAGE_COLUMNS}, t.organization_id, t.actor_kind, t.actor_user_id, t.actor_label, t.action,
    t.target_kind, t.target_id, t.before, t.after
           FROM audit_log t
          WHERE ($1::bigint IS NULL OR (t.created_at, t.id) <
            (timestamptz 'epoch' + $1::bigint * interval '1 microsecond', $2::uuid))
            AND ($4::uuid IS NULL OR t.organization_id = $4)
          ORDER BY t.created_at DESC, t.id DESC LIMIT $3`,
};

/**
 * Newest first. `organizationId` null: entries of every organization and of the platform (for platform administrators).
 */
export async function listAudit(
  postgres: PostgresClient,
  params: PageParams & { organizationId: string | null },
): Promise<Page<AuditEntry> | Refused> {
  return readPage(postgres, params, LIST_AUDIT, [params.organizationId], toEntry, 'newest first');
}

function toEntry(row: AuditRow): AuditEntry {
  return {
    id: row.id,
    atMs: Number(row.created_us) / 1000,
    organizationId: row.organization_id,
    actor: { kind: row.actor_kind, userId: row.actor_user_id, label: row.actor_label },
    action: row.action,
    target: { kind: row.target_kind, id: row.target_id },
    before: row.before,
    after: row.after,
  };
}
