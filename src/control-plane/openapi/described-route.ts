// What one row of the route table says about itself to readers: its plane, who may call it, and what goes in and out.

import type { Permission } from '../../domain/identity/roles.ts';
import type { Route } from '../../http/route.ts';
import type { OperationDescription } from '../operation.ts';

/** data: generation. control: what exists and what happened. process: this process itself, without a credential. */
export type Plane = 'data' | 'control' | 'process';

/**
 * What a credential must stand for before its permission is checked.
 * - none: any credential will do.
 * - person: an access token, so that a leaked inference key cannot make further credentials.
 * - member: an access token that works in an active organization.
 * - organization: an active organization.
 * - key: an inference key; the request is for the key's organization.
 * - team: an active organization. The permission is needed there, or in the team that the path names.
 * - platform: nothing further, because the permission is the platform's own.
 */
export type Scope = 'none' | 'person' | 'member' | 'organization' | 'key' | 'team' | 'platform';

/** Who may call a route. */
export interface RouteAccess {
  /** null: every valid credential may call it; on the process plane no credential is needed. */
  readonly permission: Permission | null;
  readonly scope: Scope;
  /**
   * A session is looked up in Postgres, not in memory: its page asks in which organization it works, and that may just
   * have changed.
   */
  readonly looksUpSession?: true;
}

export interface DescribedRoute extends Route, RouteAccess {
  readonly plane: Plane;
  /**
   * A session of the console counts as a credential. Never on routes that relay, store or serve bytes of others, since
   * these share the console's origin.
   */
  readonly takesSession?: true;
  readonly description: OperationDescription;
}
