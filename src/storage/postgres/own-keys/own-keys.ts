// Stores, finds, changes and removes organizations' own provider keys. A stored secret is never shown again. It is only
// sent to its provider.

import { createHmac, randomUUID } from 'node:crypto';
import type { Actor } from '../../../domain/identity/actor.ts';
import { areUuids } from '../../../domain/identity/names.ts';
import { otherDestination } from '../../../domain/models/key-destination.ts';
import type { NewOwnKey, OwnKeyChange, OwnKeyReference, RotatedSecret } from '../../../domain/own-keys/key-changes.ts';
import { isOpen } from '../../../domain/own-keys/key-kinds.ts';
import { type KeyAudience, labelOf, type OwnKey } from '../../../domain/own-keys/own-key.ts';
import { isRefused, type Refused } from '../../../domain/refusals/refused.ts';
import { credentialEvent } from '../../../domain/webhooks/credential-event.ts';
import { notifyOwnKeysChanged, notifyPrincipalsChanged } from '../changes.ts';
import { change, invalid, NOT_FOUND } from '../identity/change.ts';
import { refuseUnknownModels } from '../identity/model-access.ts';
import { refuseExpiry } from '../identity/refuse-expiry.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import type { SecretBox } from '../secret-box.ts';
import { announceCredential } from '../webhooks/webhook-deliveries.ts';
import { lockOrganization, readByokSettings, refuseDisabled } from './byok-settings.ts';
import { auditOwnKey } from './own-key-audit.ts';
import { OWN_KEY_COLUMNS, type OwnKeyRow, ownKeySecretName, previousSecretName, toOwnKey } from './own-key-rows.ts';

/** The secrets of the installation that own keys are sealed and fingerprinted with. */
export interface OwnKeySecrets {
  readonly box: SecretBox;
  /** Key of the HMAC that gives secrets their fingerprints. */
  readonly pepper: Buffer;
}

const FINGERPRINT_DIGITS = 8;

export function fingerprintOf(pepper: Buffer, secret: string): string {
  return createHmac('sha256', pepper).update('own key\0').update(secret).digest('hex').slice(0, FINGERPRINT_DIGITS);
}

const FOUND = `SELECT ${OWN_KEY_COLUMNS} FROM own_keys t
  WHERE t.organization_id = $1 AND t.id = $2 AND t.removed_at IS NULL`;

export async function getOwnKey(
  postgres: PostgresClient,
  { organizationId, keyId }: OwnKeyReference,
): Promise<OwnKey | Refused> {
  if (!areUuids(organizationId, keyId)) return NOT_FOUND;
  const { rows } = await postgres.query<OwnKeyRow>(FOUND, [organizationId, keyId]);
  return rows[0] === undefined ? NOT_FOUND : toOwnKey(rows[0]);
}

/** Adds a key, which is tried after the existing ones. */
export async function createOwnKey(
  postgres: Postgres,
  secrets: OwnKeySecrets,
  actor: Actor,
  made: NewOwnKey,
): Promise<OwnKey | Refused> {
  const { organizationId } = made;
  if (!areUuids(organizationId)) return NOT_FOUND;
  return changeKeys(postgres, organizationId, async (client) => {
    const refused =
      (await refuseNew(client, made)) ??
      (await refuseNames(client, organizationId, made)) ??
      (await refuseKeyExpiry(client, made.expiresAtMs, null));
    if (refused !== null) return refused;
    const key = await insertOwnKey(client, secrets, made);
    await auditOwnKey(client, actor, 'own_key.create', null, key);
    return key;
  });
}

/**
 * Must run in the transaction of a change. An organization's first key also notifies gateways, whose requests look for
 * own keys only if there are any.
 */
