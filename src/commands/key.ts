// `tollgate key`: makes and revokes inference keys of a running installation.

import { createKey, revokeKey } from '../storage/postgres/keys.ts';
import { StartFault } from '../supervisor/start-fault.ts';
import { type Command, type CommandContext, expectPositionals, parseArguments, requireOption, UsageFault } from './command.ts';
import { withDatabase } from './database.ts';

export const keyCommand: Command = {
  usage: [
    'tollgate key create --organization SLUG --name NAME [--team SLUG] [--user EMAIL] [--expires 2027-01-31]',
    'tollgate key revoke --organization SLUG --name NAME',
  ],
  summary: 'Makes an inference key and prints it, once; or revokes one, everywhere within a second.',
  run,
};

const OPTIONS = {
  organization: { type: 'string' },
  name: { type: 'string' },
  team: { type: 'string' },
  user: { type: 'string' },
  expires: { type: 'string' },
} as const;

async function run(args: readonly string[], { environment, print }: CommandContext): Promise<number> {
  const { values, positionals } = parseArguments(args, OPTIONS);
  const [action] = expectPositionals(positionals, ['create or revoke']);
  const organization = requireOption(values.organization, 'organization');
  const name = requireOption(values.name, 'name');
  if (action === 'revoke') {
    const revoked = await withDatabase(environment, (postgres) => revokeKey(postgres, { organization, name }));
    if (!revoked) throw new StartFault(`organization "${organization}" has no key "${name}" that is not revoked already`);
    print(`key "${name}" of "${organization}" is revoked`);
    return 0;
  }
  if (action !== 'create') throw new UsageFault(`unknown action "${action}"`);
  const expiresAtMs = values.expires === undefined ? undefined : parseExpiry(values.expires);
  const order = {
    organization,
    name,
    ...(values.team === undefined ? {} : { team: values.team }),
    ...(values.user === undefined ? {} : { userEmail: values.user }),
    ...(expiresAtMs === undefined ? {} : { expiresAtMs }),
  };
  const result = await withDatabase(environment, (postgres, config) => createKey(postgres, config, order));
  if (!result.ok) throw new StartFault(explain(result.reason, order));
  print(result.secret);
  return 0;
}

/** A date is the end of that day in UTC; an instant is itself. */
function parseExpiry(text: string): number {
  const instant = Date.parse(/^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T23:59:59.999Z` : text);
  if (!/^\d{4}-\d{2}-\d{2}/.test(text) || Number.isNaN(instant))
    throw new UsageFault(`--expires: must be a date such as 2027-01-31 or 2027-01-31T12:00:00Z, got "${text}"`);
  return instant;
}

function explain(
  reason: 'unknown_organization' | 'unknown_team' | 'unknown_user' | 'name_taken',
  order: { organization: string; name: string; team?: string; userEmail?: string },
): string {
  switch (reason) {
    case 'unknown_organization':
      return `there is no organization "${order.organization}"`;
    case 'unknown_team':
      return `organization "${order.organization}" has no team "${order.team}"`;
    case 'unknown_user':
      return `organization "${order.organization}" has no member "${order.userEmail}"`;
    case 'name_taken':
      return `organization "${order.organization}" has a key "${order.name}" already; revoke it first or choose another name`;
  }
}
