// Creates, lists, finds, changes and revokes the inference keys of an organization. A secret is shown once, when the
// key is made or rotated.

import type { Actor } from '../../../../domain/identity/actor.ts';
import type {
  CreateKeyParams,
  Key,
  KeyChange,
  KeyReference,
  KeyWithSecret,
} from '../../../../domain/identity/api-key.ts';
import { generateKey } from '../../../../domain/identity/generate-credential.ts';
import { hashCredential, keyPrefix } from '../../../../domain/identity/key-hash.ts';
import { type ModelLists, replaceModels, type SetModelAccessParams } from '../../../../domain/identity/model-access.ts';
import { areUuids, labelProblem } from '../../../../domain/identity/names.ts';
import type { Page, PageParams } from '../../../../domain/lists/page.ts';
import { isRefused, type Refused } from '../../../../domain/refusals/refused.ts';
import { notifyPrincipalsChanged } from '../../changes.ts';
import type { InstallationSecrets } from '../../installation-secrets.ts';
import { ensureWallet } from '../../ledger/payer-wallets.ts';
import type { Postgres, PostgresClient } from '../../pool.ts';
import { change, conflict, invalid, NOT_FOUND, refuseProblems } from '../change.ts';
import { refuseUnknownModels } from '../model-access.ts';
import { PAGE_CONDITION, PAGE_ORDER, readPage } from '../page.ts';
import { refuseCount } from '../refuse-count.ts';
import { refuseExpiry } from '../refuse-expiry.ts';
import { auditKey, lockKeyToChange, recordKeyChange } from './key-changes.ts';
import { refuseCharging } from './key-payer.ts';
import { findKey, KEY_COLUMNS, KEY_SOURCE, type KeyRow, toKey } from './key-rows.ts';

const EVERY_MODEL: ModelLists = { platform: null, organization: null };

export type KeySecrets = Pick<InstallationSecrets, 'pepper'>;

/**
 * `not_found`: the organization does not exist, or the team or user in it; `field` says which. `permission_denied`: the
 * actor may not charge the payer (key-payer.ts). `conflict`: the name is taken, or there are too many keys
 * (refuse-count.ts).
 */
export async function createKey(
  postgres: Postgres,
  { pepper }: KeySecrets,
  actor: Actor,
  params: CreateKeyParams,
): Promise<KeyWithSecret | Refused> {
  const {
    organizationId,
    name,
    teamId = null,
    userId = null,
    payer = 'organization',
    allowedModels,
    expiresAtMs = null,
  } = params;
  const problem = refuseProblems({ name: labelProblem(name) });
  if (problem !== null) return problem;
  if (payer === 'user' && userId === null) return invalid('payer', 'cannot be the user of a key that has none');
  if (!areUuids(organizationId, ...[teamId, userId].filter((id) => id !== null))) return NOT_FOUND;
  const secret = generateKey();
  const hash = hashCredential(pepper, secret);
  return change(postgres, 'name', async (client) => {
    const refused = await refuseCharging(client, actor, { payer, userId });
    if (refused !== null) return refused;
    const missing = await lockBindings(client, { organizationId, teamId, userId });
    if (missing !== null) return missing;
    const unknown = allowedModels === undefined ? null : await refuseUnknownModels(client, allowedModels);
    if (unknown !== null) return unknown;
    const past = await refuseKeyExpiry(client, expiresAtMs, null);
    if (past !== null) return past;
    const full = await refuseKeyCount(client, actor, { organizationId, userId });
    if (full !== null) return full;
    const walletId = payer === 'user' ? await ensureWallet(client, { organizationId, userId }) : null;
    if (isRefused(walletId)) return walletId as Refused;
    const lists = allowedModels === undefined ? EVERY_MODEL : replaceModels(EVERY_MODEL, allowedModels);
    const { rows } = await client.query<{ id: string }>(
      `INSERT INTO api_keys (organization_id, team_id, user_id, wallet_id, name, key_hash, key_prefix,
        platform_allowed_models, organization_allowed_models, expires_at)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, to_timestamp($10::double precision / 1000)) RETURNING id`,
      [
        organizationId,
        teamId,
        userId,
        walletId,
        name,
        hash,
        keyPrefix(secret),
        lists.platform,
        lists.organization,
        expiresAtMs,
      ],
    );
    const made = await findKey(client, { organizationId, keyId: rows[0]?.id ?? '' });
    if (isRefused(made)) return made;
    await auditKey(client, actor, 'key.create', organizationId, null, made.key);
    return { ...made.key, secret };
  });
}

