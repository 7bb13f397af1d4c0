// `tollgate member`: adds, removes and lists the members of an organization or of one of its teams, and sets their
// roles.

import type { MemberScope } from '../domain/identity/member.ts';
import { ROLES, type Role } from '../domain/identity/roles.ts';
import {
  addMember,
  findMemberByEmail,
  listMembers,
  removeMember,
  setMemberRole,
} from '../storage/postgres/identity/members.ts';
import type { Postgres } from '../storage/postgres/pool.ts';
import {
  type Command,
  type CommandContext,
  expectAction,
  type OptionValues,
  parseArguments,
  requireOption,
  UsageFault,
} from './command/command.ts';
import { withDatabase } from './command/database.ts';
import { commandActor, expectDone, findOrganization, findTeam, listAll } from './command/identity.ts';

export const memberCommand: Command = {
  usage: [
    'tollgate member add --organization SLUG --user EMAIL [--role owner|admin|member] [--team SLUG]',
    'tollgate member role --organization SLUG --user EMAIL --role owner|admin|member [--team SLUG]',
    'tollgate member remove --organization SLUG --user EMAIL [--team SLUG]',
    'tollgate member list --organization SLUG [--team SLUG]',
  ],
  summary:
    'Adds a member, or changes the role of an existing one; changes a role; removes a member together with their ' +
    'keys there; or lists the members.',
  run(args, context) {
    const { values, positionals } = parseArguments(args, MEMBER_OPTIONS);
    return runMember(values, positionals, context);
  },
};

export const MEMBER_OPTIONS = {
  organization: { type: 'string' },
  team: { type: 'string' },
  user: { type: 'string' },
  role: { type: 'string' },
} as const;

type Values = OptionValues<typeof MEMBER_OPTIONS>;

interface Order {
  readonly email: string;
  readonly role: Role;
}

/** Also runs `tollgate team member`. */
export async function runMember(
  values: Values,
  positionals: readonly string[],
  context: CommandContext,
): Promise<number> {
  const action = expectAction(positionals, ['add', 'role', 'remove', 'list']);
  const organization = requireOption(values.organization, 'organization');
  const email = action === 'list' ? '' : requireOption(values.user, 'user');
  const role = action === 'role' ? requireOption(values.role, 'role') : (values.role ?? 'member');
  if (!isRole(role)) throw new UsageFault(`--role: must be one of ${ROLES.join(', ')}, got "${role}"`);
  await withDatabase(context.environment, async (postgres) => {
    const scope = await findScope(postgres, organization, values.team);
    switch (action) {
      case 'list':
        return printMembers(postgres, scope, context);
      case 'add':
        return add(postgres, scope, { email, role }, context);
      case 'role':
        return setRole(postgres, scope, { email, role }, context);
      case 'remove':
        return remove(postgres, scope, email, context);
    }
  });
  return 0;
}

async function findScope(postgres: Postgres, slug: string, team: string | undefined): Promise<MemberScope> {
  const organization = await findOrganization(postgres, slug);
  return {
    organizationId: organization.id,
    teamId: team === undefined ? null : (await findTeam(postgres, organization, team)).id,
  };
}

async function printMembers(postgres: Postgres, scope: MemberScope, { print }: CommandContext): Promise<void> {
  for await (const { email, role } of listAll((params) => listMembers(postgres, { ...params, ...scope }), 'members'))
    print(`${email}\t${role}`);
}

async function add(postgres: Postgres, scope: MemberScope, params: Order, context: CommandContext): Promise<void> {
  const known = await findMemberByEmail(postgres, scope, params.email);
  if (!('refused' in known)) return setRole(postgres, scope, params, context);
  const what =
    scope.teamId === null ? `"${params.email}" in the organization` : `member "${params.email}" of the organization`;
  const added = expectDone(await addMember(postgres, commandActor(context.environment), scope, params), what);
  context.print(`${added.email} is ${added.role}`);
}

async function setRole(
  postgres: Postgres,
  scope: MemberScope,
  { email, role }: Order,
  { environment, print }: CommandContext,
): Promise<void> {
  const what = `member "${email}"`;
  const { userId } = expectDone(await findMemberByEmail(postgres, scope, email), what);
  const member = expectDone(await setMemberRole(postgres, commandActor(environment), scope, { userId, role }), what);
  print(`${member.email} is ${member.role}`);
}

async function remove(
  postgres: Postgres,
  scope: MemberScope,
  email: string,
  { environment, print }: CommandContext,
): Promise<void> {
  const what = `member "${email}"`;
  const { userId } = expectDone(await findMemberByEmail(postgres, scope, email), what);
  const { revokedKeys } = expectDone(await removeMember(postgres, commandActor(environment), scope, userId), what);
  print(`${email} is removed; keys revoked: ${revokedKeys}`);
}

function isRole(text: string): text is Role {
  return (ROLES as readonly string[]).includes(text);
}
