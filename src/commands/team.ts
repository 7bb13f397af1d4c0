// `tollgate team`: creates, renames, deletes and lists the teams of an organization, and manages their members.

import { createTeam, deleteTeam, listTeams, updateTeam } from '../storage/postgres/identity/teams.ts';
import {
  type Command,
  type CommandContext,
  expectPositionals,
  type OptionValues,
  parseArguments,
  requireOption,
  takeAction,
  UsageFault,
} from './command/command.ts';
import { withDatabase } from './command/database.ts';
import { commandActor, expectDone, findOrganization, findTeam, listAll } from './command/identity.ts';
import { MEMBER_OPTIONS, runMember } from './member.ts';

export const teamCommand: Command = {
  usage: [
    'tollgate team create --organization SLUG --slug SLUG [--name TEXT]',
    'tollgate team rename --organization SLUG --team SLUG [--slug SLUG] [--name TEXT]',
    'tollgate team delete --organization SLUG --team SLUG',
    'tollgate team list --organization SLUG',
    'tollgate team member add|role --organization SLUG --team SLUG --user EMAIL [--role owner|admin|member]',
    'tollgate team member remove --organization SLUG --team SLUG --user EMAIL',
    'tollgate team member list --organization SLUG --team SLUG',
  ],
  summary:
    'Makes a team and prints its id; renames it; deletes it once its keys are revoked; lists the teams; or does ' +
    'with its members what "tollgate member" does.',
  run,
};

const OPTIONS = { ...MEMBER_OPTIONS, slug: { type: 'string' }, name: { type: 'string' } } as const;

type Values = OptionValues<typeof OPTIONS>;

async function run(args: readonly string[], context: CommandContext): Promise<number> {
  const { values, positionals } = parseArguments(args, OPTIONS);
  const [action, others] = takeAction(positionals, ['create', 'rename', 'delete', 'list', 'member']);
  if (action === 'member') {
    requireOption(values.team, 'team');
    return runMember(values, others, context);
  }
  expectPositionals(others, []);
  const organization = requireOption(values.organization, 'organization');
  switch (action) {
    case 'create':
      return create(values, organization, context);
    case 'rename':
      return rename(values, organization, context);
    case 'delete':
      return remove(requireOption(values.team, 'team'), organization, context);
    case 'list':
      return list(organization, context);
  }
}

async function create(
  { slug: given, name }: Values,
  organization: string,
  { environment, print }: CommandContext,
): Promise<number> {
  const slug = requireOption(given, 'slug');
  const made = await withDatabase(environment, async (postgres) => {
    const { id: organizationId } = await findOrganization(postgres, organization);
    const params = { organizationId, slug, displayName: name };
    return expectDone(
      await createTeam(postgres, commandActor(environment), params),
      `team "${slug}" of "${organization}"`,
    );
  });
  print(made.id);
  return 0;
}

async function rename(
  { team: given, slug, name }: Values,
  organization: string,
  { environment, print }: CommandContext,
): Promise<number> {
  const team = requireOption(given, 'team');
  if (slug === undefined && name === undefined) throw new UsageFault('nothing to change: give --slug or --name');
  const after = await withDatabase(environment, async (postgres) => {
    const tenant = await findOrganization(postgres, organization);
    const { id: teamId } = await findTeam(postgres, tenant, team);
    const named = { organizationId: tenant.id, teamId };
    return expectDone(
      await updateTeam(postgres, commandActor(environment), named, { slug, displayName: name }),
      `team "${team}" of "${organization}"`,
    );
  });
  print(`${after.slug}\t${after.displayName}`);
  return 0;
}

async function remove(team: string, organization: string, { environment, print }: CommandContext): Promise<number> {
  const what = `team "${team}" of "${organization}"`;
  await withDatabase(environment, async (postgres) => {
    const tenant = await findOrganization(postgres, organization);
    const { id: teamId } = await findTeam(postgres, tenant, team);
    expectDone(await deleteTeam(postgres, commandActor(environment), { organizationId: tenant.id, teamId }), what);
  });
  print(`${what} is deleted`);
  return 0;
}

async function list(organization: string, { environment, print }: CommandContext): Promise<number> {
  await withDatabase(environment, async (postgres) => {
    const { id: organizationId } = await findOrganization(postgres, organization);
    const all = listAll((params) => listTeams(postgres, { ...params, organizationId }), 'teams');
    for await (const { slug, displayName } of all) print(`${slug}\t${displayName}`);
  });
  return 0;
}
