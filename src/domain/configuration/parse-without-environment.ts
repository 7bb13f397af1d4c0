// Reads a configuration file where the environment that it names is not at hand: what is wrong with it whatever its
// variables hold, and the file with words in their places.

import { generateKeyPairSync } from 'node:crypto';
import type { StoredNames } from './check-references.ts';
import type { Configuration } from './configuration.ts';
import { parseConfigurationFile } from './parse-configuration-file.ts';

/** A variable may be a word, an address or an account's key, and one that is not set is no mistake of the file. */
const WORD = 'variable-not-given';
const ADDRESS = 'http://variable-not-given.invalid';

export interface WithoutEnvironment {
  /** Those that the variables which are not given cannot take away. */
  readonly mistakes: readonly string[];
  /** null: it has mistakes, or no one word can stand for all its variables. */
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

/** In the shape of the key of a service account. It takes long to make, so there is one. */
function accountKey(): string {
  madeAccountKey ??= makeAccountKey();
  return madeAccountKey;
}

function makeAccountKey(): string {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 1_024 });
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' });
  return JSON.stringify({ type: 'service_account', client_email: 'x@x.test', private_key: key });
}
