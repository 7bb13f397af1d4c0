// Reads and sets what the platform lets an organization do with own provider keys, and what the organization chooses.

import type { Actor } from '../../../domain/identity/actor.ts';
import { areUuids } from '../../../domain/identity/names.ts';
import { formatUsdString } from '../../../domain/money/format.ts';
import { picoUsd } from '../../../domain/money/pico-usd.ts';
import {
  BYOK_DEFAULTS,
  type ByokChoices,
  type ByokFee,
  type ByokGrant,
  type ByokSettings,
  grantProblem,
} from '../../../domain/own-keys/byok-settings.ts';
import { isRefused, type Refused } from '../../../domain/refusals/refused.ts';
import { notifyOwnKeysChanged } from '../changes.ts';
import { recordAudit } from '../identity/audit.ts';
import { change, invalid, NOT_FOUND } from '../identity/change.ts';
import type { Postgres, PostgresClient } from '../pool.ts';

interface SettingsRow extends Record<string, unknown> {
  readonly enabled: boolean;
  readonly kinds: string[] | null;
  readonly custom_base_url: boolean;
  readonly fee_kind: ByokFee['kind'] | null;
  readonly fee_basis_points: number | null;
  readonly fee_per_request: string | null;
  readonly credentials_max: number;
  readonly fallback: boolean;
  readonly classifier: ByokChoices['classifier'];
  readonly budgets: ByokChoices['budgets'];
}

const READ = `SELECT enabled, kinds, custom_base_url, fee_kind, fee_basis_points, fee_per_request::text,
    credentials_max, fallback, classifier, budgets
  FROM byok_settings WHERE organization_id = $1`;

export async function readByokSettings(client: PostgresClient, organizationId: string): Promise<ByokSettings> {
  const { rows } = await client.query<SettingsRow>(READ, [organizationId]);
  return rows[0] === undefined ? BYOK_DEFAULTS : toSettings(rows[0]);
}

/** `not_found`: the organization does not exist. */
export async function getByokSettings(
  postgres: PostgresClient,
  organizationId: string,
): Promise<ByokSettings | Refused> {
  if (!areUuids(organizationId)) return NOT_FOUND;
  const { rowCount } = await postgres.query('SELECT FROM organizations WHERE id = $1', [organizationId]);
  return rowCount === 0 ? NOT_FOUND : readByokSettings(postgres, organizationId);
}

function toSettings(row: SettingsRow): ByokSettings {
  return {
    enabled: row.enabled,
    kinds: row.kinds,
    customBaseUrl: row.custom_base_url,
    fee: toFee(row),
    credentialsMax: row.credentials_max,
    fallback: row.fallback,
    classifier: row.classifier,
    budgets: row.budgets,
  };
}

function toFee({ fee_basis_points: basisPoints, fee_per_request: amount }: SettingsRow): ByokFee | null {
  if (basisPoints !== null) return { kind: 'percent', basisPoints };
  return amount === null ? null : { kind: 'per_request', amount: picoUsd(BigInt(amount)) };
}

export async function setByokGrant(
  postgres: Postgres,
  actor: Actor,
  { organizationId, ...grant }: Partial<ByokGrant> & { readonly organizationId: string },
): Promise<ByokSettings | Refused> {
  return setSettings(postgres, actor, organizationId, { action: 'byok.grant', changed: grant });
}

export async function setByokChoices(
  postgres: Postgres,
  actor: Actor,
  { organizationId, ...choices }: Partial<ByokChoices> & { readonly organizationId: string },
): Promise<ByokSettings | Refused> {
  return setSettings(postgres, actor, organizationId, { action: 'byok.settings', changed: choices });
}

async function setSettings(
  postgres: Postgres,
  actor: Actor,
  organizationId: string,
  { action, changed }: { action: 'byok.grant' | 'byok.settings'; changed: Partial<ByokSettings> },
): Promise<ByokSettings | Refused> {
  if (!areUuids(organizationId)) return NOT_FOUND;
  return change(postgres, 'byok', async (client) => {
    const refused = await lockOrganization(client, organizationId);
    if (refused !== null) return refused;
    const before = await readByokSettings(client, organizationId);
    const after = await writeChanged(client, organizationId, changed);
    if (isRefused(after) || show(before) === show(after)) return after;
    const target = { kind: 'byok', id: organizationId } as const;
    const shown = { before: JSON.parse(show(before)) as object, after: JSON.parse(show(after)) as object };
    await recordAudit(client, actor, { organizationId, action, target, ...shown });
    await notifyOwnKeysChanged(client, organizationId);
    return after;
  });
}

/** Writes the given settings and keeps the others. Must run in the transaction of a change. */
export async function writeChanged(
  client: PostgresClient,
  organizationId: string,
  changed: Partial<ByokSettings>,
): Promise<ByokSettings | Refused> {
  const before = await readByokSettings(client, organizationId);
  const after = { ...before, ...withoutUndefined(changed) };
  const problem = grantProblem(after);
  if (problem !== null) return invalid('fee', problem);
  if (show(before) !== show(after)) await writeSettings(client, organizationId, after);
  return after;
}

/** Locks the organization, so that changes of its own keys and settings happen one after another. */
export async function lockOrganization(client: PostgresClient, organizationId: string): Promise<Refused | null> {
  const { rowCount } = await client.query('SELECT FROM organizations WHERE id = $1 FOR NO KEY UPDATE', [
    organizationId,
  ]);
  return rowCount === 0 ? NOT_FOUND : null;
}

function withoutUndefined(changed: Partial<ByokSettings>): Partial<ByokSettings> {
  return Object.fromEntries(Object.entries(changed).filter(([, value]) => value !== undefined));
}

async function writeSettings(client: PostgresClient, organizationId: string, settings: ByokSettings): Promise<void> {
  const { fee } = settings;
  await client.query(
    `INSERT INTO byok_settings (organization_id, enabled, kinds, custom_base_url, fee_kind, fee_basis_points,
       fee_per_request, credentials_max, fallback, classifier, budgets)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
     ON CONFLICT (organization_id) DO UPDATE
       SET (enabled, kinds, custom_base_url, fee_kind, fee_basis_points, fee_per_request, credentials_max, fallback,
            classifier, budgets)
         = (excluded.enabled, excluded.kinds, excluded.custom_base_url, excluded.fee_kind, excluded.fee_basis_points,
            excluded.fee_per_request, excluded.credentials_max, excluded.fallback, excluded.classifier,
            excluded.budgets)`,
    [
      organizationId,
      settings.enabled,
      settings.kinds,
      settings.customBaseUrl,
      fee?.kind ?? null,
      fee?.kind === 'percent' ? fee.basisPoints : null,
      fee?.kind === 'per_request' ? fee.amount : null,
      settings.credentialsMax,
      settings.fallback,
      settings.classifier,
      settings.budgets,
    ],
  );
}

/** The settings as the audit log shows them, with amounts in dollars. */
function show({ fee, ...settings }: ByokSettings): string {
  const shownFee = fee?.kind === 'per_request' ? { ...fee, amount: formatUsdString(fee.amount) } : fee;
  return JSON.stringify({ ...settings, fee: shownFee });
}

/** null: the organization may use own keys. */
export function refuseDisabled(settings: ByokSettings | Refused): Refused | null {
  if (isRefused(settings)) return settings;
  return settings.enabled ? null : { refused: 'byok_disabled' };
}
