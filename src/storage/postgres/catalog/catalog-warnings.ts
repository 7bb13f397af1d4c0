// Reads what the warnings about the catalog depend on: the catalog, and the organizations that are billed.

import { type BilledOrganization, findWarnings } from '../../../domain/configuration/find-warnings.ts';
import type { PostgresClient } from '../pool.ts';
import { readCatalogStates } from './catalog-states.ts';

export async function readWarnings(client: PostgresClient): Promise<readonly string[]> {
  const states = await readCatalogStates(client);
  const { rows } = await client.query<BilledOrganization & Record<string, unknown>>(
    `SELECT slug, allowed_models AS "allowedModels" FROM organizations WHERE billing = 'prepaid' ORDER BY slug`,
  );
  return findWarnings(states, rows);
}
