// Finds the names of organizations, teams, users and keys for the rows of reports, which contain only their ids.

import { OWNERS, type Owner, type OwnerNames } from '../../../domain/reports/owners.ts';
import type { PostgresClient } from '../pool.ts';

interface NameRow {
  readonly owner: Owner;
  readonly id: string;
  readonly name: string;
}

/**
 * `organizationId`: only this organization and its teams and keys get names; null: all do. Users get names in either
 * case, since their ids come from requests that the reader may see.
 */
export async function findOwnerNames(
  postgres: PostgresClient,
  organizationId: string | null,
  ids: Readonly<Record<Owner, readonly string[]>>,
): Promise<OwnerNames> {
  const { rows } = await postgres.query<NameRow>(
    `SELECT 'organization' AS owner, id, slug AS name FROM organizations
      WHERE id = ANY ($2::uuid[]) AND ($1::uuid IS NULL OR id = $1)
     UNION ALL
     SELECT 'team', id, slug FROM teams WHERE id = ANY ($3::uuid[]) AND ($1::uuid IS NULL OR organization_id = $1)
     UNION ALL
     SELECT 'user', id, email FROM users WHERE id = ANY ($4::uuid[])
     UNION ALL
     SELECT 'api_key', id, name FROM api_keys
      WHERE id = ANY ($5::uuid[]) AND ($1::uuid IS NULL OR organization_id = $1)`,
    [organizationId, ...OWNERS.map((owner) => ids[owner])],
  );
  const names = Object.fromEntries(OWNERS.map((owner) => [owner, new Map<string, string>()]));
  for (const { owner, id, name } of rows) names[owner]?.set(id, name);
  return names as Record<Owner, Map<string, string>>;
}
