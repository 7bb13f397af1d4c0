// People who sign in by an OpenID provider: found by issuer and subject, and given the memberships of their groups.
// What people gave by hand stays, the last owner stays, and every change is in the audit log under the provider's name.

import type { Actor } from '../../../domain/identity/actor.ts';
import type { MemberScope } from '../../../domain/identity/member.ts';
import { emailProblem } from '../../../domain/identity/names.ts';
import {
  isPlatformAdministrator,
  membershipsOf,
  type SignedIn,
  type SignedInPerson,
  type SignInProvider,
} from '../../../domain/identity/sign-in-provider.ts';
import { isRefused } from '../../../domain/refusals/refused.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import { change } from './change.ts';
import { addMember, removeMember, setMemberRole } from './members.ts';
import { findOrganizationBySlug } from './organizations.ts';
import { addPlatformAdministrator, removePlatformAdministrator } from './platform-administrators.ts';
import { forgetGrants, Grants } from './sign-in-grants.ts';
import { findTeamBySlug } from './teams.ts';

/**
 * - no_access: none of the person's groups gives anything, and nobody else did.
 * - email_taken: the address has an account that may be another person's, and the provider may not link by it.
 * - no_email: the provider names no address that could be theirs.
 */
export type SignInProblem = 'no_access' | 'email_taken' | 'no_email';

export async function signInPerson(
  postgres: Postgres,
  provider: SignInProvider,
  person: SignedInPerson,
): Promise<SignedIn | { readonly problem: SignInProblem }> {
  const actor: Actor = { kind: 'cli', userId: null, label: `sign-in ${provider.id}` };
  const known = await findByIdentity(postgres, person);
  const gives = membershipsOf(provider, person.groups).length > 0 || isPlatformAdministrator(provider, person.groups);
  if (known === null && !gives && !provider.link_by_email) return { problem: 'no_access' };
  const found = known ?? (await adoptOnce(postgres, provider, person, gives));
  if (typeof found === 'object') return found;
  const email = await emailOf(postgres, found);
  const organizationId = await followGroups(postgres, actor, provider, { userId: found, email, groups: person.groups });
  return (await hasAccess(postgres, found)) ? { userId: found, organizationId } : { problem: 'no_access' };
}

async function findByIdentity(postgres: PostgresClient, { issuer, subject }: SignedInPerson): Promise<string | null> {
  const { rows } = await postgres.query<{ user_id: string }>(
    'SELECT user_id FROM user_identities WHERE issuer = $1 AND subject = $2',
    [issuer, subject],
  );
  return rows[0]?.user_id ?? null;
}

/** Of two first sign-ins of a person at the same time, the second finds what the first one made. */
async function adoptOnce(
  postgres: Postgres,
  provider: SignInProvider,
  person: SignedInPerson,
  gives: boolean,
): Promise<string | { readonly problem: SignInProblem }> {
  const adopted = await change(postgres, 'email', async (client) => ({
    found: await adopt(client, provider, person, gives),
  }));
  const found = isRefused(adopted) ? ({ problem: 'email_taken' } as const) : adopted.found;
  if (typeof found !== 'object' || found.problem !== 'email_taken') return found;
  return (await findByIdentity(postgres, person)) ?? found;
}

/**
 * The first sign-in: of a person who is new, or whom the provider may link by an address that it has verified. Whoever
 * finds an account that is nobody's yet is as new as who finds none.
 */
async function adopt(
  client: PostgresClient,
  { link_by_email }: SignInProvider,
  { issuer, subject, email, isEmailVerified }: SignedInPerson,
  gives: boolean,
): Promise<string | { readonly problem: SignInProblem }> {
  if (email === null || emailProblem(email) !== null) return { problem: 'no_email' };
  const present = await lockAccount(client, email);
  const isLinked = present !== null && link_by_email && isEmailVerified;
  if (present !== null && !isLinked && (await isSomebodys(client, present))) return { problem: 'email_taken' };
  if (!isLinked && !gives) return { problem: 'no_access' };
  const userId = present ?? (await addNewAccount(client, email));
  await client.query('INSERT INTO user_identities (issuer, subject, user_id) VALUES ($1, $2, $3)', [
    issuer,
    subject,
    userId,
  ]);
  return userId;
}

/** Until the transaction ends nothing comes to be the account's: every row that names it waits for this lock. */
async function lockAccount(client: PostgresClient, email: string): Promise<string | null> {
  const { rows } = await client.query<{ id: string }>(
    'SELECT id FROM users WHERE lower(email) = lower($1) FOR UPDATE',
    [email],
  );
  return rows[0]?.id ?? null;
}