export async function insertOwnKey(client: PostgresClient, secrets: OwnKeySecrets, made: NewOwnKey): Promise<OwnKey> {
  const { organizationId, secret } = made;
  const found = await client.query('SELECT FROM own_keys WHERE organization_id = $1 LIMIT 1', [organizationId]);
  // The id is made here, because the sealed secret is bound to it.
  const id = randomUUID();
  const { rows } = await client.query<OwnKeyRow>(
    `INSERT INTO own_keys AS t (id, organization_id, kind, name, label, fingerprint, place, position, fallback,
       models, teams, api_keys, users, settings, base_url, model_map, secret_sealed, state, state_reason, checked_at,
       verified_at, expires_at, given_for)
     VALUES ($1, $2, $3, $4, $5, $6, $7,
       (SELECT coalesce(max(position), 0) + 1 FROM own_keys WHERE organization_id = $2), $8, $9, $10, $11, $12, $13,
       $14, $15, $16, $17, $18, now(), CASE WHEN $17 = 'active' THEN now() END,
       to_timestamp($19::double precision / 1000), $20)
     RETURNING ${OWN_KEY_COLUMNS}`,
    [
      id,
      organizationId,
      made.kind,
      made.name,
      labelOf(secret),
      fingerprintOf(secrets.pepper, secret),
      made.place,
      made.fallback,
      made.models,
      made.teams,
      made.apiKeys,
      made.users,
      JSON.stringify(made.settings),
      made.baseUrl,
      JSON.stringify(made.modelMap),
      secrets.box.seal(secret, ownKeySecretName({ organizationId, kind: made.kind, id }, 1)),
      made.verdict.state,
      made.verdict.reason,
      made.expiresAtMs,
      made.givenFor,
    ],
  );
  if (found.rowCount === 0) await notifyPrincipalsChanged(client, [organizationId]);
  return toOwnKey(rows[0] as OwnKeyRow);
}

/** Runs a change of an organization's own keys under its lock, and notifies gateways to read the keys again. */
export async function changeKeys<T>(
  postgres: Postgres,
  organizationId: string,
  work: (client: PostgresClient) => Promise<T | Refused>,
): Promise<T | Refused> {
  return change(postgres, 'name', async (client) => {
    const refused = await lockOrganization(client, organizationId);
    if (refused !== null) return refused;
    const result = await work(client);
    if (!isRefused(result)) await notifyOwnKeysChanged(client, organizationId);
    return result;
  });
}

/** null: the platform allows the organization to have this key. */
async function refuseNew(client: PostgresClient, { organizationId, kind }: NewOwnKey): Promise<Refused | null> {
  const settings = await readByokSettings(client, organizationId);
  const disabled = refuseDisabled(settings);
  if (disabled !== null) return disabled;
  if (!isOpen(kind, settings)) return { refused: 'byok_kind_not_allowed' };
  const { rows } = await client.query<{ count: number }>(
    'SELECT count(*)::integer AS count FROM own_keys WHERE organization_id = $1 AND removed_at IS NULL',
    [organizationId],
  );
  if ((rows[0]?.count ?? 0) < settings.credentialsMax) return null;
  return invalid('kind', `is one too many: the organization may have ${settings.credentialsMax} keys`);
}

/** null: the name is free, and the models, teams, keys and users exist, all in this organization. */
async function refuseNames(
  client: PostgresClient,
  organizationId: string,
  {
    keyId = null,
    name,
    named = null,
    ...audience
  }: Partial<KeyAudience> & {
    readonly name?: string;
    readonly keyId?: string | null;
    readonly named?: KeyAudience['models'];
  },
): Promise<Refused | null> {
  if (name !== undefined) {
    const { rowCount } = await client.query(
      `SELECT FROM own_keys WHERE organization_id = $1 AND name = $2 AND removed_at IS NULL
        AND id IS DISTINCT FROM $3::uuid`,
      [organizationId, name, keyId],
    );
    if (rowCount > 0) return invalid('name', 'is taken');
  }
  const models = { setBy: 'organization', models: audience.models ?? null, named } as const;
  const unknown = await refuseUnknownModels(client, models, 'models');
  if (unknown !== null) return unknown;
  for (const [field, statement] of Object.entries(AUDIENCE)) {
    const ids = audience[field as keyof typeof AUDIENCE] ?? [];
    if (ids.length === 0) continue;
    const found = areUuids(...ids) ? await client.query(statement, [organizationId, ids]) : { rowCount: 1 };
    if (found.rowCount > 0) return invalid(field, 'name something that is not in the organization');
  }
  return null;
}

/** Each statement finds an id that does not belong to the organization. */
const AUDIENCE = {
  teams: `SELECT FROM unnest($2::uuid[]) AS wanted (id)
    WHERE NOT EXISTS (SELECT FROM teams t WHERE t.organization_id = $1 AND t.id = wanted.id) LIMIT 1`,
  apiKeys: `SELECT FROM unnest($2::uuid[]) AS wanted (id)
    WHERE NOT EXISTS (SELECT FROM api_keys k WHERE k.organization_id = $1 AND k.id = wanted.id) LIMIT 1`,
  users: `SELECT FROM unnest($2::uuid[]) AS wanted (id)
    WHERE NOT EXISTS (SELECT FROM memberships m WHERE m.organization_id = $1 AND m.user_id = wanted.id
      AND m.team_id IS NULL) LIMIT 1`,
} as const;

