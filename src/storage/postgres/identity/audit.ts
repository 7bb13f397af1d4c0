// The audit log: who changed what, from what to what. Append-only, and never with a secret.

import type { Actor } from '../../../domain/identity/actor.ts';
import type { PostgresClient } from '../pool.ts';
import type { Refused } from './change.ts';
import type { Page, PageQuestion } from './page.ts';

/** `<kind of target>.<what was done>`. */
export type AuditAction =
  | `organization.${'create' | 'update'}`
  | `team.${'create' | 'update' | 'delete'}`
  | `member.${'add' | 'role' | 'remove'}`
  | `key.${'create' | 'update' | 'revoke' | 'rotate'}`
  | `token.${'create' | 'revoke' | 'active_organization'}`
  | `model_access.set`
  | `limits.replace`
  | `platform_administrator.${'add' | 'remove'}`;

export interface AuditEntry {
  readonly id: string;
  readonly atMs: number;
  /** null: about no single organization. */
  readonly organizationId: string | null;
  readonly actor: Actor;
  readonly action: AuditAction;
  readonly target: { readonly kind: string; readonly id: string };
  readonly before: unknown;
  readonly after: unknown;
}

/** Newest first. `organizationId` null: every organization's, and the platform's own (platform administrators). */
export async function listAudit(_postgres: PostgresClient, _question: PageQuestion & { organizationId: string | null }): Promise<Page<AuditEntry> | Refused> {
  throw new Error('follows');
}