/**
 * False for an account that an organization made by naming an address, and gave up again before anybody used it. Any
 * trace of a person counts, also what is revoked or over: use stands under the account's name with its keys, a wallet
 * has a history, and of sessions that are forgotten the audit log alone knows. What is set on the address (limits) is
 * none, and goes on. In this order: only what has nothing else is looked for in the audit log.
 */
async function isSomebodys(client: PostgresClient, userId: string): Promise<boolean> {
  const { rows } = await client.query<{ is_somebodys: boolean }>(
    `SELECT EXISTS (SELECT FROM user_identities WHERE user_id = $1)
         OR EXISTS (SELECT FROM memberships WHERE user_id = $1)
         OR EXISTS (SELECT FROM platform_administrators WHERE user_id = $1)
         OR EXISTS (SELECT FROM access_tokens WHERE user_id = $1)
         OR EXISTS (SELECT FROM wallets WHERE user_id = $1)
         OR EXISTS (SELECT FROM api_keys WHERE user_id = $1)
         OR EXISTS (SELECT FROM audit_log WHERE actor_user_id = $1) AS is_somebodys`,
    [userId],
  );
  return rows[0]?.is_somebodys ?? true;
}

/** Fails where somebody else has just made it: whose it is has to be asked again. */
async function addNewAccount(client: PostgresClient, email: string): Promise<string> {
  const { rows } = await client.query<{ id: string }>('INSERT INTO users (email) VALUES (lower($1)) RETURNING id', [
    email,
  ]);
  return rows[0]?.id ?? '';
}

async function emailOf(postgres: PostgresClient, userId: string): Promise<string> {
  const { rows } = await postgres.query<{ email: string }>('SELECT email FROM users WHERE id = $1', [userId]);
  return rows[0]?.email ?? '';
}

async function hasAccess(postgres: PostgresClient, userId: string): Promise<boolean> {
  const { rowCount } = await postgres.query(
    `SELECT FROM memberships WHERE user_id = $1 UNION ALL SELECT FROM platform_administrators WHERE user_id = $1`,
    [userId],
  );
  return rowCount > 0;
}

interface Following {
  readonly userId: string;
  readonly email: string;
  readonly groups: readonly string[];
}

/** Returns the first organization that the groups give. */
async function followGroups(
  postgres: Postgres,
  actor: Actor,
  provider: SignInProvider,
  { userId, email, groups }: Following,
): Promise<string | null> {
  const grants = new Grants(postgres, provider.id, userId);
  const kept = new Set<string>();
  let first: string | null = null;
  for (const { organization, team, role } of membershipsOf(provider, groups)) {
    const scope = await findScope(postgres, organization, team);
    if (scope === null) continue;
    kept.add(nameOf(scope));
    first ??= scope.organizationId;
    const added = await addMember(postgres, actor, scope, { email, role });
    if (!isRefused(added)) await grants.add(scope);
    else if (await grants.has(scope)) await setMemberRole(postgres, actor, scope, { userId, role });
  }
  for (const scope of await grants.list()) {
    if (kept.has(nameOf(scope))) continue;
    const removed = await removeMember(postgres, actor, scope, userId);
    // The last owner stays until there is another. Earlier versions left the grant of a membership that is gone.
    if (isRefused(removed) && removed.refused === 'not_found') await forgetGrants(postgres, userId, scope);
  }
  if (isPlatformAdministrator(provider, groups)) {
    if (!isRefused(await addPlatformAdministrator(postgres, actor, email))) await grants.add(null);
  } else if (await grants.has(null)) {
    const removed = await removePlatformAdministrator(postgres, actor, userId);
    if (isRefused(removed)) await forgetGrants(postgres, userId, null);
  }
  return first;
}

async function findScope(
  postgres: PostgresClient,
  organization: string,
  team: string | null,
): Promise<MemberScope | null> {
  const found = await findOrganizationBySlug(postgres, organization);
  if (isRefused(found)) return null;
  if (team === null) return { organizationId: found.id, teamId: null };
  const inside = await findTeamBySlug(postgres, { organizationId: found.id, slug: team });
  return isRefused(inside) ? null : { organizationId: found.id, teamId: inside.id };
}

function nameOf({ organizationId, teamId }: MemberScope): string {
  return `${organizationId} ${teamId ?? ''}`;
}
