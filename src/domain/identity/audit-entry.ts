// One entry of the audit log: who did what to which target, from what to what.

import type { Actor } from './actor.ts';

/** `<kind of target>.<what was done>`. */
export type AuditAction =
  | `organization.${'create' | 'update'}`
  | `team.${'create' | 'update' | 'delete'}`
  | `member.${'add' | 'role' | 'remove'}`
  | `key.${'create' | 'update' | 'revoke' | 'rotate'}`
  | `token.${'create' | 'revoke' | 'active_organization'}`
  | `session.${'open' | 'end'}`
  | 'sign_in_link.create'
  | `model_access.set`
  | `limits.replace`
  | `platform_administrator.${'add' | 'remove'}`
  | 'organization.routing'
  | 'organization.guardrails'
  | `guardrail_policy.${'put' | 'remove'}`
  | `${'provider' | 'model' | 'routing_policy'}.${'put' | 'remove'}`
  | `wallet.${'deposit' | 'freeze' | 'unfreeze'}`
  | `webhook.${'set' | 'remove' | 'rotate_secret' | 'redeliver'}`
  | `own_key.${'create' | 'update' | 'remove' | 'rotate' | 'state'}`
  | `byok.${'grant' | 'settings' | 'order'}`
  | `own_model_price.${'put' | 'remove'}`
  | 'media.remove'
  | 'epoch.abandon'
  | 'job.run'
  | 'configuration.apply';

export interface AuditTarget {
  readonly kind:
    | 'organization'
    | 'team'
    | 'user'
    | 'key'
    | 'token'
    | 'provider'
    | 'model'
    | 'routing_policy'
    | 'guardrail_policy'
    | 'wallet'
    | 'webhook'
    | 'own_key'
    | 'byok'
    | 'own_model_price'
    | 'media'
    | 'epoch'
    | 'job';
  readonly id: string;
}

export interface AuditEntry {
  readonly id: string;
  readonly atMs: number;
  /** null: the change concerns no single organization. */
  readonly organizationId: string | null;
  readonly actor: Actor;
  readonly action: AuditAction;
  readonly target: AuditTarget;
  readonly before: unknown;
  readonly after: unknown;
}
