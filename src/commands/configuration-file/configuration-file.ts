// Reads a configuration file for commands, with every mistake reported at once; applies it, and shows the keys that
// were made.

import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import type { Environment } from '../../config.ts';
import type { StoredNames } from '../../domain/configuration/check-references.ts';
import type { Configuration } from '../../domain/configuration/configuration.ts';
import { namesIn } from '../../domain/configuration/interpolation.ts';
import { parseConfigurationFile } from '../../domain/configuration/parse-configuration-file.ts';
import { StartFault } from '../../installation/start-fault.ts';
import { ConfigurationConflict, type GeneratedKey } from '../../storage/postgres/apply/application.ts';
import {
  type AppliedConfiguration,
  type ApplyOptions,
  applyConfiguration,
} from '../../storage/postgres/apply/apply-configuration.ts';
import type { InstallationSecrets } from '../../storage/postgres/installation-secrets.ts';
import type { Postgres } from '../../storage/postgres/pool.ts';

/** Variables that every process keeps, even if a file names them. */
const SYSTEM_VARIABLES = ['PATH', 'HOME', 'USER', 'TMPDIR', 'TZ', 'LANG', 'NODE_OPTIONS', 'NODE_EXTRA_CA_CERTS'];

/** Throws one StartFault that has a line for every mistake in the file. `stored`: see parseConfigurationFile. */
export function readConfigurationFile(
  path: string,
  environment: Environment,
  stored?: StoredNames | 'later',
): Configuration {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new StartFault(
      `cannot read the configuration file ${path}: ${error instanceof Error ? error.message : String(error)}`,
      { cause: error },
    );
  }
  const parsed = parseConfigurationFile(text, environment, basename(path), stored);
  if (!parsed.ok) throw new StartFault([`${path} cannot be used:`, ...parsed.errors].join('\n'));
  return parsed.configuration;
}

/**
 * The environment without the variables that only this file names. Only the command reads the file; the values are
 * stored sealed, and no other process needs them. `kept`: names that stay in any case. `readByAll`: a file that every
 * process reads, so the variables that it names stay; null: there is none.
 */
export function withoutNamedIn(
  path: string,
  environment: Environment,
  { kept, readByAll }: { readonly kept: readonly string[]; readonly readByAll: string | null },
): Environment {
  const needed = new Set([...kept, ...SYSTEM_VARIABLES, ...(readByAll === null ? [] : namedIn(readByAll))]);
  const removed = new Set(namedIn(path).filter((name) => !needed.has(name)));
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !removed.has(name)));
}

/**
 * The names in the file; none if it cannot be read. The file was there at the start, and its absence since must not
 * stop a process.
 */
function namedIn(path: string): readonly string[] {
  try {
    return namesIn(readFileSync(path, 'utf8'));
  } catch {
    return [];
  }
}

/** Reports a contradiction with an earlier application without a stack, because the operator must resolve it. */
export async function applyOrExplain(
  postgres: Postgres,
  configuration: Configuration,
  secrets: Pick<InstallationSecrets, 'box' | 'pepper'>,
  options: ApplyOptions = {},
): Promise<AppliedConfiguration> {
  try {
    return await applyConfiguration(postgres, configuration, secrets, options);
  } catch (error) {
    if (error instanceof ConfigurationConflict)
      throw new StartFault(`the configuration is not applied: ${error.message}`, { cause: error });
    throw error;
  }
}

/** Keys are printed as soon as they exist, since they cannot be shown a second time. */
export function renderGeneratedKeys(keys: readonly GeneratedKey[]): string {
  return keys.map((key) => `key "${key.name}" of "${key.organization}", shown only now: ${key.secret}`).join('\n');
}

export function renderWarnings(warnings: readonly string[]): string {
  return warnings.map((warning) => `warning: ${warning}`).join('\n');
}
