// Creates, lists, finds, renames and deletes the teams of an organization.

import type { Actor } from '../../../domain/identity/actor.ts';
import { areUuids, labelProblem, slugProblem } from '../../../domain/identity/names.ts';
import type { Team, TeamReference } from '../../../domain/identity/team.ts';
import type { Page, PageParams } from '../../../domain/lists/page.ts';
import { isRefused, type Refused } from '../../../domain/refusals/refused.ts';
import { notifyPrincipalsChanged } from '../changes.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import { recordAudit } from './audit.ts';
import { change, conflict, NOT_FOUND, refuseProblems } from './change.ts';
import { createdAtMs, PAGE_COLUMNS, PAGE_CONDITION, PAGE_ORDER, readPage } from './page.ts';
import { refuseCount } from './refuse-count.ts';

interface TeamRow {
  readonly id: string;
  readonly created_us: string;
  readonly slug: string;
  readonly display_name: string;
}

const COLUMNS = `${PAGE_COLUMNS}, t.slug, coalesce(t.display_name, t.slug) AS display_name`;

export async function createTeam(
  postgres: Postgres,
  actor: Actor,
  {
    organizationId,
    slug,
    displayName = slug,
  }: { organizationId: string; slug: string; displayName?: string | undefined },
): Promise<Team | Refused> {
  const problem = refuseProblems({ slug: slugProblem(slug), displayName: labelProblem(displayName) });
  if (problem !== null) return problem;
  if (!areUuids(organizationId)) return NOT_FOUND;
  return change(postgres, 'slug', async (client) => {
    const full = await refuseCount(client, actor, 'teamsOfOrganization', organizationId);
    if (full !== null) return full;
    const { rows } = await client.query<TeamRow>(
      `INSERT INTO teams AS t (organization_id, slug, display_name) VALUES ($1, $2, $3) RETURNING ${COLUMNS}`,
      [organizationId, slug, displayName],
    );
    const made = toTeam(rows[0] as TeamRow);
    await recordAudit(client, actor, {
      organizationId,
      action: 'team.create',
      target: { kind: 'team', id: made.id },
      after: made,
    });
    return made;
  });
}

export async function listTeams(
  postgres: PostgresClient,
  params: PageParams & { organizationId: string },
): Promise<Page<Team> | Refused> {
  return readPage(
    postgres,
    params,
    `SELECT ${COLUMNS} FROM teams t WHERE ${PAGE_CONDITION} AND t.organization_id = $4 ${PAGE_ORDER}`,
    [params.organizationId],
    toTeam,
  );
}

export async function getTeam(
  postgres: PostgresClient,
  { organizationId, teamId }: TeamReference,
): Promise<Team | Refused> {
  if (!areUuids(organizationId, teamId)) return NOT_FOUND;
  const { rows } = await postgres.query<TeamRow>(
    `SELECT ${COLUMNS} FROM teams t WHERE t.organization_id = $1 AND t.id = $2`,
    [organizationId, teamId],
  );
  return rows[0] === undefined ? NOT_FOUND : toTeam(rows[0]);
}

/** For commands, which refer to teams by slug. */
export async function findTeamBySlug(
  postgres: PostgresClient,
  { organizationId, slug }: { organizationId: string; slug: string },
): Promise<Team | Refused> {
  if (slugProblem(slug) !== null) return NOT_FOUND;
  const { rows } = await postgres.query<TeamRow>(
    `SELECT ${COLUMNS} FROM teams t WHERE t.organization_id = $1 AND t.slug = $2`,
    [organizationId, slug],
  );
  return rows[0] === undefined ? NOT_FOUND : toTeam(rows[0]);
}

