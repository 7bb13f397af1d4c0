// `tollgate key`: makes, rotates and revokes inference keys of a running installation.

import { createKey, findKeyByName, revokeKey } from '../storage/postgres/identity/keys.ts';
import { findMemberByEmail } from '../storage/postgres/identity/members.ts';
import { rotateKey } from '../storage/postgres/identity/rotate-key.ts';
import { findTeamBySlug } from '../storage/postgres/identity/teams.ts';
import { type Command, type CommandContext, expectPositionals, parseArguments, requireOption, UsageFault } from './command.ts';
import { withDatabase } from './database.ts';
import { commandActor, expectDone, findOrganization } from './identity.ts';

export const keyCommand: Command = {
  usage: [
    'tollgate key create --organization SLUG --name NAME [--team SLUG] [--user EMAIL] [--payer organization|user] [--models ID,ID] [--expires 2027-01-31]',
    'tollgate key rotate --organization SLUG --name NAME [--overlap SECONDS]',
    'tollgate key revoke --organization SLUG --name NAME',
  ],
  summary:
    'Makes an inference key and prints it, once; gives one a new secret, the old one good for the overlap (0); or revokes one, everywhere within a second.',
  run,
};

const OPTIONS = {
  organization: { type: 'string' },
  name: { type: 'string' },
  team: { type: 'string' },
  user: { type: 'string' },
  payer: { type: 'string' },
  models: { type: 'string' },
  expires: { type: 'string' },
  overlap: { type: 'string' },
} as const;

type Values = { readonly [option in keyof typeof OPTIONS]?: string | undefined };

async function run(args: readonly string[], context: CommandContext): Promise<number> {
  const { values, positionals } = parseArguments(args, OPTIONS);
  const [action] = expectPositionals(positionals, ['create, rotate or revoke']);
  const given: string = action ?? '';
  const organization = requireOption(values.organization, 'organization');
  const name = requireOption(values.name, 'name');
  switch (given) {
    case 'create':
      return create(values, { organization, name }, context);
    case 'rotate':
      return rotate(values, { organization, name }, context);
    case 'revoke':
      return revoke({ organization, name }, context);
    default:
      throw new UsageFault(`unknown action "${given}"`);
  }
}

interface Named {
  readonly organization: string;
  readonly name: string;
}

async function create(values: Values, { organization, name }: Named, { environment, print }: CommandContext): Promise<number> {
  const expiresAtMs = values.expires === undefined ? null : parseExpiry(values.expires);
  const payer = values.payer ?? 'organization';
  if (payer !== 'organization' && payer !== 'user') throw new UsageFault(`--payer: must be organization or user, got "${payer}"`);
  const allowedModels = values.models === undefined ? null : values.models.split(',').map((id) => id.trim());
  const made = await withDatabase(environment, async (postgres, config) => {
    const { id: organizationId } = await findOrganization(postgres, organization);
    const team =
      values.team === undefined
        ? null
        : expectDone(await findTeamBySlug(postgres, { organizationId, slug: values.team }), `team "${values.team}" of "${organization}"`);
    const user =
      values.user === undefined
        ? null
        : expectDone(await findMemberByEmail(postgres, { organizationId, teamId: null }, values.user), `member "${values.user}" of "${organization}"`);
    const order = { organizationId, name, teamId: team?.id ?? null, userId: user?.userId ?? null, payer, allowedModels, expiresAtMs } as const;
    return expectDone(await createKey(postgres, config, commandActor(environment), order), `key "${name}" of "${organization}"`);
  });
  print(made.secret);
  return 0;
}

async function rotate(values: Values, { organization, name }: Named, { environment, print }: CommandContext): Promise<number> {
  const overlap = values.overlap ?? '0';
  if (!/^\d{1,7}$/.test(overlap)) throw new UsageFault(`--overlap: must be a whole number of seconds, got "${overlap}"`);
  const what = `key "${name}" of "${organization}"`;
  const rotated = await withDatabase(environment, async (postgres, config) => {
    const { id: organizationId } = await findOrganization(postgres, organization);
    const { id: keyId } = expectDone(await findKeyByName(postgres, { organizationId, name }), what);
    return expectDone(await rotateKey(postgres, config, commandActor(environment), { organizationId, keyId }, { overlapSeconds: Number(overlap) }), what);
  });
  print(rotated.secret);
  return 0;
}

async function revoke({ organization, name }: Named, { environment, print }: CommandContext): Promise<number> {
  const what = `key "${name}" of "${organization}"`;
  await withDatabase(environment, async (postgres) => {
    const { id: organizationId } = await findOrganization(postgres, organization);
    const { id: keyId } = expectDone(await findKeyByName(postgres, { organizationId, name }), what);
    expectDone(await revokeKey(postgres, commandActor(environment), { organizationId, keyId }), what);
  });
  print(`${what} is revoked`);
  return 0;
}

/** A date is the end of that day in UTC; an instant is itself. */
function parseExpiry(text: string): number {
  const instant = Date.parse(/^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T23:59:59.999Z` : text);
  if (!/^\d{4}-\d{2}-\d{2}/.test(text) || Number.isNaN(instant))
    throw new UsageFault(`--expires: must be a date such as 2027-01-31 or 2027-01-31T12:00:00Z, got "${text}"`);
  return instant;
}
