// `tollgate facts`: shows which ClickHouse has the facts of all machines, and releases it when it is gone for good.

import { StartFault } from '../installation/start-fault.ts';
import { isEmbeddedInUse, readFactsHome, releaseFactsHome } from '../storage/postgres/ledger/facts-home.ts';
import { type Command, type CommandContext, expectAction, parseArguments, requireOption } from './command/command.ts';
import { withDatabase } from './command/database.ts';

export const factsCommand: Command = {
  usage: ['tollgate facts show', 'tollgate facts release --machine NAME'],
  summary:
    'Shows which ClickHouse has the facts that reports are made of. release: gives that ClickHouse up; the next ' +
    'jobs process that starts registers its own, and makes the facts again from the ledger.',
  run,
};

async function run(args: readonly string[], { environment, print }: CommandContext): Promise<number> {
  const { values, positionals } = parseArguments(args, { machine: { type: 'string' } });
  const action = expectAction(positionals, ['show', 'release']);
  await withDatabase(environment, async (postgres) => {
    const home = await readFactsHome(postgres);
    if (home === null) return print('no jobs process has registered a ClickHouse yet');
    const { id, kind, machine, registeredAt } = home;
    if (action === 'show')
      return print(
        `${kind}  ${id}  registered by ${machine} ${registeredAt.toISOString().slice(0, 19).replace('T', ' ')}`,
      );
    if (requireOption(values.machine, 'machine') !== machine)
      throw new StartFault(`the facts' ClickHouse was registered by "${machine}", not by "${values.machine}"`);
    if (kind === 'embedded' && (await isEmbeddedInUse(postgres)))
      throw new StartFault(`the jobs process of "${machine}" runs and has the facts open: stop it first`);
    await releaseFactsHome(postgres);
    print('released: the next jobs process that starts registers its own ClickHouse');
  });
  return 0;
}