/** Includes revoked keys. */
export async function listKeys(
  postgres: PostgresClient,
  params: PageParams & { organizationId: string; teamId?: string | undefined; userId?: string | undefined },
): Promise<Page<Key> | Refused> {
  const { organizationId, teamId = null, userId = null } = params;
  return readPage(
    postgres,
    params,
    `SELECT ${KEY_COLUMNS} FROM ${KEY_SOURCE}
      WHERE ${PAGE_CONDITION} AND t.organization_id = $4 AND ($5::uuid IS NULL OR t.team_id = $5)
        AND ($6::uuid IS NULL OR t.user_id = $6) ${PAGE_ORDER}`,
    [organizationId, teamId, userId],
    toKey,
  );
}

export async function getKey(postgres: PostgresClient, reference: KeyReference): Promise<Key | Refused> {
  const found = await findKey(postgres, reference);
  return isRefused(found) ? found : found.key;
}

/**
 * For commands: by name, the key that is not revoked among those that the organization pays for; or any key by its id.
 */
export async function findKeyByNameOrId(
  postgres: PostgresClient,
  { organizationId, key }: { organizationId: string; key: string },
): Promise<Key | Refused> {
  if (labelProblem(key) !== null) return NOT_FOUND;
  const { rows } = await postgres.query<KeyRow>(
    `SELECT ${KEY_COLUMNS} FROM ${KEY_SOURCE} WHERE t.organization_id = $1 AND t.name = $2 AND t.revoked_at IS NULL
      AND t.wallet_id IS NULL`,
    [organizationId, key],
  );
  return rows[0] === undefined ? getKey(postgres, { organizationId, keyId: key }) : toKey(rows[0]);
}

/** `conflict`: the key is revoked, the new name is taken, or a configuration file refers to the key by its old name. */
export async function updateKey(
  postgres: Postgres,
  actor: Actor,
  reference: KeyReference,
  { name: newName, allowedModels, expiresAtMs }: KeyChange,
): Promise<Key | Refused> {
  const problem = refuseProblems({ name: newName === undefined ? null : labelProblem(newName) });
  if (problem !== null) return problem;
  return change(postgres, 'name', async (client) => {
    const before = await lockKeyToChange(client, actor, reference);
    if (isRefused(before)) return before;
    const isRenamed = newName !== undefined && newName !== before.key.name;
    if (isRenamed && before.fromConfiguration && actor.kind === 'token')
      return conflict('name', 'is the configuration file’s');
    const { key } = before;
    const lists = await replaceKnownModels(client, key.allowedModelsSetBy, allowedModels);
    if (isRefused(lists)) return lists;
    const past = await refuseKeyExpiry(client, expiresAtMs, key.expiresAtMs);
    if (past !== null) return past;
    await client.query(
      `UPDATE api_keys SET name = $3, platform_allowed_models = $4, organization_allowed_models = $5,
        expires_at = to_timestamp($6::double precision / 1000)
        WHERE organization_id = $1 AND id = $2`,
      [
        reference.organizationId,
        reference.keyId,
        newName ?? key.name,
        lists.platform,
        lists.organization,
        expiresAtMs === undefined ? key.expiresAtMs : expiresAtMs,
      ],
    );
    return recordKeyChange(client, actor, 'key.update', reference, before.key);
  });
}

