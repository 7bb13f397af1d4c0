// The installation's own secrets: given by the environment, or made once and stored in the data directory, readable by
// its owner only.

import { hkdfSync, randomBytes } from 'node:crypto';
import { linkSync, readFileSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Config } from '../config.ts';
import { MASTER_KEY_BYTES } from '../config.ts';
import { writeSynced } from '../storage/spool/durable-file.ts';

export interface Secrets {
  readonly masterKey: Buffer;
  readonly delegationKey: Buffer;
  /** null: no bootstrap administrator (a shared database without ADMIN_TOKEN). */
  readonly adminToken: string | null;
}

const SECRETS_FILE = z.object({ master_key: z.base64(), admin_token: z.string().min(16) });

/**
 * Uses the secrets of the settings. Without a shared database the others come from DATA_DIR/secrets.json, which is made
 * if `create` allows it.
 */
export function loadSecrets(config: Config, options: { create: boolean }): Secrets | null {
  const kept =
    config.databaseUrl === null && (config.masterKey === null || config.adminToken === null)
      ? keepSecrets(config.dataDirectory, options)
      : null;
  const masterKey = config.masterKey ?? (kept === null ? null : Buffer.from(kept.master_key, 'base64'));
  if (masterKey === null) return null;
  return {
    masterKey,
    // Every machine of an installation must have the same key, and all of them share the master key already.
    delegationKey: config.delegationKey ?? deriveDelegationKey(masterKey),
    adminToken: config.adminToken ?? kept?.admin_token ?? null,
  };
}

/** Derived from the text form, so that it can be passed on as DELEGATION_KEY. */
function deriveDelegationKey(masterKey: Buffer): Buffer {
  const derived = Buffer.from(hkdfSync('sha256', masterKey, '', 'tollgate delegation key', 32));
  return Buffer.from(derived.toString('base64url'), 'utf8');
}

function keepSecrets(dataDirectory: string, { create }: { create: boolean }): z.infer<typeof SECRETS_FILE> | null {
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

function readKept(path: string): z.infer<typeof SECRETS_FILE> | null {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
  const parsed = SECRETS_FILE.safeParse(parseJson(text));
  // New secrets would make everything unreadable that was encrypted or hashed with the old ones.
  if (!parsed.success || Buffer.from(parsed.data.master_key, 'base64').length !== MASTER_KEY_BYTES) {
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
