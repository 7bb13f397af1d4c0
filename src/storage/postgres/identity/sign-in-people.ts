// Signs people in who come from an OpenID provider: finds them by issuer and subject, and gives them the memberships of
// their groups. Memberships that people gave by hand stay, and so does the last owner. The audit log has every change
// under the provider's name.

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
 * - no_access: neither the person's groups nor anybody else gave the person access.
 * - email_taken: the address has an account that may be another person's, and the provider may not link by address.
 * - no_email: the provider sent no valid address.
 */
export type SignInProblem = 'no_access' | 'email_taken' | 'no_email';

export async function signInPerson(
  postgres: Postgres,
  provider: SignInProvider,
  person: SignedInPerson,
): Promise<SignedIn | { readonly problem: SignInProblem }> {
  const actor: Actor = { kind: 'cli', userId: null, label: `sign-in ${provider.id}` };
  const known = await findByIdentity(postgres, person);
  const hasGroupAccess =
    membershipsOf(provider, person.groups).length > 0 || isPlatformAdministrator(provider, person.groups);
  if (known === null && !hasGroupAccess && !provider.link_by_email) return { problem: 'no_access' };
  const found = known ?? (await adoptOnce(postgres, provider, person, hasGroupAccess));
  if (typeof found === 'object') return found;
  const email = await emailOf(postgres, found);
  const organizationId = await applyGroups(postgres, actor, provider, { userId: found, email, groups: person.groups });
  return (await hasAccess(postgres, found)) ? { userId: found, organizationId } : { problem: 'no_access' };
}

async function findByIdentity(postgres: PostgresClient, { issuer, subject }: SignedInPerson): Promise<string | null> {
  const { rows } = await postgres.query<{ user_id: string }>(
    'SELECT user_id FROM user_identities WHERE issuer = $1 AND subject = $2',
    [issuer, subject],
  );
  return rows[0]?.user_id ?? null;
}

/** Makes or links the account at the first sign-in. A second sign-in at the same time finds what the first one made. */
async function adoptOnce(
  postgres: Postgres,
  provider: SignInProvider,
  person: SignedInPerson,
  hasGroupAccess: boolean,
): Promise<string | { readonly problem: SignInProblem }> {
  const adopted = await change(postgres, 'email', async (client) => ({
    found: await adopt(client, provider, person, hasGroupAccess),
  }));
  const found = isRefused(adopted) ? ({ problem: 'email_taken' } as const) : adopted.found;
  if (typeof found !== 'object' || found.problem !== 'email_taken') return found;
  return (await findByIdentity(postgres, person)) ?? found;
}

/**
 * The first sign-in of a person. The person gets a new account, or one that nobody has used yet, or is linked to an
 * account by an address that the provider has verified and may link by. Returns the user's id.
 */
async function adopt(
  client: PostgresClient,
  { link_by_email }: SignInProvider,
  { issuer, subject, email, isEmailVerified }: SignedInPerson,
  hasGroupAccess: boolean,
): Promise<string | { readonly problem: SignInProblem }> {
  if (email === null || emailProblem(email) !== null) return { problem: 'no_email' };
  const present = await lockAccount(client, email);
  const isLinked = present !== null && link_by_email && isEmailVerified;
  if (present !== null && !isLinked && (await wasEverUsed(client, present))) return { problem: 'email_taken' };
  if (!isLinked && !hasGroupAccess) return { problem: 'no_access' };
  const userId = present ?? (await addNewAccount(client, email));
  await client.query('INSERT INTO user_identities (issuer, subject, user_id) VALUES ($1, $2, $3)', [
    issuer,
    subject,
    userId,
  ]);
  return userId;
}

/** Locks the account of an address. Until the transaction ends, nobody can add a row that refers to the account. */
async function lockAccount(client: PostgresClient, email: string): Promise<string | null> {
  const { rows } = await client.query<{ id: string }>(
    'SELECT id FROM users WHERE lower(email) = lower($1) FOR UPDATE',
    [email],
  );
  return rows[0]?.id ?? null;
}

/**
 * Whether an account shows any trace of a person. An organization can make an account by naming an address, and give
 * the account up before anybody has used it. Revoked and ended things are traces: keys have recorded use, a wallet has
 * a history, and only the audit log still knows deleted sessions. Limits on the address are no trace, and stay. The
 * audit log comes last, because searching it is slow.
 */
async function wasEverUsed(client: PostgresClient, userId: string): Promise<boolean> {
  const { rows } = await client.query<{ was_used: boolean }>(
    `SELECT EXISTS (SELECT FROM user_identities WHERE user_id = $1)
         OR EXISTS (SELECT FROM memberships WHERE user_id = $1)
         OR EXISTS (SELECT FROM platform_administrators WHERE user_id = $1)
         OR EXISTS (SELECT FROM access_tokens WHERE user_id = $1)
         OR EXISTS (SELECT FROM wallets WHERE user_id = $1)
         OR EXISTS (SELECT FROM api_keys WHERE user_id = $1)
         OR EXISTS (SELECT FROM audit_log WHERE actor_user_id = $1) AS was_used`,
    [userId],
  );
  return rows[0]?.was_used ?? true;
}

/** Fails with a unique violation if another transaction has just made the account. `adoptOnce` then looks again. */
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

interface PersonGroups {
  readonly userId: string;
  readonly email: string;
  readonly groups: readonly string[];
}

/** Gives and removes memberships so that they match the groups. Returns the first organization that the groups give. */
async function applyGroups(
  postgres: Postgres,
  actor: Actor,
  provider: SignInProvider,
  { userId, email, groups }: PersonGroups,
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
    // The grant of the last owner, who cannot be removed, stays until there is another owner. A grant without a
    // membership, which earlier versions could leave, is deleted.
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
