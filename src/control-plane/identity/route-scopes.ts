// The scopes that can have usage limits and lists of models, and how a route's path names each.

import type { LimitScope } from '../../domain/identity/limit-scope.ts';
import type { ModelAccessScope } from '../../domain/identity/model-access.ts';
import { idOf } from './tenancy.ts';

export interface RouteScope<Scope extends LimitScope = LimitScope> {
  /** The part of an operation's id that names it, as in `getTeamLimits`. */
  readonly prefix: string;
  readonly words: string;
  readonly of: (organizationId: string, ids: Readonly<Record<string, string>>) => Scope;
}

export const ORGANIZATION: RouteScope<ModelAccessScope> = {
  prefix: '',
  words: 'the organization',
  of: (organizationId) => ({ kind: 'organization', organizationId }),
};
export const TEAM: RouteScope<ModelAccessScope> = {
  prefix: 'Team',
  words: 'the team',
  of: (organizationId, ids) => ({ kind: 'team', organizationId, teamId: idOf(ids, 'teamId') }),
};
export const MEMBER: RouteScope = {
  prefix: 'Member',
  words: 'the member',
  of: (organizationId, ids) => ({ kind: 'user', organizationId, userId: idOf(ids, 'userId') }),
};
export const KEY: RouteScope<ModelAccessScope> = {
  prefix: 'Key',
  words: 'the key',
  of: (organizationId, ids) => ({ kind: 'key', organizationId, keyId: idOf(ids, 'keyId') }),
};
