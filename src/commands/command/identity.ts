// Shared parts of the commands that read or change an organization: the actor of a change, how the organization and its
// teams, members and keys are found, and the text of a refusal.

import type { Environment } from '../../config.ts';
import type { Actor } from '../../domain/identity/actor.ts';
import type { Key } from '../../domain/identity/api-key.ts';
import type { Member } from '../../domain/identity/member.ts';
import type { Organization } from '../../domain/identity/organization.ts';
import type { Team } from '../../domain/identity/team.ts';
import type { Page, PageParams } from '../../domain/lists/page.ts';
import { isRefused, type Refused, snakeCase } from '../../domain/refusals/refused.ts';
import { StartFault } from '../../installation/start-fault.ts';
import { findKeyByNameOrId } from '../../storage/postgres/identity/keys/keys.ts';
import { findMemberByEmail } from '../../storage/postgres/identity/members.ts';
import { findOrganizationBySlug } from '../../storage/postgres/identity/organizations.ts';
import { findTeamBySlug } from '../../storage/postgres/identity/teams.ts';
import type { PostgresClient } from '../../storage/postgres/pool.ts';

/** The login of the user who runs the command, as far as the environment names it. */
export function commandActor(environment: Environment): Actor {
  const login = (environment['SUDO_USER'] ?? environment['USER'] ?? environment['LOGNAME'] ?? '').replace(
    /\P{L}/gu,
    (character) => (/[\w.-]/.test(character) ? character : '_'),
  );
  return { kind: 'cli', userId: null, label: login === '' ? 'command line' : `command line: ${login.slice(0, 64)}` };
}

/** Returns the result, or throws a StartFault that names `what`. */
export function expectDone<T>(result: T | Refused, what: string): T {
  if (!isRefused(result)) return result as T;
  throw new StartFault(explain(result, what));
}

export async function findOrganization(postgres: PostgresClient, slug: string): Promise<Organization> {
  return expectDone(await findOrganizationBySlug(postgres, slug), `organization "${slug}"`);
}

export async function findTeam(postgres: PostgresClient, { id, slug }: Organization, team: string): Promise<Team> {
  return expectDone(await findTeamBySlug(postgres, { organizationId: id, slug: team }), `team "${team}" of "${slug}"`);
}

export async function findMember(postgres: PostgresClient, { id, slug }: Organization, email: string): Promise<Member> {
  return expectDone(
    await findMemberByEmail(postgres, { organizationId: id, teamId: null }, email),
    `member "${email}" of "${slug}"`,
  );
}

/** Finds a key by its name; a key that its user pays for has only its id. */
export async function findKey(postgres: PostgresClient, { id, slug }: Organization, key: string): Promise<Key> {
  return expectDone(await findKeyByNameOrId(postgres, { organizationId: id, key }), `key "${key}" of "${slug}"`);
}

/** Every item of a listing, page by page. */
export async function* listAll<T>(
  list: (params: PageParams) => Promise<Page<T> | Refused>,
  what: string,
): AsyncGenerator<T> {
  let cursor: string | null = null;
  do {
    const page: Page<T> = expectDone(await list({ cursor, limit: 200 }), what);
    yield* page.items;
    cursor = page.nextCursor;
  } while (cursor !== null);
}

function explain({ refused, field, reason }: Refused, what: string): string {
  switch (refused) {
    case 'not_found':
      return `there is no ${what}`;
    case 'owner_floor':
      return `${what}: the last owner stays; make another owner first`;
    case 'permission_denied':
      return `${what}: ${reason ?? 'not permitted'}`;
    case 'conflict':
    case 'invalid':
      return `${what}: ${field === undefined ? '' : `${snakeCase(field)} `}${reason ?? 'cannot be changed so'}`;
    case 'byok_disabled':
      return `${what}: the organization may not use provider keys of its own`;
    case 'byok_kind_not_allowed':
      return `${what}: the organization may not use a key of its own for this kind of provider`;
    case 'byok_encryption_unconfigured':
      return `${what}: the master key under which it is stored is not known`;
  }
}
