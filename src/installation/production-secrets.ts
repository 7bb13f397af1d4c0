// Refuses weak secrets in an installation that serves others: empty, short, or placeholders that were never replaced.

import { type Config, ConfigFault, type Environment } from '../config.ts';

const TEXT_LENGTH_MIN = 32;
const DISTINCT_CHARACTERS_MIN = 10;
const DISTINCT_BYTES_MIN = 12;
/** Random text contains none of these by chance. */
const PLACEHOLDER = /change.?me|default|example|placeholder|password|insecure|your[-_. ]|secret|0123456789|abcdefgh/i;

/**
 * Throws one ConfigFault that names every weak secret. A secret that is not set is derived or unused, so it is not
 * weak.
 */
export function refuseWeakSecrets(environment: Environment, config: Config): void {
  const lines: string[] = [];
  for (const [name, fault] of [
    ['MASTER_KEY', masterKeyProblem(config.masterKey)],
    ['ADMIN_TOKEN', textProblem(config.adminToken)],
    ['DELEGATION_KEY', textProblem(config.delegationKey?.toString('utf8') ?? null)],
  ] as const) {
    if (environment[name] === '') lines.push(`${name}: is set and empty: give it a random value, or do not set it`);
    else if (fault !== null)
      lines.push(`${name}: ${fault} in production (a configuration of one's own with DATABASE_URL)`);
  }
  if (lines.length > 0) throw new ConfigFault(lines);
}

function masterKeyProblem(key: Buffer | null): string | null {
  if (key === null) return null;
  // 32 random bytes have about 30 different values, and are printable text with a probability of 10^-14.
  const isText = key.every((byte) => byte >= 0x20 && byte < 0x7f);
  return isText || new Set(key).size < DISTINCT_BYTES_MIN
    ? 'must be random bytes (`openssl rand -base64 32` makes them)'
    : null;
}

function textProblem(text: string | null): string | null {
  if (text === null) return null;
  if (text.length < TEXT_LENGTH_MIN) return `must have at least ${TEXT_LENGTH_MIN} characters`;
  if (PLACEHOLDER.test(text) || new Set(text).size < DISTINCT_CHARACTERS_MIN)
    return 'must be random (`openssl rand -base64 32` makes a value)';
  return null;
}
