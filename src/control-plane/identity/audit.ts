// The audit log: who changed what. An organization reads its own entries, the platform reads all of them.

import { z } from 'zod';
import type { AuditEntry } from '../../domain/identity/audit-entry.ts';
import { pageOf, pageOrRefused } from '../answers.ts';
import { type Operation, operation } from '../operation.ts';
import { pageQuery, showMoment, shownId, shownMoment } from './fields.ts';
import type { IdentityStore } from './identity-store.ts';
import { listOf, type Tenancy } from './tenancy.ts';

const shown = z
  .object({
    id: z.string(),
    at: shownMoment,
    organization_id: shownId.nullable(),
    actor: z.object({ kind: z.string(), user_id: shownId.nullable(), label: z.string() }),
    action: z.string(),
    target: z.object({ kind: z.string(), id: z.string() }),
    before: z.unknown(),
    after: z.unknown(),
  })
  .meta({ id: 'AuditEntry' });

function show({ id, atMs, organizationId, actor, action, target, before, after }: AuditEntry): z.output<typeof shown> {
  return {
    id,
    at: showMoment(atMs),
    organization_id: organizationId,
    actor: { kind: actor.kind, user_id: actor.userId, label: actor.label },
    action,
    target: { kind: target.kind, id: target.id },
    before: before ?? null,
    after: after ?? null,
  };
}

function auditOperation(store: IdentityStore, id: string, summary: string, ofTenant: Tenancy | null): Operation {
  return operation({
    id,
    summary,
    query: pageQuery,
    answer: pageOf(shown),
    run: async (input) => {
      const list = (organizationId: string | null) => store.listAudit({ ...input.query, organizationId });
      return pageOrRefused(await (ofTenant === null ? list(null) : listOf(store, ofTenant, input, list)), show);
    },
  });
}

export function listAudit(store: IdentityStore, tenancy: Tenancy): Operation {
  return auditOperation(
    store,
    `listAudit${tenancy.suffix}`,
    'Lists the changes to the organization, newest first.',
    tenancy,
  );
}

export function listPlatformAudit(store: IdentityStore): Operation {
  return auditOperation(
    store,
    'listPlatformAudit',
    'Lists the changes to every organization and to the platform, newest first.',
    null,
  );
}
