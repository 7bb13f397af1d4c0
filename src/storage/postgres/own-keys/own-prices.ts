// Stores what models cost an organization at its own providers. Requests on its own keys are rated by these prices,
// which are stored in the terms of the configuration file.

import {
  type PriceFields,
  priceSchema,
  readPrice,
  writeRates,
  writeTerms,
} from '../../../domain/configuration/schema/price-schema.ts';
import type { Actor } from '../../../domain/identity/actor.ts';
import { areUuids } from '../../../domain/identity/names.ts';
import type { ModelKind } from '../../../domain/models/apis.ts';
import type { Price } from '../../../domain/models/price.ts';
import { type OwnModelPrice, problemOfWords } from '../../../domain/own-keys/own-model-price.ts';
import type { Refused } from '../../../domain/refusals/refused.ts';
import { notifyOwnKeysChanged } from '../changes.ts';
import { recordAudit } from '../identity/audit.ts';
import { change, invalid, NOT_FOUND } from '../identity/change.ts';
import { refuseUnknownModels } from '../identity/model-access.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import { lockOrganization } from './byok-settings.ts';

interface PriceRow extends Record<string, unknown> {
  readonly model_id: string;
  readonly version: string;
  readonly price: Readonly<Record<string, unknown>>;
  readonly kind: ModelKind;
}

const FOUND = `SELECT p.model_id, p.version, p.price, m.kind FROM own_model_prices p JOIN models m ON m.id = p.model_id
  WHERE p.organization_id = $1`;
const LISTED = `${FOUND} ORDER BY p.model_id`;
const PRICES_MAX = 1_000;

export async function listOwnPrices(
  postgres: PostgresClient,
  organizationId: string,
): Promise<readonly OwnModelPrice[]> {
  const { rows } = await postgres.query<PriceRow>(LISTED, [organizationId]);
  return rows.map(toOwnPrice);
}

function toOwnPrice(row: PriceRow): OwnModelPrice {
  return { model: row.model_id, words: row.price, price: toPrice(row) };
}

function toPrice({ kind, price, version }: PriceRow): Price {
  return { ...readPrice(kind, priceSchema.parse(price)), version };
}

export async function putOwnPrice(
  postgres: Postgres,
  actor: Actor,
  { organizationId, model, fields }: { organizationId: string; model: string; fields: PriceFields },
): Promise<OwnModelPrice | Refused> {
  if (!areUuids(organizationId)) return NOT_FOUND;
  return change(postgres, 'model', async (client) => {
    const refused = await lockOrganization(client, organizationId);
    if (refused !== null) return refused;
    const priced = { setBy: 'organization', models: [model] } as const;
    if ((await refuseUnknownModels(client, priced)) !== null) return NOT_FOUND;
    const before = await getOwnPrice(client, organizationId, model);
    if (before === null && (await countOwnPrices(client, organizationId)) >= PRICES_MAX)
      return invalid('model', `is one too many: ${PRICES_MAX} models have prices`);
    const stored = await storeOwnPrice(client, { organizationId, model, fields });
    if (typeof stored === 'object') return invalid('price', stored.problem);
    const after = await getOwnPrice(client, organizationId, model);
    const changed = { before: before?.words, after: after?.words };
    const target = { kind: 'own_model_price', id: model } as const;
    await recordAudit(client, actor, { organizationId, action: 'own_model_price.put', target, ...changed });
    await notifyOwnKeysChanged(client, organizationId);
    return after ?? NOT_FOUND;
  });
}

async function countOwnPrices(client: PostgresClient, organizationId: string): Promise<number> {
  const { rows } = await client.query<{ count: number }>(
    'SELECT count(*)::integer AS count FROM own_model_prices WHERE organization_id = $1',
    [organizationId],
  );
  return rows[0]?.count ?? 0;
}

/** Must run in the transaction of a change. An equal price keeps its version. */
export async function storeOwnPrice(
  client: PostgresClient,
  { organizationId, model, fields }: { organizationId: string; model: string; fields: PriceFields },
): Promise<'stored' | 'no_such_model' | { readonly problem: string }> {
  const { rows } = await client.query<{ kind: ModelKind }>('SELECT kind FROM models WHERE id = $1', [model]);
  const kind = rows[0]?.kind;
  if (kind === undefined) return 'no_such_model';
  const { terms, ...rates } = readPrice(kind, fields);
  const words = { ...writeRates(rates), ...(terms === undefined ? {} : writeTerms(terms)) };
  const problem = problemOfWords(words);
  if (problem !== null) return { problem };
  await client.query(
    `INSERT INTO own_model_prices AS p (organization_id, model_id, price) VALUES ($1, $2, $3)
     ON CONFLICT (organization_id, model_id) DO UPDATE SET price = excluded.price, version = excluded.version
       WHERE p.price <> excluded.price`,
    [organizationId, model, JSON.stringify(words)],
  );
  return 'stored';
}

export async function getOwnPrice(
  postgres: PostgresClient,
  organizationId: string,
  model: string,
): Promise<OwnModelPrice | null> {
  const { rows } = await postgres.query<PriceRow>(`${FOUND} AND p.model_id = $2`, [organizationId, model]);
  return rows[0] === undefined ? null : toOwnPrice(rows[0]);
}

export async function removeOwnPrice(
  postgres: Postgres,
  actor: Actor,
  { organizationId, model }: { organizationId: string; model: string },
): Promise<{ readonly removed: true } | Refused> {
  if (!areUuids(organizationId)) return NOT_FOUND;
  return change(postgres, 'model', async (client) => {
    const { rows } = await client.query<{ price: object }>(
      'DELETE FROM own_model_prices WHERE organization_id = $1 AND model_id = $2 RETURNING price',
      [organizationId, model],
    );
    if (rows[0] === undefined) return NOT_FOUND;
    const target = { kind: 'own_model_price', id: model } as const;
    const action = 'own_model_price.remove';
    await recordAudit(client, actor, { organizationId, action, target, before: rows[0].price });
    await notifyOwnKeysChanged(client, organizationId);
    return { removed: true };
  });
}
