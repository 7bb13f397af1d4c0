// Opens the secrets that a process needs besides the master key. They were derived once from the installation's first
// master key and have been stored encrypted since, so that another master key can replace that one.

import { deriveDelegationKey } from '../../domain/identity/delegation-token.ts';
import { derivePepper } from '../../domain/identity/key-hash.ts';
import type { PostgresClient } from './pool.ts';
import { createSecretBox, type MasterKeys, OtherMasterKey, type SecretBox } from './secret-box.ts';

export interface InstallationSecrets {
  readonly box: SecretBox;
  /** Key of the HMAC with which credentials are hashed. */
  readonly pepper: Buffer;
  /** Signs the report requests of gateways to jobs, unless DELEGATION_KEY is given. */
  readonly delegationKey: Buffer;
}

/** The part of the configuration with the master keys. */
export interface ConfiguredMasterKeys {
  readonly masterKey: Buffer;
  readonly previousMasterKeys: readonly Buffer[];
}

export function masterKeysOf({ masterKey, previousMasterKeys }: ConfiguredMasterKeys): MasterKeys {
  return { current: masterKey, previous: previousMasterKeys };
}

/** Throws OtherMasterKey if the secrets are stored under a master key that is not among the configured ones. */
export async function openInstallationSecrets(
  postgres: PostgresClient,
  configured: ConfiguredMasterKeys,
): Promise<InstallationSecrets> {
  const keys = masterKeysOf(configured);
  const box = createSecretBox(keys);
  const stored = (await readStored(postgres)) ?? (await storeFirst(postgres, box, keys));
  const open = (name: Name): Buffer => Buffer.from(openStored(box, stored, name), 'base64');
  return { box, pepper: open('pepper'), delegationKey: open('delegation_key') };
}

function openStored(box: SecretBox, stored: Stored, name: Name): string {
  try {
    return box.open(sealedOf(stored, name), installationSecretName(name));
  } catch (error) {
    if (!(error instanceof OtherMasterKey)) throw error;
    throw new OtherMasterKey(
      'the secrets of this installation were encrypted with another MASTER_KEY: give that one, by MASTER_KEY, ' +
        'MASTER_KEY_FILE or MASTER_KEY_COMMAND (a backup does not contain one that was given), or as ' +
        'MASTER_KEY_PREVIOUS beside the present one',
      { cause: error },
    );
  }
}

type Name = 'pepper' | 'delegation_key';
type Stored = ReadonlyMap<Name, Buffer>;

function sealedOf(stored: Stored, name: Name): Buffer {
  const sealed = stored.get(name);
  if (sealed === undefined) throw new Error(`the secret "${name}" of the installation is missing`);
  return sealed;
}

/** The name to which a sealed secret of the installation is bound. */
export function installationSecretName(name: string): string {
  return `installation ${name}`;
}

async function readStored(postgres: PostgresClient): Promise<Stored | null> {
  const { rows } = await postgres.query<{ name: Name; sealed: Buffer }>(
    'SELECT name, sealed FROM installation_secrets',
  );
  return rows.length === 0 ? null : new Map(rows.map(({ name, sealed }) => [name, sealed]));
}

/** Stores the secrets. They are derived from the oldest configured master key, from which they were always derived. */
async function storeFirst(postgres: PostgresClient, box: SecretBox, keys: MasterKeys): Promise<Stored> {
  const first = keys.previous.at(-1) ?? keys.current;
  const seal = (name: Name, secret: Buffer): Buffer =>
    box.seal(secret.toString('base64'), installationSecretName(name));
  // Machines that start at once derive the same values, and the first of them stores them.
  await postgres.query(
    `INSERT INTO installation_secrets (name, sealed) VALUES ('pepper', $1), ('delegation_key', $2)
     ON CONFLICT (name) DO NOTHING`,
    [seal('pepper', derivePepper(first)), seal('delegation_key', deriveDelegationKey(first))],
  );
  return (await readStored(postgres)) ?? new Map();
}
