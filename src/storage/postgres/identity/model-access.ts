// Reads and sets which models an organization, a team or a key may use, as lists of public ids. Each has a list set by
// the platform and one set by the organization; a request needs all of them to allow its model.

import type { Actor } from '../../../domain/identity/actor.ts';
import {
  type AllowedModels,
  type ModelAccess,
  type ModelAccessScope,
  replaceModels,
  type SetModelAccessParams,
} from '../../../domain/identity/model-access.ts';
import { areUuids } from '../../../domain/identity/names.ts';
import { isRefused, type Refused } from '../../../domain/refusals/refused.ts';
import { notifyPrincipalsChanged } from '../changes.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import { recordAudit } from './audit.ts';
import { change, invalid, NOT_FOUND } from './change.ts';
import { refuseKeyChange } from './keys/key-payer.ts';
import { findKey } from './keys/key-rows.ts';
import { MODEL_ACCESS_COLUMNS, type ModelAccessRow, toModelAccess } from './model-access-rows.ts';

const MODELS_MAX = 1_000;

/** Finds a scope: `$1` is the organization, `$2` the scope's own id. */
const FIND = {
  organization: `SELECT ${MODEL_ACCESS_COLUMNS} FROM organizations t WHERE t.id = $1 AND t.id = $2`,
  team: `SELECT ${MODEL_ACCESS_COLUMNS} FROM teams t WHERE t.organization_id = $1 AND t.id = $2`,
  key: `SELECT ${MODEL_ACCESS_COLUMNS} FROM api_keys t WHERE t.organization_id = $1 AND t.id = $2`,
} as const;
const SET = {
  organization:
    'UPDATE organizations SET platform_allowed_models = $3, organization_allowed_models = $4 WHERE id = $1 AND id = $2',
  team: `UPDATE teams SET platform_allowed_models = $3, organization_allowed_models = $4
    WHERE organization_id = $1 AND id = $2`,
  key: `UPDATE api_keys SET platform_allowed_models = $3, organization_allowed_models = $4
    WHERE organization_id = $1 AND id = $2`,
} as const;

export async function getModelAccess(
  postgres: PostgresClient,
  scope: ModelAccessScope,
): Promise<ModelAccess | Refused> {
  return readAccess(postgres, scope, FIND[scope.kind]);
}

/** Ids that are not in the catalog are `invalid`: a mistyped list would lock everybody out. */
export async function setModelAccess(
  postgres: Postgres,
  actor: Actor,
  scope: ModelAccessScope,
  params: SetModelAccessParams,
): Promise<ModelAccess | Refused> {
  return change(postgres, 'allowedModels', async (client) => {
    const before = await readAccess(client, scope, `${FIND[scope.kind]} FOR NO KEY UPDATE`);
    if ('refused' in before) return before;
    const refused = scope.kind === 'key' ? await refuseOfKey(client, actor, scope) : null;
    if (refused !== null) return refused;
    const unknown = await refuseUnknownModels(client, { ...params, named: before.allowedModelsSetBy[params.setBy] });
    if (unknown !== null) return unknown;
    const id = idOf(scope);
    const lists = replaceModels(before.allowedModelsSetBy, params);
    await client.query(SET[scope.kind], [scope.organizationId, id, lists.platform, lists.organization]);
    const after = await getModelAccess(client, scope);
    if ('refused' in after) return after;
    const { organizationId, kind } = scope;
    await recordAudit(client, actor, {
      organizationId,
      action: 'model_access.set',
      target: { kind, id },
      before,
      after,
    });
    await notifyPrincipalsChanged(client, [id]);
    return after;
  });
}

async function refuseOfKey(
  client: PostgresClient,
  actor: Actor,
  name: { organizationId: string; keyId: string },
): Promise<Refused | null> {
  const found = await findKey(client, name);
  return isRefused(found) ? found : refuseKeyChange(client, actor, {}, found.key);
}

export interface NamedModels extends SetModelAccessParams {
  /** The models in the present list, which may have left the catalog since and stay allowed in it. Absent: none. */
  readonly named?: AllowedModels;
}

/**
 * null: the catalog has all of the models. For an organization, an inactive model counts as missing, since its name may
 * not be public yet.
 */
export async function refuseUnknownModels(
  client: PostgresClient,
  { setBy, models, named = null }: NamedModels,
  field = 'allowedModels',
): Promise<Refused | null> {
  if (models === null || models.length === 0) return null;
  if (models.length > MODELS_MAX) return invalid(field, `must be at most ${MODELS_MAX} models`);
  if (models.some((id) => id.includes('\0'))) return invalid(field, 'must be ids of models in the catalog');
  const { rows } = await client.query<{ id: string }>(
    `SELECT wanted.id FROM unnest($1::text[]) AS wanted (id)
      WHERE wanted.id <> ALL ($3)
        AND NOT EXISTS (SELECT FROM models WHERE models.id = wanted.id AND (models.active OR $2)) LIMIT 1`,
    [models, setBy === 'platform', named ?? []],
  );
  return rows[0] === undefined
    ? null
    : invalid(field, `names the model ${JSON.stringify(rows[0].id)}, which is not in the catalog`);
}

async function readAccess(
  client: PostgresClient,
  scope: ModelAccessScope,
  statement: string,
): Promise<ModelAccess | Refused> {
  const id = idOf(scope);
  if (!areUuids(scope.organizationId, id)) return NOT_FOUND;
  const { rows } = await client.query<ModelAccessRow>(statement, [scope.organizationId, id]);
  return rows[0] === undefined ? NOT_FOUND : toModelAccess(rows[0]);
}

function idOf(scope: ModelAccessScope): string {
  switch (scope.kind) {
    case 'organization':
      return scope.organizationId;
    case 'team':
      return scope.teamId;
    case 'key':
      return scope.keyId;
  }
}