export async function updateTeam(
  postgres: Postgres,
  actor: Actor,
  reference: TeamReference,
  { slug, displayName }: { slug?: string | undefined; displayName?: string | undefined },
): Promise<Team | Refused> {
  const problem = refuseProblems({
    slug: slug === undefined ? null : slugProblem(slug),
    displayName: displayName === undefined ? null : labelProblem(displayName),
  });
  if (problem !== null) return problem;
  return change(postgres, 'slug', async (client) => {
    const before = await lockTeam(client, reference);
    if (isRefused(before)) return before;
    const bound =
      slug === undefined || slug === before.slug ? null : await refusePlatformSettings(client, actor, reference);
    if (bound !== null) return bound;
    await client.query(
      'UPDATE teams SET slug = coalesce($2, slug), display_name = coalesce($3, display_name) WHERE id = $1',
      [reference.teamId, slug ?? null, displayName ?? null],
    );
    const after = await getTeam(client, reference);
    await recordAudit(client, actor, {
      organizationId: reference.organizationId,
      action: 'team.update',
      target: { kind: 'team', id: reference.teamId },
      before,
      after,
    });
    return after;
  });
}

/**
 * `conflict`: the team has live keys, which nobody asked to revoke or move, or limits, models or guardrails that the
 * platform set, which would be lost.
 */
export async function deleteTeam(
  postgres: Postgres,
  actor: Actor,
  reference: TeamReference,
): Promise<{ readonly deleted: true } | Refused> {
  return change(postgres, 'slug', async (client) => {
    const before = await lockTeam(client, reference);
    if (isRefused(before)) return before;
    const { organizationId, teamId } = reference;
    const keys = await client.query(
      `SELECT FROM api_keys WHERE organization_id = $1 AND team_id = $2 AND revoked_at IS NULL
        AND (expires_at IS NULL OR expires_at > now()) LIMIT 1`,
      [organizationId, teamId],
    );
    if (keys.rowCount > 0) return conflict('team', 'has keys that are not revoked');
    const bound = await refusePlatformSettings(client, actor, reference);
    if (bound !== null) return bound;
    const { rows: ended } = await client.query<{ id: string }>(
      `UPDATE api_keys SET team_id = NULL, revoked_at = coalesce(revoked_at, now())
        WHERE organization_id = $1 AND team_id = $2 RETURNING id`,
      [organizationId, teamId],
    );
    await client.query('DELETE FROM usage_limits WHERE organization_id = $1 AND team_id = $2', [
      organizationId,
      teamId,
    ]);
    await client.query('DELETE FROM teams WHERE organization_id = $1 AND id = $2', [organizationId, teamId]);
    await recordAudit(client, actor, {
      organizationId,
      action: 'team.delete',
      target: { kind: 'team', id: teamId },
      before: { ...before, endedKeyIds: ended.map(({ id }) => id) },
    });
    await notifyPrincipalsChanged(client, [teamId]);
    return { deleted: true };
  });
}

/**
 * Refuses if the platform has set limits, models or guardrails on the team. Without the team or its slug, a
 * configuration file, which refers to teams by slug, would create a team without these settings. Setting them waits for
 * the lock on the team.
 */
async function refusePlatformSettings(
  client: PostgresClient,
  actor: Actor,
  { organizationId, teamId }: TeamReference,
): Promise<Refused | null> {
  // The command line acts for the operator.
  if (actor.kind !== 'token') return null;
  const { rowCount } = await client.query(
    `SELECT FROM usage_limits WHERE organization_id = $1 AND team_id = $2 AND set_by = 'platform'
      UNION ALL SELECT FROM teams WHERE organization_id = $1 AND id = $2 AND platform_allowed_models IS NOT NULL
      UNION ALL SELECT FROM guardrail_assignments
        WHERE organization_id = $1 AND team_id = $2 AND set_by = 'platform'`,
    [organizationId, teamId],
  );
  return rowCount === 0 ? null : conflict('team', 'has limits, models or guardrails that the platform set');
}

/** Returns the team and locks it. Concurrent transactions that add something to the team wait for this change. */
async function lockTeam(client: PostgresClient, { organizationId, teamId }: TeamReference): Promise<Team | Refused> {
  if (!areUuids(organizationId, teamId)) return NOT_FOUND;
  await client.query('SELECT FROM teams WHERE organization_id = $1 AND id = $2 FOR UPDATE', [organizationId, teamId]);
  return getTeam(client, { organizationId, teamId });
}

function toTeam(row: TeamRow): Team {
  return {
    id: row.id,
    slug: row.slug,
    displayName: row.display_name,
    createdAtMs: createdAtMs(row),
  };
}
