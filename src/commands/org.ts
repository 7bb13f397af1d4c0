// `tollgate org`: creates, changes and lists organizations.

import type { Organization } from '../domain/identity/organization.ts';
import {
  createOrganization,
  listOrganizations,
  updateOrganization,
} from '../storage/postgres/identity/organizations.ts';
import {
  type Command,
  type CommandContext,
  type OptionValues,
  requireOption,
  runAction,
  UsageFault,
} from './command/command.ts';
import { withDatabase } from './command/database.ts';
import { commandActor, expectDone, findOrganization, listAll } from './command/identity.ts';

export const orgCommand: Command = {
  usage: [
    'tollgate org create --slug SLUG [--name TEXT] [--billing prepaid|none] [--owner EMAIL]',
    'tollgate org update --slug SLUG [--name TEXT] [--billing prepaid|none] [--frozen yes|no]',
    'tollgate org list',
  ],
  summary:
    'Makes an organization with its wallet and, if named, its first owner; changes one, or freezes its credit; ' +
    'or lists all of them.',
  run: (args, context) => runAction(args, context, OPTIONS, { create, update, list }),
};

const OPTIONS = {
  slug: { type: 'string' },
  name: { type: 'string' },
  billing: { type: 'string' },
  owner: { type: 'string' },
  frozen: { type: 'string' },
} as const;

type Values = OptionValues<typeof OPTIONS>;

async function create(values: Values, { environment, print }: CommandContext): Promise<number> {
  const slug = requireOption(values.slug, 'slug');
  const params = {
    slug,
    displayName: values.name,
    billing: readBilling(values.billing) ?? 'prepaid',
    ownerEmail: values.owner,
  } as const;
  const made = await withDatabase(environment, async (postgres) =>
    expectDone(await createOrganization(postgres, commandActor(environment), params), `organization "${slug}"`),
  );
  print(made.id);
  return 0;
}

async function update(values: Values, { environment, print }: CommandContext): Promise<number> {
  const slug = requireOption(values.slug, 'slug');
  const { name, frozen } = values;
  if (frozen !== undefined && frozen !== 'yes' && frozen !== 'no')
    throw new UsageFault(`--frozen: must be yes or no, got "${frozen}"`);
  const change = {
    displayName: name,
    billing: readBilling(values.billing),
    frozen: frozen === undefined ? undefined : frozen === 'yes',
  };
  if (Object.values(change).every((value) => value === undefined))
    throw new UsageFault('nothing to change: give --name, --billing or --frozen');
  const after = await withDatabase(environment, async (postgres) => {
    const { id } = await findOrganization(postgres, slug);
    return expectDone(
      await updateOrganization(postgres, commandActor(environment), id, change),
      `organization "${slug}"`,
    );
  });
  printOrganization(after, print);
  return 0;
}

async function list(_: Values, { environment, print }: CommandContext): Promise<number> {
  await withDatabase(environment, async (postgres) => {
    const all = listAll((params) => listOrganizations(postgres, params), 'organizations');
    for await (const organization of all) printOrganization(organization, print);
  });
  return 0;
}

function printOrganization(organization: Organization, print: CommandContext['print']): void {
  const { slug, billing, frozen, displayName, id } = organization;
  print([slug, billing, frozen ? 'frozen' : 'open', displayName, id].join('\t'));
}

function readBilling(text: string | undefined): Organization['billing'] | undefined {
  if (text !== undefined && text !== 'prepaid' && text !== 'none')
    throw new UsageFault(`--billing: must be prepaid or none, got "${text}"`);
  return text;
}
