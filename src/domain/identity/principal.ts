// The principal: whom a valid credential stands for, with all that the data plane needs to know of it (spec 5).

import type { BudgetWindow, LimitKind } from '../quotas/limit-kinds.ts';
import type { Permission, Role } from './roles.ts';
import type { SetBy } from './set-by.ts';

/** A usage limit that applies to a principal's requests: the key's own, or its user's, team's or organization's. */
export interface PrincipalLimit {
  /** The limit's id, under which the use of all principals that share it is counted. */
  readonly id: string;
  readonly scope: 'organization' | 'team' | 'user' | 'key';
  readonly setBy: SetBy;
  readonly kind: LimitKind;
  /** The calendar period of a budget in UTC; null for the other kinds. */
  readonly window: BudgetWindow | null;
  /** Requests or tokens; pico-dollars of a budget. */
  readonly amount: bigint;
  /** Public id of the only model that the limit counts; null: it counts all models together. */
  readonly model: string | null;
}

export interface Principal {
  /** session: an access token that a browser keeps in the console's cookie. */
  readonly credential: 'key' | 'token' | 'session';
  /** The credential's id: the inference key's, the access token's, or the session's. */
  readonly apiKeyId: string;
  /** A key's organization, or a token's active one; null for a token that has none, or whose user has left it. */
  readonly organizationId: string | null;
  /** The key's team; null for tokens. */
  readonly teamId: string | null;
  /** null for the bootstrap administrator and for keys without a user. */
  readonly userId: string | null;
  /** The wallet that pays; null when the organization is not billed. */
  readonly walletId: string | null;
  /** A billed organization ("prepaid"): every request needs a bounded price and a hold. */
  readonly billed: boolean;
  /** What the principal may do in its organization. */
  readonly permissions: readonly Permission[];
  /** The user's role in teams of the organization, by team id; empty for keys. */
  readonly teamPermissions: ReadonlyMap<string, Role>;
  readonly platformAdmin: boolean;
  /** Public ids of the models that the organization, the team and the key all allow; null: every model. */
  readonly allowedModels: ReadonlySet<string> | null;
  /** The organization has, or once had, provider keys of its own, which count in deciding who serves. */
  readonly hasOwnKeys: boolean;
  /** All limits that apply to a key's requests; empty for tokens, which cannot generate (permitInference). */
  readonly limits: readonly PrincipalLimit[];
  /** Epoch milliseconds after which the credential is refused; null for never. */
  readonly expiresAtMs: number | null;
}

/** A principal whose organization is resolved: routes of an organization receive this type. */
export interface ScopedPrincipal extends Principal {
  readonly organizationId: string;
}

export function isScoped(principal: Principal): principal is ScopedPrincipal {
  return principal.organizationId !== null;
}
