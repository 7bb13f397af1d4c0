// `tollgate apply`: applies a configuration file to a running installation; every gateway follows within a second.

import { resolve } from 'node:path';
import { type Command, type CommandContext, expectPositionals, parseArguments } from './command.ts';
import { applyOrExplain, readConfigurationFile, renderGeneratedKeys } from './configuration-file.ts';
import { withDatabase } from './database.ts';

export const applyCommand: Command = {
  usage: ['tollgate apply FILE'],
  summary: 'Puts a configuration file into the running installation of DATA_DIR, or of DATABASE_URL.',
  run,
};

async function run(args: readonly string[], { environment, print }: CommandContext): Promise<number> {
  const [file = ''] = expectPositionals(parseArguments(args, {}).positionals, ['FILE']);
  const configuration = readConfigurationFile(resolve(file), environment);
  const { generatedKeys, catalogChanged, catalogVersion } = await withDatabase(environment, (postgres, config) =>
    applyOrExplain(postgres, configuration, config),
  );
  if (generatedKeys.length > 0) print(renderGeneratedKeys(generatedKeys));
  const { providers, models, organizations } = configuration;
  print(
    `applied: ${count(providers, 'provider')}, ${count(models, 'model')}, ` +
      `${count(organizations, 'organization')}; ` +
      `the catalog is ${catalogChanged ? 'now' : 'still'} version ${catalogVersion}`,
  );
  return 0;
}

function count(items: readonly unknown[], noun: string): string {
  return `${items.length} ${noun}${items.length === 1 ? '' : 's'}`;
}
