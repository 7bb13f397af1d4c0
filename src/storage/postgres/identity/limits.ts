// Reads and sets the usage limits of an organization, or of a team, user or key in it. Limits of the platform and of
// the organization are listed together. Each of the two replaces its own limits as a whole.

import type { UsageLimit } from '../../../domain/configuration/configuration.ts';
import type { Actor } from '../../../domain/identity/actor.ts';
import type { LimitScope } from '../../../domain/identity/limit-scope.ts';
import type { Limits, ReplaceLimitsParams, SetLimit } from '../../../domain/identity/limits.ts';
import { areUuids } from '../../../domain/identity/names.ts';
import type { PrincipalLimit } from '../../../domain/identity/principal.ts';
import type { SetBy } from '../../../domain/identity/set-by.ts';
import { formatUsdString } from '../../../domain/money/format.ts';
import { picoUsd } from '../../../domain/money/pico-usd.ts';
import type { BudgetWindow } from '../../../domain/quotas/limit-kinds.ts';
import { isRefused, type Refused } from '../../../domain/refusals/refused.ts';
import { notifyPrincipalsChanged } from '../changes.ts';
import { revokeLeases } from '../ledger/wallets.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import { recordAudit } from './audit.ts';
import { change, invalid, NOT_FOUND } from './change.ts';
import { refuseUnknownModels } from './model-access.ts';

/** Finds a scope: `$1` is the organization, `$2` the scope's own id. */
const FIND_SCOPE = {
  organization: 'SELECT FROM organizations WHERE id = $1 AND id = $2',
  team: 'SELECT FROM teams WHERE organization_id = $1 AND id = $2',
  user: 'SELECT FROM memberships WHERE organization_id = $1 AND user_id = $2 AND team_id IS NULL',
  key: 'SELECT FROM api_keys WHERE organization_id = $1 AND id = $2',
} as const;
const OF_SCOPE = `organization_id = $1 AND team_id IS NOT DISTINCT FROM $2::uuid
  AND user_id IS NOT DISTINCT FROM $3::uuid AND api_key_id IS NOT DISTINCT FROM $4::uuid`;
const AMOUNT_MAX = 10n ** 38n - 1n;

export async function listLimits(postgres: PostgresClient, scope: LimitScope): Promise<Limits | Refused> {
  return (await scopeExists(postgres, scope, FIND_SCOPE[scope.kind]))
    ? { items: await readLimits(postgres, scope) }
    : NOT_FOUND;
}

/** The limits of a scope in the form that requests use, with their ids. */
export async function listLimitsOfScope(
  postgres: PostgresClient,
  scope: LimitScope,
): Promise<readonly PrincipalLimit[] | Refused> {
  if (!(await scopeExists(postgres, scope, FIND_SCOPE[scope.kind]))) return NOT_FOUND;
  const { rows } = await postgres.query<Omit<PrincipalLimit, 'amount' | 'scope'> & { readonly amount: string }>(
    `SELECT id, set_by AS "setBy", kind, time_window AS window, amount::text, model FROM usage_limits
      WHERE ${OF_SCOPE} ORDER BY set_by DESC, kind, time_window, model NULLS FIRST`,
    [...columnsOf(scope)],
  );
  return rows.map((row) => ({ ...row, scope: scope.kind, amount: BigInt(row.amount) }));
}

/** A limit of a team, user or key, and the name of that scope: `team research`. */
export interface LimitBelow extends Pick<SetLimit, 'setBy'> {
  readonly limit: UsageLimit;
  readonly scope: string;
}

