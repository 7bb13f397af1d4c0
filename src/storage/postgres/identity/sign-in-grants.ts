// Records in sign_in_grants which memberships, and which platform administration, came from groups of OpenID providers.

import type { MemberScope } from '../../../domain/identity/member.ts';
import type { PostgresClient } from '../pool.ts';

/** What the groups of one provider gave one person. The scope null stands for platform administration. */
export class Grants {
  private readonly postgres: PostgresClient;
  private readonly of: readonly [provider: string, userId: string];

  constructor(postgres: PostgresClient, provider: string, userId: string) {
    this.postgres = postgres;
    this.of = [provider, userId];
  }

  async add(scope: MemberScope | null): Promise<void> {
    await this.postgres.query(
      `INSERT INTO sign_in_grants (provider, user_id, organization_id, team_id) VALUES ($1, $2, $3, $4)
       ON CONFLICT DO NOTHING`,
      this.row(scope),
    );
  }

  async has(scope: MemberScope | null): Promise<boolean> {
    const { rowCount } = await this.postgres.query(
      `SELECT FROM sign_in_grants WHERE provider = $1 AND user_id = $2
         AND organization_id IS NOT DISTINCT FROM $3::uuid AND team_id IS NOT DISTINCT FROM $4::uuid`,
      this.row(scope),
    );
    return rowCount > 0;
  }

  /** Teams before their organizations. */
  async list(): Promise<readonly MemberScope[]> {
    const { rows } = await this.postgres.query<{ organization_id: string; team_id: string | null }>(
      `SELECT organization_id, team_id FROM sign_in_grants
        WHERE provider = $1 AND user_id = $2 AND organization_id IS NOT NULL ORDER BY team_id NULLS LAST`,
      [...this.of],
    );
    return rows.map((row) => ({ organizationId: row.organization_id, teamId: row.team_id }));
  }

  private row(scope: MemberScope | null): (string | null)[] {
    return [...this.of, scope?.organizationId ?? null, scope?.teamId ?? null];
  }
}

/**
 * Must run in the transaction that removes a membership (for an organization, with those of its teams), whoever removes
 * it. A grant that stayed would make a membership that somebody adds by hand later look like one from groups.
 */
export async function forgetGrants(client: PostgresClient, userId: string, scope: MemberScope | null): Promise<void> {
  await client.query(
    `DELETE FROM sign_in_grants WHERE user_id = $1 AND organization_id IS NOT DISTINCT FROM $2::uuid
       AND ($3::uuid IS NULL OR team_id = $3)`,
    [userId, scope?.organizationId ?? null, scope?.teamId ?? null],
  );
}