function refuseKeyExpiry(
  client: PostgresClient,
  wantedMs: number | null | undefined,
  storedMs: number | null,
): Promise<Refused | null> {
  return refuseExpiry(client, { wantedMs, storedMs, instead: 'turning a key off ends its use now' });
}

export async function updateOwnKey(
  postgres: Postgres,
  actor: Actor,
  { organizationId, keyId }: OwnKeyReference,
  changed: OwnKeyChange,
): Promise<OwnKey | Refused> {
  if (!areUuids(organizationId, keyId)) return NOT_FOUND;
  return changeKeys(postgres, organizationId, async (client) => {
    const before = await getOwnKey(client, { organizationId, keyId });
    if (isRefused(before)) return before;
    const refused =
      (await refuseNames(client, organizationId, { ...changed, keyId, named: before.models })) ??
      (await refuseKeyExpiry(client, changed.expiresAtMs, before.expiresAtMs));
    if (refused !== null) return refused;
    const wanted = { ...before, ...changed };
    const state = stateAfter(before, changed.isEnabled);
    await client.query(
      `UPDATE own_keys SET name = $3, place = $4, fallback = $5, models = $6, teams = $7, api_keys = $8, users = $9,
         model_map = $10, expires_at = to_timestamp($11::double precision / 1000), state = $12,
         state_reason = CASE WHEN state = $12 THEN state_reason END,
         state_until = CASE WHEN state = $12 THEN state_until END
       WHERE organization_id = $1 AND id = $2`,
      [
        organizationId,
        keyId,
        wanted.name,
        wanted.place,
        wanted.fallback,
        wanted.models,
        wanted.teams,
        wanted.apiKeys,
        wanted.users,
        JSON.stringify(wanted.modelMap),
        wanted.expiresAtMs,
        state,
      ],
    );
    return readChanged(client, actor, 'own_key.update', before);
  });
}

/** A key that is turned on again is `unverified` until its provider has accepted it. */
function stateAfter({ state }: OwnKey, isEnabled: boolean | undefined): OwnKey['state'] {
  if (isEnabled === false) return 'disabled';
  return isEnabled === true && state === 'disabled' ? 'unverified' : state;
}

/** Removes a key: erases its ciphertext, and keeps its name for the records of its requests. */
export async function removeOwnKey(
  postgres: Postgres,
  actor: Actor,
  { organizationId, keyId }: OwnKeyReference,
): Promise<{ readonly removed: true } | Refused> {
  if (!areUuids(organizationId, keyId)) return NOT_FOUND;
  return changeKeys(postgres, organizationId, async (client) => {
    const before = await getOwnKey(client, { organizationId, keyId });
    if (isRefused(before)) return before;
    await eraseOwnKey(client, keyId);
    await auditOwnKey(client, actor, 'own_key.remove', before, null);
    return { removed: true };
  });
}

export async function eraseOwnKey(client: PostgresClient, keyId: string): Promise<void> {
  await client.query(
    `UPDATE own_keys SET secret_sealed = NULL, previous_sealed = NULL, previous_until = NULL, removed_at = now(),
      suspected_at = NULL WHERE id = $1`,
    [keyId],
  );
}

/** Erases previous secrets whose overlap is over. Returns how many. */
export async function erasePreviousSecrets(postgres: PostgresClient): Promise<number> {
  const { rowCount } = await postgres.query(
    'UPDATE own_keys SET previous_sealed = NULL, previous_until = NULL WHERE previous_until <= now()',
  );
  return rowCount;
}

/** Gives a key a new secret, which is used at once. */
export async function rotateOwnKey(
  postgres: Postgres,
  secrets: OwnKeySecrets,
  actor: Actor,
  { organizationId, keyId }: OwnKeyReference,
  rotated: RotatedSecret,
): Promise<OwnKey | Refused> {
  if (!areUuids(organizationId, keyId)) return NOT_FOUND;
  return changeKeys(postgres, organizationId, async (client) => {
    const before = await getOwnKey(client, { organizationId, keyId });
    if (isRefused(before)) return before;
    const disabled = refuseDisabled(await readByokSettings(client, organizationId));
    if (disabled !== null) return disabled;
    if (!(await replaceSecret(client, secrets, before, rotated))) return { refused: 'byok_encryption_unconfigured' };
    return readChanged(client, actor, 'own_key.rotate', before);
  });
}

