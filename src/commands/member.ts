// `tollgate member`: who belongs to an organization or one of its teams, and in which role.

import { ROLES, type Role } from '../domain/identity/roles.ts';
import { addMember, findMemberByEmail, listMembers, type MemberScope, removeMember, setMemberRole } from '../storage/postgres/identity/members.ts';
import { findTeamBySlug } from '../storage/postgres/identity/teams.ts';
import type { Postgres } from '../storage/postgres/pool.ts';
import { type Command, type CommandContext, expectPositionals, parseArguments, requireOption, UsageFault } from './command.ts';
import { withDatabase } from './database.ts';
import { commandActor, expectDone, findOrganization, listAll } from './identity.ts';

export const memberCommand: Command = {
  usage: [
    'tollgate member add --organization SLUG --user EMAIL [--role owner|admin|member] [--team SLUG]',
    'tollgate member remove --organization SLUG --user EMAIL [--team SLUG]',
    'tollgate member list --organization SLUG [--team SLUG]',
  ],
  summary: 'Adds somebody or gives them another role; removes them together with their keys there; or lists them.',
  run,
};

const OPTIONS = { organization: { type: 'string' }, team: { type: 'string' }, user: { type: 'string' }, role: { type: 'string' } } as const;

async function run(args: readonly string[], context: CommandContext): Promise<number> {
  const { values, positionals } = parseArguments(args, OPTIONS);
  const [action = ''] = expectPositionals(positionals, ['add, remove or list']);
  if (!['add', 'remove', 'list'].includes(action)) throw new UsageFault(`unknown action "${action}"`);
  const organization = requireOption(values.organization, 'organization');
  const email = action === 'list' ? '' : requireOption(values.user, 'user');
  const role = values.role ?? 'member';
  if (!isRole(role)) throw new UsageFault(`--role: must be one of ${ROLES.join(', ')}, got "${role}"`);
  await withDatabase(context.environment, async (postgres) => {
    const scope = await findScope(postgres, organization, values.team);
    if (action === 'list') return printMembers(postgres, scope, context);
    if (action === 'add') return add(postgres, scope, { email, role }, context);
    return remove(postgres, scope, email, context);
  });
  return 0;
}

async function findScope(postgres: Postgres, organization: string, team: string | undefined): Promise<MemberScope> {
  const { id: organizationId } = await findOrganization(postgres, organization);
  if (team === undefined) return { organizationId, teamId: null };
  const { id: teamId } = expectDone(await findTeamBySlug(postgres, { organizationId, slug: team }), `team "${team}" of "${organization}"`);
  return { organizationId, teamId };
}

async function printMembers(postgres: Postgres, scope: MemberScope, { print }: CommandContext): Promise<void> {
  for await (const { email, role } of listAll((question) => listMembers(postgres, { ...question, ...scope }), 'members')) print(`${email}\t${role}`);
}

async function add(
  postgres: Postgres,
  scope: MemberScope,
  { email, role }: { email: string; role: Role },
  { environment, print }: CommandContext,
): Promise<void> {
  const actor = commandActor(environment);
  const known = await findMemberByEmail(postgres, scope, email);
  const result =
    'refused' in known ? await addMember(postgres, actor, scope, { email, role }) : await setMemberRole(postgres, actor, scope, { userId: known.userId, role });
  const member = expectDone(result, `"${email}" in the organization`);
  print(`${member.email} is ${member.role}`);
}

async function remove(postgres: Postgres, scope: MemberScope, email: string, { environment, print }: CommandContext): Promise<void> {
  const what = `member "${email}"`;
  const { userId } = expectDone(await findMemberByEmail(postgres, scope, email), what);
  const { revokedKeys } = expectDone(await removeMember(postgres, commandActor(environment), scope, userId), what);
  print(`${email} is removed; keys revoked: ${revokedKeys}`);
}

function isRole(text: string): text is Role {
  return (ROLES as readonly string[]).includes(text);
}