/** The limits of the teams, users and keys of an organization. */
export async function listLimitsBelow(
  postgres: PostgresClient,
  organizationId: string,
): Promise<readonly LimitBelow[]> {
  const { rows } = await postgres.query<LimitRow & { readonly scope: string }>(
    `SELECT l.id, l.kind, l.time_window, l.amount, l.model, l.set_by,
            CASE WHEN l.team_id IS NOT NULL THEN 'team ' || team.slug
                 WHEN l.user_id IS NOT NULL THEN 'user ' || users.email
                 ELSE 'key ' || key.name END AS scope
       FROM usage_limits l LEFT JOIN teams team ON team.id = l.team_id LEFT JOIN users ON users.id = l.user_id
       LEFT JOIN api_keys key ON key.id = l.api_key_id
      WHERE l.organization_id = $1 AND (l.team_id IS NOT NULL OR l.user_id IS NOT NULL OR l.api_key_id IS NOT NULL)
      ORDER BY l.team_id IS NULL, l.user_id IS NULL, scope, l.set_by DESC, l.kind, l.time_window, l.model NULLS FIRST`,
    [organizationId],
  );
  return rows.map((row) => ({ limit: toLimit(row), setBy: row.set_by, scope: row.scope }));
}

export async function replaceLimits(
  postgres: Postgres,
  actor: Actor,
  scope: LimitScope,
  { setBy, limits }: ReplaceLimitsParams,
): Promise<Limits | Refused> {
  return changeLimits(postgres, actor, scope, { setBy, next: () => limits });
}

/**
 * Replaces the limits that `setBy` set by the result of `next`, which gets the previous ones while they are locked. Two
 * limits of one kind, window and model are `invalid`. A limit above the other party's limit is valid: it takes effect
 * when that one is raised or removed.
 */
export async function changeLimits(
  postgres: Postgres,
  actor: Actor,
  scope: LimitScope,
  {
    setBy,
    next,
  }: { readonly setBy: SetBy; readonly next: (before: readonly UsageLimit[]) => readonly UsageLimit[] | Refused },
): Promise<Limits | Refused> {
  return change(postgres, 'limits', async (client) => {
    if (!(await scopeExists(client, scope, `${FIND_SCOPE[scope.kind]} FOR NO KEY UPDATE`))) return NOT_FOUND;
    const before = await readLimits(client, scope);
    const own = before.filter((limit) => limit.setBy === setBy);
    const limits = next(own);
    if (isRefused(limits)) return limits;
    const problem = limitsProblem(limits);
    if (problem !== null) return invalid('limits', problem);
    const models = { setBy, models: modelsOf(limits), named: modelsOf(own) };
    const unknown = await refuseUnknownModels(client, models, 'limits');
    if (unknown !== null) return unknown;
    await storeLimits(client, scope, { setBy, limits });
    const after = await readLimits(client, scope);
    const target = { kind: scope.kind, id: idOf(scope) };
    const { organizationId } = scope;
    await recordAudit(client, actor, {
      organizationId,
      action: 'limits.replace',
      target,
      before: before.map(toPlain),
      after: after.map(toPlain),
    });
    await notifyPrincipalsChanged(client, [idOf(scope)]);
    return { items: after };
  });
}

function modelsOf(limits: readonly UsageLimit[]): readonly string[] {
  return limits.flatMap(({ model }) => model ?? []);
}

/**
 * Stores exactly these limits for `setBy` on a scope; returns whether something changed. A limit that stays keeps its
 * id, and with it its recorded use. Leases of a lowered or removed limit are revoked. The caller must have locked the
 * scope's row.
 */
