// Upserts the inference keys that an organization pays for. A key is identified by its name; another secret under the
// same name makes another key, which replaces the old one with the same limits, models and guardrails. A revoked key
// stays revoked, whatever the file says.

import type { ConfiguredKey } from '../../../domain/configuration/configuration.ts';
import { generateKey } from '../../../domain/identity/generate-credential.ts';
import { hashCredential, keyPrefix } from '../../../domain/identity/key-hash.ts';
import { type Application, ConfigurationConflict } from './application.ts';

interface Owner {
  readonly id: string;
  readonly slug: string;
}

interface Bindings {
  readonly teamId: string | null;
  readonly userId: string | null;
}

export async function applyKeys(
  application: Application,
  organization: Owner,
  keys: readonly ConfiguredKey[],
): Promise<void> {
  for (const key of keys) {
    const bindings = await findBindings(application, organization, key);
    if (key.secret === null) await generateOnce(application, organization, key, bindings);
    else await upsertKey(application, organization, { name: key.name, secret: key.secret }, bindings);
  }
  if (application.prune) await revokeOtherKeys(application, organization, keys);
}

/** Revokes only keys that came from a file. Whoever made another key revokes it. */
async function revokeOtherKeys(
  { client, changedIds }: Application,
  { id }: Owner,
  keys: readonly ConfiguredKey[],
): Promise<void> {
  const { rows } = await client.query<{ id: string }>(
    `UPDATE api_keys SET revoked_at = now()
      WHERE organization_id = $1 AND from_configuration AND revoked_at IS NULL AND name <> ALL ($2) RETURNING id`,
    [id, keys.map(({ name }) => name)],
  );
  changedIds.push(...rows.map((row) => row.id));
}

async function findBindings({ client }: Application, organization: Owner, key: ConfiguredKey): Promise<Bindings> {
  const { rows } = await client.query<{ team_id: string | null; user_id: string | null }>(
    `SELECT (SELECT id FROM teams WHERE organization_id = $1 AND slug = $2) AS team_id,
      (SELECT id FROM users WHERE lower(email) = lower($3)) AS user_id`,
    [organization.id, key.team, key.userEmail],
  );
  return { teamId: rows[0]?.team_id ?? null, userId: rows[0]?.user_id ?? null };
}

/** The secret cannot be shown again, so a key that was ever generated for this name is left alone. */
async function generateOnce(
  application: Application,
  organization: Owner,
  key: ConfiguredKey,
  bindings: Bindings,
): Promise<void> {
  const { client, changedIds } = application;
  const { rows } = await client.query<{ id: string }>(
    `SELECT id FROM api_keys WHERE organization_id = $1 AND name = $2 AND wallet_id IS NULL
      ORDER BY revoked_at DESC NULLS FIRST LIMIT 1`,
    [organization.id, key.name],
  );
  const known = rows[0];
  if (known !== undefined) {
    if (await bind(application, known.id, bindings)) changedIds.push(known.id);
    return;
  }
  const secret = generateKey();
  await insertKey(application, organization, { name: key.name, secret }, bindings);
  application.generatedKeys.push({ organization: organization.slug, name: key.name, secret });
}

async function upsertKey(
  application: Application,
  organization: Owner,
  key: { name: string; secret: string },
  bindings: Bindings,
): Promise<void> {
  const { client, pepper, changedIds } = application;
  const hash = hashCredential(pepper, key.secret);
  const { rows } = await client.query<{ id: string; organization_id: string; name: string; user_pays: boolean }>(
    'SELECT id, organization_id, name, wallet_id IS NOT NULL AS user_pays FROM api_keys WHERE key_hash = $1',
    [hash],
  );
  const known = rows[0];
  if (known === undefined && (await wasRotated(application, hash))) return;
  if (known === undefined) return insertKey(application, organization, key, bindings);
  if (known.organization_id !== organization.id || known.name !== key.name) {
    throw new ConfigurationConflict(
      `the secret of key "${key.name}" of organization "${organization.slug}" is already in use by ` +
        `another key ("${known.name}")`,
    );
  }
  // If the file gave the key another user, that user would spend the present user's wallet.
  if (known.user_pays)
    throw new ConfigurationConflict(
      `key "${key.name}" of organization "${organization.slug}" is paid for by its user: it is not the file's`,
    );
  await client.query('UPDATE api_keys SET from_configuration = true WHERE id = $1 AND NOT from_configuration', [
    known.id,
  ]);
  if (await bind(application, known.id, bindings)) changedIds.push(known.id);
}

/** A secret that a rotation replaced stays replaced, whatever the file says. */
async function wasRotated({ client }: Application, hash: Buffer): Promise<boolean> {
  const { rowCount } = await client.query('SELECT FROM api_key_previous_secrets WHERE key_hash = $1', [hash]);
  return rowCount > 0;
}

async function insertKey(
  { client, pepper, changedIds }: Application,
  organization: Owner,
  key: { name: string; secret: string },
  bindings: Bindings,
): Promise<void> {
  const replaced = await client.query<{ id: string }>(
    `UPDATE api_keys SET revoked_at = now() WHERE organization_id = $1 AND name = $2 AND wallet_id IS NULL
      AND revoked_at IS NULL RETURNING id`,
    [organization.id, key.name],
  );
  const hash = hashCredential(pepper, key.secret);
  const replacedId = replaced.rows[0]?.id ?? null;
  const { rows } = await client.query<{ id: string }>(
    `INSERT INTO api_keys (organization_id, team_id, user_id, name, key_hash, key_prefix, from_configuration,
      platform_allowed_models, organization_allowed_models)
     VALUES ($1, $2, $3, $4, $5, $6, true,
             (SELECT platform_allowed_models FROM api_keys WHERE id = $7),
               (SELECT organization_allowed_models FROM api_keys WHERE id = $7)) RETURNING id`,
    [organization.id, bindings.teamId, bindings.userId, key.name, hash, keyPrefix(key.secret), replacedId],
  );
  await client.query('UPDATE usage_limits SET api_key_id = $2 WHERE api_key_id = $1', [replacedId, rows[0]?.id]);
  await client.query('UPDATE guardrail_assignments SET api_key_id = $2 WHERE api_key_id = $1', [
    replacedId,
    rows[0]?.id,
  ]);
  changedIds.push(...replaced.rows.map((row) => row.id));
}

async function bind({ client }: Application, keyId: string, { teamId, userId }: Bindings): Promise<boolean> {
  const { rowCount } = await client.query(
    `UPDATE api_keys SET team_id = $2, user_id = $3 WHERE id = $1 AND (team_id, user_id) IS DISTINCT
      FROM ($2::uuid, $3::uuid)`,
    [keyId, teamId, userId],
  );
  return rowCount > 0;
}
