// `tollgate apply`: applies a configuration file to a running installation; every gateway follows within a second.

import { resolve } from 'node:path';
import type { Configuration } from '../domain/configuration/configuration.ts';
import { type Difference, describeDifference } from '../domain/configuration/difference.ts';
import type { AppliedConfiguration } from '../storage/postgres/apply/apply-configuration.ts';
import { readStoredNames } from '../storage/postgres/apply/stored-names.ts';
import { type Command, type CommandContext, expectPositionals, parseArguments } from './command/command.ts';
import { withDatabase } from './command/database.ts';
import {
  applyOrExplain,
  readConfigurationFile,
  renderGeneratedKeys,
  renderWarnings,
} from './configuration-file/configuration-file.ts';

export const applyCommand: Command = {
  usage: ['tollgate apply FILE [--dry-run] [--prune]'],
  summary:
    'Applies a configuration file to the running installation of DATA_DIR, or of DATABASE_URL. Entries that the ' +
    'file does not mention stay as they are. --dry-run prints the difference and changes nothing; --prune ' +
    'removes the providers, models, routing policies, limits and keys from a file that its lists no longer have.',
  run,
};

const OPTIONS = { 'dry-run': { type: 'boolean', default: false }, prune: { type: 'boolean', default: false } } as const;

async function run(args: readonly string[], { environment, print }: CommandContext): Promise<number> {
  const { values, positionals } = parseArguments(args, OPTIONS);
  const [file = ''] = expectPositionals(positionals, ['FILE']);
  const dryRun = values['dry-run'];
  // Mistakes in the file are reported even if no installation runs.
  readConfigurationFile(resolve(file), environment, 'later');
  const { configuration, applied } = await withDatabase(environment, async (postgres, _, secrets) => {
    const configuration = readConfigurationFile(resolve(file), environment, await readStoredNames(postgres));
    const options = { dryRun, prune: values.prune };
    return { configuration, applied: await applyOrExplain(postgres, configuration, await secrets(), options) };
  });
  const { generatedKeys, differences, warnings } = applied;
  if (dryRun || values.prune) for (const line of differences.flatMap(describeDifference)) print(line);
  if (generatedKeys.length > 0 && !dryRun) print(renderGeneratedKeys(generatedKeys));
  if (warnings.length > 0) print(renderWarnings(warnings));
  print(dryRun ? describeDryRun(differences) : describeApplied(configuration, applied));
  return 0;
}

function describeDryRun(differences: readonly Difference[]): string {
  const found = differences.length === 0 ? 'no difference' : count(differences, 'difference');
  return `nothing is applied (--dry-run): ${found}`;
}

function describeApplied(configuration: Configuration, applied: AppliedConfiguration): string {
  const { providers, models, organizations } = configuration;
  return (
    `applied: ${count(providers, 'provider')}, ${count(models, 'model')}, ${count(organizations, 'organization')}; ` +
    `the catalog is ${applied.catalogChanged ? 'now' : 'still'} version ${applied.catalogVersion}`
  );
}

function count(items: readonly unknown[], noun: string): string {
  return `${items.length} ${noun}${items.length === 1 ? '' : 's'}`;
}
