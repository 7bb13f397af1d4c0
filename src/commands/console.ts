// `tollgate console`: prints a one-time link that opens the console signed in.

import type { Actor } from '../domain/identity/actor.ts';
import { readAddresses } from '../installation/addresses.ts';
import { StartFault } from '../installation/start-fault.ts';
import { createLink } from '../storage/postgres/identity/sessions.ts';
import { findUserByEmail } from '../storage/postgres/identity/tokens.ts';
import { type Command, type CommandContext, expectPositionals, parseArguments } from './command/command.ts';
import { withDatabase } from './command/database.ts';
import { commandActor, expectDone, findMember, findOrganization } from './command/identity.ts';

export const consoleCommand: Command = {
  usage: ['tollgate console [--user EMAIL] [--organization SLUG]'],
  summary:
    'Prints a link that opens the console signed in, once and within ten minutes: as the person of --user, or ' +
    'without it as an administrator of the whole installation.',
  run,
};

async function run(args: readonly string[], { environment, print }: CommandContext): Promise<number> {
  const { values, positionals } = parseArguments(args, { user: { type: 'string' }, organization: { type: 'string' } });
  expectPositionals(positionals, []);
  const actor: Actor = commandActor(environment);
  await withDatabase(environment, async (postgres, config, secrets) => {
    if (!config.console) throw new StartFault('CONSOLE: the console is switched off');
    const { user, organization: slug } = values;
    const organization = slug === undefined ? null : await findOrganization(postgres, slug);
    const userId =
      user === undefined ? null : expectDone(await findUserByEmail(postgres, user), `user "${user}"`).userId;
    if (organization !== null && user !== undefined) await findMember(postgres, organization, user);
    const { code } = await createLink(postgres, await secrets(), actor, {
      userId,
      organizationId: organization?.id ?? null,
    });
    const url = config.given.has('PUBLIC_URL') ? config.publicUrl : readAddresses(config.dataDirectory)?.url;
    print(consoleLink(url ?? config.publicUrl, code));
  });
  return 0;
}

/** The code is in the fragment, which browsers send to no server. `query`: what the console shows first. */
export function consoleLink(url: string, code: string, query = ''): string {
  return `${url}/console${query}#link=${code}`;
}