export async function storeLimits(
  client: PostgresClient,
  scope: LimitScope,
  { setBy, limits }: ReplaceLimitsParams,
): Promise<boolean> {
  const { rows: stored } = await client.query<LimitRow>(`${SELECT_LIMITS} AND set_by = $5`, [
    ...columnsOf(scope),
    setBy,
  ]);
  const wanted = new Map(limits.map((limit) => [nameOf(limit), limit]));
  const kept = new Set<string>();
  const lowered: string[] = [];
  let changed = false;
  for (const row of stored) {
    const name = nameOf(toLimit(row));
    const limit = wanted.get(name);
    kept.add(name);
    if (limit?.limit === BigInt(row.amount)) continue;
    changed = true;
    if (limit === undefined) await client.query('DELETE FROM usage_limits WHERE id = $1', [row.id]);
    else await client.query('UPDATE usage_limits SET amount = $2 WHERE id = $1', [row.id, limit.limit.toString()]);
    if (limit === undefined || limit.limit < BigInt(row.amount)) lowered.push(row.id);
  }
  for (const [name, limit] of wanted) {
    if (kept.has(name)) continue;
    changed = true;
    await client.query(
      `INSERT INTO usage_limits (organization_id, team_id, user_id, api_key_id, kind, time_window, amount, model,
        set_by)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
      [...columnsOf(scope), limit.kind, windowOf(limit), limit.limit.toString(), limit.model ?? null, setBy],
    );
  }
  await revokeLeases(client, lowered);
  return changed;
}

/** Stores these limits for `setBy` beside the others that it set on the scope; returns whether something changed. */
export async function addLimits(
  client: PostgresClient,
  scope: LimitScope,
  { setBy, limits }: ReplaceLimitsParams,
): Promise<boolean> {
  const added = new Set(limits.map(nameOf));
  const others = (await readLimits(client, scope)).filter(
    (limit) => limit.setBy === setBy && !added.has(nameOf(limit)),
  );
  return storeLimits(client, scope, { setBy, limits: [...others, ...limits] });
}

function limitsProblem(limits: readonly UsageLimit[]): string | null {
  if (new Set(limits.map(nameOf)).size !== limits.length) return 'must have at most one of each kind, window and model';
  return limits.some(({ limit }) => limit < 0n || limit > AMOUNT_MAX) ? 'must not be negative' : null;
}

async function scopeExists(client: PostgresClient, scope: LimitScope, statement: string): Promise<boolean> {
  const id = idOf(scope);
  if (!areUuids(scope.organizationId, id)) return false;
  const { rowCount } = await client.query(statement, [scope.organizationId, id]);
  return rowCount > 0;
}

interface LimitRow {
  readonly id: string;
  readonly kind: UsageLimit['kind'];
  readonly time_window: BudgetWindow | null;
  readonly amount: string;
  readonly model: string | null;
  readonly set_by: SetBy;
}

const SELECT_LIMITS = `SELECT id, kind, time_window, amount, model, set_by FROM usage_limits WHERE ${OF_SCOPE}`;

async function readLimits(client: PostgresClient, scope: LimitScope): Promise<readonly SetLimit[]> {
  const { rows } = await client.query<LimitRow>(
    `${SELECT_LIMITS} ORDER BY set_by DESC, kind, time_window, model NULLS FIRST`,
    columnsOf(scope),
  );
  return rows.map((row) => ({ ...toLimit(row), setBy: row.set_by }));
}

function toLimit({ kind, time_window, amount, model }: LimitRow): UsageLimit {
  const ofModel = model === null ? {} : { model };
  if (kind === 'budget') return { kind, window: time_window ?? 'month', limit: picoUsd(BigInt(amount)), ...ofModel };
  return { kind, limit: BigInt(amount), ...ofModel };
}

/** Each party can have only one limit of this name on a scope. */
function nameOf(limit: UsageLimit): string {
  return JSON.stringify([limit.kind, windowOf(limit), limit.model]);
}

function windowOf(limit: UsageLimit): string | null {
  return limit.kind === 'budget' ? limit.window : null;
}

/** The limit as the audit log shows it: dollars for a budget, else a whole number. */
function toPlain(limit: UsageLimit): object {
  return { ...limit, limit: limit.kind === 'budget' ? formatUsdString(limit.limit) : limit.limit.toString() };
}

/** The columns organization, team, user and key. */
function columnsOf(scope: LimitScope): readonly (string | null)[] {
  return [
    scope.organizationId,
    scope.kind === 'team' ? scope.teamId : null,
    scope.kind === 'user' ? scope.userId : null,
    scope.kind === 'key' ? scope.keyId : null,
  ];
}

function idOf(scope: LimitScope): string {
  return columnsOf(scope)
    .filter((id) => id !== null)
    .at(-1) as string;
}
