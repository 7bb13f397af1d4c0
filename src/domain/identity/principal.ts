// Who a credential stands for, once it is known to be good (spec 5; DESIGN 5).

import type { Role } from './roles.ts';
import type { SetBy } from './set-by.ts';

/** Permissions by name; roles grant them, routes require them. */
export type Permission =
  | 'inference'
  | 'usage.read'
  | 'team.usage.read'
  | 'org.usage.read'
  | 'org.admin'
  | 'platform.admin';

/** A ceiling on use that holds for a principal's requests, by itself or through its user, team or organization. */
export interface PrincipalLimit {
  /** Of the limit: what is taken under it is counted by this id, whoever takes it. */
  readonly id: string;
  readonly scope: 'organization' | 'team' | 'user' | 'key';
  readonly setBy: SetBy;
  readonly kind: 'requests_per_minute' | 'tokens_per_minute' | 'concurrent_requests' | 'budget';
  /** Of a budget: the calendar period in UTC; null for the other kinds. */
  readonly window: 'hour' | 'day' | 'week' | 'month' | null;
  /** Requests or tokens; pico-dollars of a budget. */
  readonly amount: bigint;
  /** Public id of the one model that it holds for; null: for all together. */
  readonly model: string | null;
}

export interface Principal {
  readonly credential: 'key' | 'token';
  /** The credential's id: the inference key's, or the access token's. */
  readonly apiKeyId: string;
  /** A key's own organization, a token's active one; null for a token that has none, or whose user has left it. */
  readonly organizationId: string | null;
  /** The key's team; null for tokens. */
  readonly teamId: string | null;
  /** null for the bootstrap administrator and for keys of nobody in particular. */
  readonly userId: string | null;
  /** The wallet that pays; null when the organization is not billed. */
  readonly walletId: string | null;
  /** A billed organization ("prepaid"): every request needs a bounded price and a hold. */
  readonly billed: boolean;
  /** In the organization. */
  readonly permissions: readonly Permission[];
  /** The user's role in teams of the organization, by team id; empty for keys. */
  readonly teamPermissions: ReadonlyMap<string, Role>;
  readonly platformAdmin: boolean;
  /** Public ids of the models that organization, team and key all allow; null: every model. */
  readonly allowedModels: ReadonlySet<string> | null;
  /** All that hold for a key's requests; empty for tokens, which generate nothing (permitInference). */
  readonly limits: readonly PrincipalLimit[];
  /** Epoch milliseconds after which the credential is refused; null for never. */
  readonly expiresAtMs: number | null;
}

/** A principal whose organization is resolved: what every route of an organization is handed. */
export interface ScopedPrincipal extends Principal {
  readonly organizationId: string;
}
