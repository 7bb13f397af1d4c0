// The installation's own secrets: given by the environment, or made once and stored in the data directory, readable
// only by its owner.

import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { linkSync, readFileSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { type Config, isMasterKey, MASTER_KEY_BYTES, type MasterKeySource } from '../config.ts';
import { writeSynced } from '../storage/spool/durable-file.ts';
import { StartFault } from './start-fault.ts';

export interface Secrets {
  readonly masterKey: Buffer;
  /** Values stored under these keys can still be opened; the oldest key is last. */
  readonly previousMasterKeys: readonly Buffer[];
  /** null: no bootstrap administrator (a shared database without ADMIN_TOKEN). */
  readonly adminToken: string | null;
}

const SECRETS_FILE = z.object({
  master_key: z.base64(),
  previous_master_keys: z.array(z.base64()).optional(),
  admin_token: z.string().min(16),
});
const COMMAND_LIMIT_MS = 30_000;
const MASTER_KEYS_BYTES_MAX = 65_536;

/**
 * Uses the secrets of the settings. Without DATABASE_URL the others come from DATA_DIR/secrets.json, which is made if
 * `create` allows it.
 */
export function loadSecrets(config: Config, options: { create: boolean }): Secrets | null {
  const given = givenMasterKeys(config);
  const kept =
    config.databaseUrl === null && (given === null || config.adminToken === null)
      ? keepSecrets(config.dataDirectory, options)
      : null;
  const keys = given ?? (kept === null ? null : keptMasterKeys(kept));
  const [masterKey, ...before] = keys ?? [];
  if (masterKey === undefined) return null;
  return {
    masterKey,
    previousMasterKeys: [...before, ...config.previousMasterKeys],
    adminToken: config.adminToken ?? kept?.admin_token ?? null,
  };
}

/** The master keys that the settings give, the present one first. null: the settings give none. */
function givenMasterKeys({ masterKey, masterKeySource }: Config): readonly Buffer[] | null {
  if (masterKey !== null) return [masterKey];
  return masterKeySource === null ? null : readMasterKeys(masterKeySource);
}

function keptMasterKeys({ master_key: present, previous_master_keys: before = [] }: Kept): readonly Buffer[] {
  return [present, ...before].map((key) => Buffer.from(key, 'base64'));
}

function readMasterKeys(source: MasterKeySource): readonly Buffer[] {
  const setting = 'file' in source ? 'MASTER_KEY_FILE' : 'MASTER_KEY_COMMAND';
  let text: string;
  try {
    text = 'file' in source ? readFileSync(source.file, 'utf8') : printedBy(source.command);
  } catch (error) {
    // The output of a failed command, and the command itself, may contain secrets, so neither is shown.
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'it failed';
    throw new StartFault(`${setting}: no master key could be read (${code})`);
  }
  const keys = text.split('\n').flatMap((line) => (line.trim() === '' ? [] : [line.trim()]));
  if (keys.length === 0 || !keys.every(isMasterKey))
    throw new StartFault(`${setting}: must give 32 bytes in base64, and below them keys from before, a line each`);
  return keys.map((key) => Buffer.from(key, 'base64'));
}

function printedBy(command: string): string {
  const options = { timeout: COMMAND_LIMIT_MS, maxBuffer: MASTER_KEYS_BYTES_MAX, encoding: 'utf8' } as const;
  return execFileSync('/bin/sh', ['-c', command], { ...options, stdio: ['ignore', 'pipe', 'inherit'] });
}

type Kept = z.infer<typeof SECRETS_FILE>;

function keepSecrets(dataDirectory: string, { create }: { create: boolean }): Kept | null {
  const path = join(dataDirectory, 'secrets.json');
  const known = readKept(path);
  if (known !== null || !create) return known;
  const fresh = {
    master_key: randomBytes(MASTER_KEY_BYTES).toString('base64'),
    admin_token: `tga-${randomBytes(24).toString('base64url')}`,
  };
  writeOnce(path, `${JSON.stringify(fresh, null, 2)}\n`);
  return readKept(path);
}

function readKept(path: string): Kept | null {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
  const parsed = SECRETS_FILE.safeParse(parseJson(text));
  // The file is not replaced by new secrets: they could not open or check anything that was encrypted or hashed with
  // the old ones.
  if (!parsed.success || !keptMasterKeys(parsed.data).every(({ length }) => length === MASTER_KEY_BYTES)) {
    throw new Error(
      `${path} is damaged: restore it from a backup (without its master key existing keys cannot be checked)`,
    );
  }
  return parsed.data;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Writes the file completely and synced, or not at all. The first writer wins. */
export function writeOnce(path: string, content: string): void {
  const draft = `${path}.${process.pid}.draft`;
  writeSynced(draft, content);
  try {
    linkSync(draft, path);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  } finally {
    unlinkSync(draft);
  }
}
