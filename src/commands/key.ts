// `tollgate key`: creates, lists, changes, rotates and revokes inference keys of a running installation.

import { isDay } from '../domain/configuration/schema/price-schema.ts';
import type { SetModelAccessParams } from '../domain/identity/model-access.ts';
import { createKey, listKeys, revokeKey, updateKey } from '../storage/postgres/identity/keys/keys.ts';
import { rotateKey } from '../storage/postgres/identity/keys/rotate-key.ts';
import { parseModels } from './access.ts';
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
import {
  commandActor,
  expectDone,
  findKey,
  findMember,
  findOrganization,
  findTeam,
  listAll,
} from './command/identity.ts';

export const keyCommand: Command = {
  usage: [
    'tollgate key create --organization SLUG --name NAME [--team SLUG] [--user EMAIL] [--payer ' +
      'organization|user] [--models ID,ID] [--expires 2027-01-31]',
    'tollgate key update --organization SLUG --name NAME|ID [--rename NAME] [--models ID,ID|all] ' +
      '[--expires 2027-01-31|never]',
    'tollgate key rotate --organization SLUG --name NAME|ID [--overlap SECONDS]',
    'tollgate key revoke --organization SLUG --name NAME|ID',
    'tollgate key list --organization SLUG [--team SLUG] [--user EMAIL]',
  ],
  summary:
    'Makes an inference key and prints it, once; changes a key; gives a key a new secret, while the old one ' +
    'works for the overlap (0 s); revokes a key, everywhere within a second; or lists keys with their ids. A key ' +
    'that its user pays for is named by its id.',
  run,
};

const OPTIONS = {
  organization: { type: 'string' },
  name: { type: 'string' },
  rename: { type: 'string' },
  team: { type: 'string' },
  user: { type: 'string' },
  payer: { type: 'string' },
  models: { type: 'string' },
  expires: { type: 'string' },
  overlap: { type: 'string' },
} as const;

type Values = OptionValues<typeof OPTIONS>;

interface Named {
  readonly organization: string;
  readonly name: string;
}

async function run(args: readonly string[], context: CommandContext): Promise<number> {
  const { values, positionals } = parseArguments(args, OPTIONS);
  const action = expectAction(positionals, ['create', 'update', 'rotate', 'revoke', 'list']);
  const organization = requireOption(values.organization, 'organization');
  if (action === 'list') return list(values, organization, context);
  const named = { organization, name: requireOption(values.name, 'name') };
  return { create, update, rotate, revoke }[action](values, named, context);
}

async function create(
  values: Values,
  { organization, name }: Named,
  { environment, print }: CommandContext,
): Promise<number> {
  const expiresAtMs = values.expires === undefined ? null : parseExpiry(values.expires);
  const payer = values.payer ?? 'organization';
  if (payer !== 'organization' && payer !== 'user')
    throw new UsageFault(`--payer: must be organization or user, got "${payer}"`);
  const allowedModels = readModels(values.models);
  const made = await withDatabase(environment, async (postgres, _, secrets) => {
    const tenant = await findOrganization(postgres, organization);
    const team = values.team === undefined ? null : await findTeam(postgres, tenant, values.team);
    const user = values.user === undefined ? null : await findMember(postgres, tenant, values.user);
    const params = {
      organizationId: tenant.id,
      name,
      teamId: team?.id ?? null,
      userId: user?.userId ?? null,
      payer,
      allowedModels,
      expiresAtMs,
    } as const;
    return expectDone(
      await createKey(postgres, await secrets(), commandActor(environment), params),
      `key "${name}" of "${organization}"`,
    );
  });
  print(made.secret);
  return 0;
}

async function update(
  values: Values,
  { organization, name }: Named,
  { environment, print }: CommandContext,
): Promise<number> {
  const change = {
    name: values.rename,
    allowedModels: values.models === 'all' ? ({ setBy: 'platform', models: null } as const) : readModels(values.models),
    expiresAtMs:
      values.expires === undefined ? undefined : values.expires === 'never' ? null : parseExpiry(values.expires),
  };
  if (Object.values(change).every((value) => value === undefined))
    throw new UsageFault('nothing to change: give --rename, --models or --expires');
  const what = `key "${name}" of "${organization}"`;
  await withDatabase(environment, async (postgres) => {
    const tenant = await findOrganization(postgres, organization);
    const { id: keyId } = await findKey(postgres, tenant, name);
    expectDone(
      await updateKey(postgres, commandActor(environment), { organizationId: tenant.id, keyId }, change),
      what,
    );
  });
  print(`${what} is changed`);
  return 0;
}

async function rotate(
  values: Values,
  { organization, name }: Named,
  { environment, print }: CommandContext,
): Promise<number> {
  const overlap = values.overlap ?? '0';
  if (!/^\d{1,7}$/.test(overlap))
    throw new UsageFault(`--overlap: must be a whole number of seconds, got "${overlap}"`);
  const rotated = await withDatabase(environment, async (postgres, _, secrets) => {
    const tenant = await findOrganization(postgres, organization);
    const { id: keyId } = await findKey(postgres, tenant, name);
    const params = { overlapSeconds: Number(overlap) };
    const result = await rotateKey(
      postgres,
      await secrets(),
      commandActor(environment),
      { organizationId: tenant.id, keyId },
      params,
    );
    return expectDone(result, `key "${name}" of "${organization}"`);
  });
  print(rotated.secret);
  return 0;
}

async function revoke(
  _: Values,
  { organization, name }: Named,
  { environment, print }: CommandContext,
): Promise<number> {
  const what = `key "${name}" of "${organization}"`;
  await withDatabase(environment, async (postgres) => {
    const tenant = await findOrganization(postgres, organization);
    const { id: keyId } = await findKey(postgres, tenant, name);
    expectDone(await revokeKey(postgres, commandActor(environment), { organizationId: tenant.id, keyId }), what);
  });
  print(`${what} is revoked`);
  return 0;
}

async function list(values: Values, organization: string, { environment, print }: CommandContext): Promise<number> {
  await withDatabase(environment, async (postgres) => {
    const tenant = await findOrganization(postgres, organization);
    const teamId = values.team === undefined ? undefined : (await findTeam(postgres, tenant, values.team)).id;
    const userId = values.user === undefined ? undefined : (await findMember(postgres, tenant, values.user)).userId;
    for await (const key of listAll(
      (params) => listKeys(postgres, { ...params, organizationId: tenant.id, teamId, userId }),
      'keys',
    )) {
      const expires = key.expiresAtMs === null ? 'never expires' : `expires ${new Date(key.expiresAtMs).toISOString()}`;
      print(
        [key.id, key.name, key.prefix, `paid by ${key.payer}`, key.revokedAtMs === null ? expires : 'revoked'].join(
          '\t',
        ),
      );
    }
  });
  return 0;
}

/** The command line acts for the platform, so an organization cannot widen the list that it sets. */
function readModels(text: string | undefined): SetModelAccessParams | undefined {
  return text === undefined ? undefined : { setBy: 'platform', models: parseModels(text) };
}

/** A date means the end of that day in UTC, a date and time exactly that instant. */
function parseExpiry(text: string): number {
  const [day = ''] = /^\d{4}-\d{2}-\d{2}/.exec(text) ?? [];
  const instant = Date.parse(text === day ? `${day}T23:59:59.999Z` : text);
  if (day === '' || Number.isNaN(instant) || !isDay(day))
    throw new UsageFault(`--expires: must be a date such as 2027-01-31 or 2027-01-31T12:00:00Z, got "${text}"`);
  return instant;
}
