// An OpenID provider by which people sign in to the console: its description in the sign-in file, and the memberships
// that its groups give.

import { z } from 'zod';
import { ROLES, type Role } from './roles.ts';

const slug = z.string().regex(/^[a-z0-9][a-z0-9_-]{0,62}$/, 'must be a name in small letters');

const provider = z.strictObject({
  id: slug,
  display_name: z.string().min(1).max(60).optional(),
  issuer: z.url('must be the URL of the issuer'),
  client_id: z.string().min(1),
  client_secret: z.string().min(1),
  scopes: z.string().default('openid email profile'),
  groups_claim: z.string().min(1).default('groups'),
  link_by_email: z.boolean().default(false),
  platform_administrators: z.array(z.string().min(1)).default([]),
  members: z
    .array(z.strictObject({ group: z.string().min(1), organization: slug, team: slug.optional(), role: z.enum(ROLES) }))
    .default([]),
});

export const signInFile = z
  .strictObject({ oidc: z.array(provider).max(10) })
  .refine(({ oidc }) => new Set(oidc.map(({ id }) => id)).size === oidc.length, 'must have each id once');

export type SignInProvider = z.output<typeof provider>;

/** A person as the provider names them, after its answer was checked. */
export interface SignedInPerson {
  readonly issuer: string;
  readonly subject: string;
  /** null: the provider named none, or one that is not an address. */
  readonly email: string | null;
  readonly isEmailVerified: boolean;
  readonly groups: readonly string[];
}

/** A person who may open a session. */
export interface SignedIn {
  readonly userId: string;
  /**
   * The organization that the session begins in: the first one that the groups give. Other memberships do not count,
   * since any organization's administrators can make a person a member, and may have done so before. null: the groups
   * give none.
   */
  readonly organizationId: string | null;
}

export interface GroupMembership {
  readonly organization: string;
  /** null: the organization itself. */
  readonly team: string | null;
  readonly role: Role;
}

/**
 * The memberships that groups give: the highest role in each place, organizations before their teams, and a team's
 * organization with it.
 */
export function membershipsOf({ members }: SignInProvider, groups: readonly string[]): readonly GroupMembership[] {
  const given = new Map<string, GroupMembership>();
  const give = (organization: string, team: string | null, role: Role): void => {
    const place = `${organization} ${team ?? ''}`;
    const present = given.get(place);
    if (present === undefined || ROLES.indexOf(role) < ROLES.indexOf(present.role))
      given.set(place, { organization, team, role });
  };
  for (const { group, organization, team = null, role } of members) {
    if (!groups.includes(group)) continue;
    give(organization, team, role);
    if (team !== null) give(organization, null, 'member');
  }
  return [...given.values()].toSorted((one, other) => Number(one.team !== null) - Number(other.team !== null));
}

export function isPlatformAdministrator(
  { platform_administrators }: SignInProvider,
  groups: readonly string[],
): boolean {
  return platform_administrators.some((group) => groups.includes(group));
}

/**
 * The groups in a provider's claims about a person: a list, or the name of the only group. Empty if the claims have no
 * groups. Throws if the claims say that the groups are elsewhere, as Entra ID does for a person with over 200: without
 * the throw, the person would lose everything that groups gave.
 */
export function groupsIn(
  claims: Readonly<Record<string, unknown>>,
  { groups_claim }: Pick<SignInProvider, 'groups_claim'>,
): readonly string[] {
  const groups = claims[groups_claim];
  if (typeof groups === 'string') return [groups];
  if (Array.isArray(groups)) return groups.filter((group) => typeof group === 'string');
  const elsewhere = claims['_claim_names'];
  if (typeof elsewhere === 'object' && elsewhere !== null && groups_claim in elsewhere)
    throw new Error(`the person has too many groups: the provider names them elsewhere than in ${groups_claim}`);
  return [];
}
