// What can have ceilings (usage limits, lists of models), and how a route's path names it.

import type { LimitScope } from '../../domain/identity/limit-scope.ts';
import type { ModelAccessScope } from '../../domain/identity/model-access.ts';
import { idOf } from './tenancy.ts';

export interface CeilingBearer<Scope extends LimitScope = LimitScope> {
  /** The part of an operation's id that names it, as in `getTeamLimits`. */
  readonly prefix: string;
  readonly words: string;
  readonly scope: (organizationId: string, ids: Readonly<Record<string, string>>) => Scope;
}

export const ORGANIZATION: CeilingBearer<ModelAccessScope> = {
  prefix: '',
  words: 'the organization',
  scope: (organizationId) => ({ kind: 'organization', organizationId }),
};
export const TEAM: CeilingBearer<ModelAccessScope> = {
  prefix: 'Team',
  words: 'the team',
  scope: (organizationId, ids) => ({ kind: 'team', organizationId, teamId: idOf(ids, 'teamId') }),
};
export const MEMBER: CeilingBearer = {
  prefix: 'Member',
  words: 'the member',
  scope: (organizationId, ids) => ({ kind: 'user', organizationId, userId: idOf(ids, 'userId') }),
};
export const KEY: CeilingBearer<ModelAccessScope> = {
  prefix: 'Key',
  words: 'the key',
  scope: (organizationId, ids) => ({ kind: 'key', organizationId, keyId: idOf(ids, 'keyId') }),
};