async function replaceKnownModels(
  client: PostgresClient,
  lists: ModelLists,
  wanted: SetModelAccessParams | undefined,
): Promise<ModelLists | Refused> {
  if (wanted === undefined) return lists;
  const unknown = await refuseUnknownModels(client, { ...wanted, named: lists[wanted.setBy] });
  return unknown ?? replaceModels(lists, wanted);
}

/** Idempotent: revoking a revoked key changes nothing. Every gateway is notified at once. */
export async function revokeKey(postgres: Postgres, actor: Actor, reference: KeyReference): Promise<Key | Refused> {
  return change(postgres, 'name', async (client) => {
    const before = await findKey(client, reference, 'lock');
    if (isRefused(before) || before.key.revokedAtMs !== null) return isRefused(before) ? before : before.key;
    await client.query('UPDATE api_keys SET revoked_at = now() WHERE organization_id = $1 AND id = $2', [
      reference.organizationId,
      reference.keyId,
    ]);
    return recordKeyChange(client, actor, 'key.revoke', reference, before.key);
  });
}

/**
 * Revokes all keys of a user in an organization, or in one of its teams; runs in the transaction that removes the user
 * there.
 */
export async function revokeKeysOfUser(
  client: PostgresClient,
  actor: Actor,
  { organizationId, teamId, userId }: { organizationId: string; teamId: string | null; userId: string },
): Promise<number> {
  const { rows } = await client.query<{ id: string }>(
    `UPDATE api_keys SET revoked_at = now()
      WHERE organization_id = $1 AND user_id = $2 AND ($3::uuid IS NULL OR team_id = $3) AND revoked_at IS NULL
        RETURNING id`,
    [organizationId, userId, teamId],
  );
  await recordRevocations(
    client,
    actor,
    organizationId,
    rows.map(({ id }) => id),
  );
  return rows.length;
}

/** Must end a change that has revoked several keys: writes an audit entry for each, and notifies the gateways. */
export async function recordRevocations(
  client: PostgresClient,
  actor: Actor,
  organizationId: string,
  keyIds: readonly string[],
): Promise<void> {
  for (const keyId of keyIds) {
    const found = await findKey(client, { organizationId, keyId });
    if (!isRefused(found))
      await auditKey(client, actor, 'key.revoke', organizationId, { ...found.key, revokedAtMs: null }, found.key);
  }
  await notifyPrincipalsChanged(client, keyIds);
}

async function refuseKeyCount(
  client: PostgresClient,
  actor: Actor,
  { organizationId, userId }: { organizationId: string; userId: string | null },
): Promise<Refused | null> {
  const full = await refuseCount(client, actor, 'keysOfOrganization', organizationId);
  return full !== null || userId === null ? full : refuseCount(client, actor, 'keysOfMember', organizationId, userId);
}

/** null when all of them exist; they are locked until the end of the transaction. */
async function lockBindings(
  client: PostgresClient,
  { organizationId, teamId, userId }: { organizationId: string; teamId: string | null; userId: string | null },
): Promise<Refused | null> {
  const organization = await client.query('SELECT FROM organizations WHERE id = $1 FOR KEY SHARE', [organizationId]);
  if (organization.rowCount === 0) return NOT_FOUND;
  if (teamId !== null) {
    const team = await client.query('SELECT FROM teams WHERE organization_id = $1 AND id = $2 FOR KEY SHARE', [
      organizationId,
      teamId,
    ]);
    if (team.rowCount === 0) return { ...NOT_FOUND, field: 'teamId' };
  }
  if (userId === null) return null;
  const member = await client.query(
    'SELECT FROM memberships WHERE organization_id = $1 AND user_id = $2 AND team_id IS NULL FOR SHARE',
    [organizationId, userId],
  );
  return member.rowCount === 0 ? { ...NOT_FOUND, field: 'userId' } : null;
}

function refuseKeyExpiry(
  client: PostgresClient,
  wantedMs: number | null | undefined,
  storedMs: number | null,
): Promise<Refused | null> {
  return refuseExpiry(client, { wantedMs, storedMs, instead: 'revoking a key ends it now' });
}
