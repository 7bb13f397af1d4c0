// Implements `tollgate provider` and `tollgate model`: both list their part of the catalog, and remove one entry by its
// id.

import type { CatalogKind, CatalogState } from '../../domain/configuration/difference.ts';
import { removeFromCatalog } from '../../storage/postgres/catalog/catalog-operations.ts';
import { readCatalogStates } from '../../storage/postgres/catalog/catalog-states.ts';
import { type Command, type CommandContext, expectPositionals, parseArguments, takeAction } from './command.ts';
import { withDatabase } from './database.ts';
import { commandActor, expectDone } from './identity.ts';

/** `describe` gives the columns of a line of the list. */
export function catalogCommand(kind: CatalogKind, describe: (state: CatalogState) => readonly string[]): Command {
  return {
    usage: [`tollgate ${kind} list`, `tollgate ${kind} remove ID`],
    summary:
      `Lists the ${kind}s, or removes one on every gateway within a second. An entry that another one names stays. A ` +
      `configuration file that still has it brings it back when it is applied.`,
    async run(args, context) {
      const { positionals } = parseArguments(args, {});
      const [action, ids] = takeAction(positionals, ['list', 'remove']);
      if (action === 'list') {
        expectPositionals(ids, []);
        return list(kind, describe, context);
      }
      const [id = ''] = expectPositionals(ids, ['ID']);
      return remove(kind, id, context);
    },
  };
}

async function list(
  kind: CatalogKind,
  describe: (state: CatalogState) => readonly string[],
  { environment, print }: CommandContext,
): Promise<number> {
  const states = await withDatabase(environment, (postgres) => readCatalogStates(postgres, kind));
  for (const state of states) print([state.id, ...describe(state)].join('\t'));
  return 0;
}

async function remove(kind: CatalogKind, id: string, { environment, print }: CommandContext): Promise<number> {
  const what = `${kind} "${id}"`;
  await withDatabase(environment, async (postgres) =>
    expectDone(await removeFromCatalog(postgres, commandActor(environment), { kind, id, version: null }), what),
  );
  print(`${what} is removed`);
  return 0;
}
