// Reads a configuration file without the environment that it refers to. It reports the mistakes that the file has
// whatever its variables contain, and returns the configuration with substitutes for their values.

import { generateKeyPairSync } from 'node:crypto';
import type { StoredNames } from './check-references.ts';
import type { Configuration } from './configuration.ts';
import { parseConfigurationFile } from './parse-configuration-file.ts';

/**
 * The substitutes: a variable may contain a word, an address or an account's key. That a variable is not set is no
 * mistake of the file.
 */
const WORD = 'variable-not-given';
const ADDRESS = 'http://variable-not-given.invalid';

export interface WithoutEnvironment {
  /** Mistakes that no value of the missing variables can remove. */
  readonly mistakes: readonly string[];
  /** null: the file has mistakes, or no single substitute fits all its variables. */
  readonly configuration: Configuration | null;
}

export function parseWithoutEnvironment(
  text: string,
  variables: Readonly<Record<string, string>>,
  stored: StoredNames | 'later',
  fileName = 'tollgate.yaml',
): WithoutEnvironment {
  const words = [() => WORD, () => ADDRESS, ...(text.includes('credentials') ? [accountKey] : [])];
  let common = null as readonly string[] | null;
  for (const make of words) {
    const word = make();
    const environment = new Proxy<Record<string, string>>(
      {},
      { get: (_, name) => (Object.hasOwn(variables, name) ? variables[String(name)] : word), has: () => true },
    );
    const parsed = parseConfigurationFile(text, environment, fileName, stored);
    if (parsed.ok) return { mistakes: [], configuration: parsed.configuration };
    const { errors } = parsed;
    common = common?.filter((mistake) => errors.includes(mistake)) ?? errors;
  }
  return { mistakes: common ?? [], configuration: null };
}

let madeAccountKey: string | null = null;

/** A key in the shape of a service account's. It takes long to generate, so it is generated once. */
function accountKey(): string {
  madeAccountKey ??= makeAccountKey();
  return madeAccountKey;
}

function makeAccountKey(): string {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 1_024 });
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' });
  return JSON.stringify({ type: 'service_account', client_email: 'x@x.test', private_key: key });
}
