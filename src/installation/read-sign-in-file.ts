// Reads the file of OpenID providers (SIGN_IN_FILE), and inserts the environment variables that it names.

import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { type Environment, processEnvironment } from '../config.ts';
import {
  interpolate,
  placeholdersToReferences,
  referencesToPlaceholders,
} from '../domain/configuration/interpolation.ts';
import { readPlainYaml } from '../domain/configuration/plain-yaml.ts';
import { type SignInProvider, signInFile } from '../domain/identity/sign-in-provider.ts';
import { wordsOf, YAML_TYPES } from '../domain/refusals/issue-words.ts';
import { StartFault } from './start-fault.ts';

/** Throws one StartFault that names the file and has a line for every mistake in it. */
export function readSignInFile(
  path: string | null,
  environment: Environment = processEnvironment,
): readonly SignInProvider[] {
  if (path === null) return [];
  const plain = readPlainYaml(referencesToPlaceholders(readText(path)));
  if (!plain.ok) throw unusable(path, plain.errors);
  const missing = new Set<string>();
  const value: unknown = JSON.parse(JSON.stringify(plain.value ?? null), (_, one: unknown) => {
    if (typeof one !== 'string') return one;
    const found = interpolate(one, environment);
    for (const name of found.missing) missing.add(name);
    // A missing variable is reported once, and not as a mistake of its field as well.
    return found.missing.length === 0 ? found.text : placeholdersToReferences(one);
  });
  const checked = signInFile.safeParse(value);
  if (checked.success && missing.size === 0) return checked.data.oidc;
  throw unusable(path, [
    ...[...missing].map((name) => `${name} is not set`),
    ...(checked.error?.issues ?? []).map(describe),
  ]);
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new StartFault(`SIGN_IN_FILE: cannot read ${path}: ${(error as Error).message}`, { cause: error });
  }
}

function unusable(path: string, mistakes: readonly string[]): StartFault {
  return new StartFault([`SIGN_IN_FILE: ${path} cannot be used:`, ...mistakes].join('\n'));
}

function describe(issue: z.core.$ZodIssue): string {
  const words = wordsOf(issue, YAML_TYPES);
  return issue.path.length === 0 ? words : `${z.core.toDotPath(issue.path)}: ${words}`;
}
