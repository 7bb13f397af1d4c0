// What one row of the route table says about itself to readers: its plane, who may call it, and what goes in and out.

import type { Permission } from '../../domain/identity/principal.ts';
import type { Route } from '../../http/route.ts';
import type { OperationDescription } from '../operation.ts';

/** data: generation. control: what exists and what happened. process: this process itself, without a credential. */
export type Plane = 'data' | 'control' | 'process';

/**
 * What a request must resolve before its permission is asked about.
 * none: a credential. person: an access token, so that a leaked inference key makes no credentials. member: such a
 * person in an active organization. organization: an active organization. key: an inference key, whose organization it
 * is. team: an active organization, and the permission there or in the team that the path names. platform: nothing; the
 * permission is the platform's own.
 */
export type Scope = 'none' | 'person' | 'member' | 'organization' | 'key' | 'team' | 'platform';

export interface DescribedRoute extends Route {
  readonly plane: Plane;
  /** null: any good credential; on the process plane, none at all. */
  readonly permission: Permission | null;
  readonly scope: Scope;
  readonly description: OperationDescription;
}