/**
 * Must run in the transaction of a change. Returns false if the present secret should be kept for an overlap but cannot
 * be opened.
 */
export async function replaceSecret(
  client: PostgresClient,
  { box, pepper }: OwnKeySecrets,
  key: OwnKey,
  { secret, givenFor, overlapSeconds, verdict }: RotatedSecret,
): Promise<boolean> {
  const stored = await readSealed(client, key.id);
  const generation = stored.generation + 1;
  const isElsewhere = key.givenFor !== null && (givenFor === null || otherDestination(key.givenFor, givenFor) !== null);
  const kept = overlapSeconds === 0 || isElsewhere ? null : resealed(box, key, stored, generation);
  if (kept === 'unreadable') return false;
  await client.query(
    `UPDATE own_keys SET secret_sealed = $2, generation = $3, previous_sealed = $4,
       previous_until = CASE WHEN $4::bytea IS NULL THEN NULL ELSE now() + make_interval(secs => $5) END,
       label = $6, fingerprint = $7, given_for = $10, rotated_at = now(), checked_at = now(), suspected_at = NULL,
       verified_at = CASE WHEN $8 = 'active' THEN now() ELSE verified_at END,
       state = CASE WHEN state = 'disabled' THEN state ELSE $8 END, state_reason = $9, state_until = NULL
     WHERE id = $1`,
    [
      key.id,
      box.seal(secret, ownKeySecretName(key, generation)),
      generation,
      kept,
      overlapSeconds,
      labelOf(secret),
      fingerprintOf(pepper, secret),
      verdict.state,
      verdict.reason,
      givenFor,
    ],
  );
  return true;
}

interface Sealed {
  readonly generation: number;
  readonly secret_sealed: Buffer;
}

async function readSealed(client: PostgresClient, keyId: string): Promise<Sealed> {
  const { rows } = await client.query<Sealed & Record<string, unknown>>(
    'SELECT generation, secret_sealed FROM own_keys WHERE id = $1',
    [keyId],
  );
  return rows[0] as Sealed;
}

/** The present secret, sealed as the previous secret of the next generation. */
function resealed(box: SecretBox, key: OwnKey, stored: Sealed, generation: number): Buffer | 'unreadable' {
  let secret: string;
  try {
    secret = box.open(stored.secret_sealed, ownKeySecretName(key, stored.generation));
  } catch {
    return 'unreadable';
  }
  return box.seal(secret, previousSecretName(key, generation));
}

/** Opens a key's secret to verify it. `byok_encryption_unconfigured`: it is sealed under an unknown master key. */
export async function openOwnKey(
  postgres: PostgresClient,
  { box }: Pick<OwnKeySecrets, 'box'>,
  reference: OwnKeyReference,
): Promise<{ readonly key: OwnKey; readonly secret: string; readonly generation: number } | Refused> {
  const key = await getOwnKey(postgres, reference);
  if (isRefused(key)) return key;
  const stored = await readSealed(postgres, key.id);
  try {
    const secret = box.open(stored.secret_sealed, ownKeySecretName(key, stored.generation));
    return { key, secret, generation: stored.generation };
  } catch {
    // The key may have been removed after it was found, and its ciphertext erased.
    const present = await getOwnKey(postgres, reference);
    return isRefused(present) ? present : { refused: 'byok_encryption_unconfigured' };
  }
}

/** Must end a change: reads the key again, writes the audit entry, and notifies the organization's webhook if due. */
export async function readChanged(
  client: PostgresClient,
  actor: Actor,
  action: 'own_key.update' | 'own_key.rotate' | 'own_key.state',
  before: OwnKey,
): Promise<OwnKey | Refused> {
  const after = await getOwnKey(client, { organizationId: before.organizationId, keyId: before.id });
  if (isRefused(after)) return after;
  await auditOwnKey(client, actor, action, before, after);
  const event = credentialEvent(before, after);
  if (event !== null) await announceCredential(client, before.organizationId, event);
  return after;
}
