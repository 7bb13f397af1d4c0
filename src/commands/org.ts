// `tollgate org`: makes and lists organizations.

import { createOrganization, listOrganizations } from '../storage/postgres/identity/organizations.ts';
import { type Command, type CommandContext, expectPositionals, parseArguments, requireOption, UsageFault } from './command.ts';
import { withDatabase } from './database.ts';
import { commandActor, expectDone, listAll } from './identity.ts';

export const orgCommand: Command = {
  usage: ['tollgate org create --slug SLUG [--name TEXT] [--billing prepaid|none] [--owner EMAIL]', 'tollgate org list'],
  summary: 'Makes an organization with its wallet and, if named, its first owner; or lists all of them.',
  run,
};

const OPTIONS = { slug: { type: 'string' }, name: { type: 'string' }, billing: { type: 'string' }, owner: { type: 'string' } } as const;

async function run(args: readonly string[], { environment, print }: CommandContext): Promise<number> {
  const { values, positionals } = parseArguments(args, OPTIONS);
  const [action] = expectPositionals(positionals, ['create or list']);
  if (action === 'list') {
    await withDatabase(environment, async (postgres) => {
      const all = listAll((question) => listOrganizations(postgres, question), 'organizations');
      for await (const { slug, billing, frozen, displayName } of all) print([slug, billing, frozen ? 'frozen' : 'open', displayName].join('\t'));
    });
    return 0;
  }
  if (action !== 'create') throw new UsageFault(`unknown action "${action}"`);
  const slug = requireOption(values.slug, 'slug');
  const billing = values.billing ?? 'prepaid';
  if (billing !== 'prepaid' && billing !== 'none') throw new UsageFault(`--billing: must be prepaid or none, got "${billing}"`);
  const order = { slug, displayName: values.name, billing, ownerEmail: values.owner } as const;
  const made = await withDatabase(environment, async (postgres) =>
    expectDone(await createOrganization(postgres, commandActor(environment), order), `organization "${slug}"`),
  );
  print(made.id);
  return 0;
}
