// Finds the scope that a command concerns: an organization, or a team, member or key in it.

import type { LimitScope } from '../../domain/identity/limit-scope.ts';
import type { ModelAccessScope } from '../../domain/identity/model-access.ts';
import type { Postgres } from '../../storage/postgres/pool.ts';
import { type OptionValues, requireOption, UsageFault } from './command.ts';
import { findKey, findMember, findOrganization, findTeam } from './identity.ts';

export const SCOPE_OPTIONS = {
  organization: { type: 'string' },
  team: { type: 'string' },
  key: { type: 'string' },
} as const;

type Values = OptionValues<typeof SCOPE_OPTIONS>;

interface Found<Scope> {
  readonly scope: Scope;
  /** How messages name the scope. */
  readonly words: string;
}

export async function findScope(
  postgres: Postgres,
  { organization: given, team, key }: Values,
): Promise<Found<ModelAccessScope>> {
  const slug = requireOption(given, 'organization');
  if (team !== undefined && key !== undefined) throw new UsageFault('--team and --key: only one of them');
  const organization = await findOrganization(postgres, slug);
  const { id: organizationId } = organization;
  if (team !== undefined) {
    return {
      scope: { kind: 'team', organizationId, teamId: (await findTeam(postgres, organization, team)).id },
      words: `team "${team}" of "${slug}"`,
    };
  }
  if (key !== undefined) {
    return {
      scope: { kind: 'key', organizationId, keyId: (await findKey(postgres, organization, key)).id },
      words: `key "${key}" of "${slug}"`,
    };
  }
  return { scope: { kind: 'organization', organizationId }, words: `organization "${slug}"` };
}

export async function findScopeOrMember(
  postgres: Postgres,
  values: Values & { readonly user?: string | undefined },
): Promise<Found<LimitScope>> {
  const { user } = values;
  if (user === undefined) return findScope(postgres, values);
  if (values.team !== undefined || values.key !== undefined)
    throw new UsageFault('--team, --user and --key: only one of them');
  const organization = await findOrganization(postgres, requireOption(values.organization, 'organization'));
  const { userId } = await findMember(postgres, organization, user);
  return {
    scope: { kind: 'user', organizationId: organization.id, userId },
    words: `member "${user}" of "${organization.slug}"`,
  };
}
