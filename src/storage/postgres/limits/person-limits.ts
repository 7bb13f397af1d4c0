// Reads the limits that apply to a person who uses an access token: the organization's and the person's own. The limits
// of a key are read with the key (credentials.ts).

import type { PrincipalLimit } from '../../../domain/identity/principal.ts';
import type { PostgresClient } from '../pool.ts';

type LimitRow = Omit<PrincipalLimit, 'amount'> & { readonly amount: string };

export async function listLimitsOfPerson(
  postgres: PostgresClient,
  { organizationId, userId }: { organizationId: string; userId: string | null },
): Promise<PrincipalLimit[]> {
  const { rows } = await postgres.query<LimitRow>(
    `SELECT id, CASE WHEN user_id IS NULL THEN 'organization' ELSE 'user' END AS scope, set_by AS "setBy", kind,
            time_window AS window, amount::text, model
       FROM usage_limits
      WHERE organization_id = $1 AND team_id IS NULL AND api_key_id IS NULL AND (user_id IS NULL OR user_id = $2)
      ORDER BY scope, set_by DESC, kind, time_window, model`,
    [organizationId, userId],
  );
  return rows.map((row) => ({ ...row, amount: BigInt(row.amount) }));
}
