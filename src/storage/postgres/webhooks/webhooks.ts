// Reads and sets the webhooks of organizations: the address that is notified when a charge is final, and its secret.
// webhook-deliveries.ts has the messages.

import type { Actor } from '../../../domain/identity/actor.ts';
import { areUuids } from '../../../domain/identity/names.ts';
import { isRefused, type Refused } from '../../../domain/refusals/refused.ts';
import type { SetWebhookParams, Webhook, WebhookWithSecret } from '../../../domain/webhooks/webhook.ts';
import { generateWebhookSecret } from '../../../domain/webhooks/webhook-signature.ts';
import { recordAudit } from '../identity/audit.ts';
import { change, NOT_FOUND } from '../identity/change.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import type { SecretBox } from '../secret-box.ts';

interface WebhookRow {
  readonly url: string;
  readonly active: boolean;
  readonly created_ms: number;
  readonly waiting: number;
  readonly dead: number;
  readonly last_success_ms: number | null;
  readonly last_error_ms: number | null;
  readonly last_error: string | null;
}

const READ_WEBHOOK = `
  SELECT url, active, (extract(epoch FROM created_at) * 1000)::double precision AS created_ms,
         (SELECT count(*) FROM webhook_deliveries d WHERE d.organization_id = w.organization_id
           AND next_attempt_at IS NOT NULL)::integer AS waiting,
         (SELECT count(*) FROM webhook_deliveries d WHERE d.organization_id = w.organization_id
           AND next_attempt_at IS NULL)::integer AS dead,
         (extract(epoch FROM last_success_at) * 1000)::double precision AS last_success_ms,
         (extract(epoch FROM last_error_at) * 1000)::double precision AS last_error_ms, last_error
    FROM webhooks w WHERE organization_id = $1`;

export async function getWebhook(postgres: PostgresClient, organizationId: string): Promise<Webhook | Refused> {
  if (!areUuids(organizationId)) return NOT_FOUND;
  const { rows } = await postgres.query<WebhookRow>(READ_WEBHOOK, [organizationId]);
  const row = rows[0];
  if (row === undefined) return NOT_FOUND;
  return {
    url: row.url,
    active: row.active,
    createdAtMs: Math.floor(row.created_ms),
    waiting: row.waiting,
    dead: row.dead,
    lastSuccessAtMs: floorOrNull(row.last_success_ms),
    lastErrorAtMs: floorOrNull(row.last_error_ms),
    lastError: row.last_error,
  };
}

export async function setWebhook(
  postgres: Postgres,
  box: SecretBox,
  actor: Actor,
  params: SetWebhookParams,
): Promise<WebhookWithSecret | Refused> {
  const { organizationId, url, active } = params;
  if (!areUuids(organizationId)) return NOT_FOUND;
  return change(postgres, 'webhook', async (client) => {
    const organization = await client.query('SELECT FROM organizations WHERE id = $1 FOR NO KEY UPDATE', [
      organizationId,
    ]);
    if (organization.rowCount === 0) return NOT_FOUND;
    const before = await getWebhook(client, organizationId);
    const secret = params.secret ?? (isRefused(before) ? generateWebhookSecret() : null);
    await storeWebhook(client, box, { organizationId, url, active, secret });
    const after = await getWebhook(client, organizationId);
    if (isRefused(after)) return after;
    await auditWebhook(client, actor, organizationId, 'webhook.set', isRefused(before) ? null : before, after);
    return { ...after, secret };
  });
}

/** `secret` null keeps the present secret. Pauses end, so that the new settings are tried at once. */
async function storeWebhook(
  client: PostgresClient,
  box: SecretBox,
  {
    organizationId,
    url,
    active,
    secret,
  }: { organizationId: string; url: string; active: boolean; secret: string | null },
): Promise<void> {
  const sealed = secret === null ? null : box.seal(secret, sealedFor(organizationId));
  await client.query(
    `INSERT INTO webhooks (organization_id, url, active, secret_sealed) VALUES ($1, $2, $3, coalesce($4, ''::bytea))
     ON CONFLICT (organization_id) DO UPDATE SET url = excluded.url, active = excluded.active,
       secret_sealed = coalesce($4, webhooks.secret_sealed), failures = 0, paused_until = NULL`,
    [organizationId, url, active, sealed],
  );
}

/** Sets the webhook of a configuration file, unless it is set already. */
export async function applyWebhook(
  client: PostgresClient,
  box: SecretBox,
  configured: { organizationId: string; url: string; active: boolean | null; secret: string },
): Promise<void> {
  const { rows } = await client.query<{ url: string; active: boolean; secret_sealed: Buffer }>(
    'SELECT url, active, secret_sealed FROM webhooks WHERE organization_id = $1 FOR UPDATE',
    [configured.organizationId],
  );
  const present = rows[0];
  const wanted = { ...configured, active: configured.active ?? present?.active ?? true };
  const isUnchanged =
    present !== undefined &&
    present.url === wanted.url &&
    present.active === wanted.active &&
    openSecret(box, wanted.organizationId, present.secret_sealed) === wanted.secret;
  if (!isUnchanged) await storeWebhook(client, box, wanted);
}

export async function rotateWebhookSecret(
  postgres: Postgres,
  box: SecretBox,
  actor: Actor,
  organizationId: string,
): Promise<WebhookWithSecret | Refused> {
  if (!areUuids(organizationId)) return NOT_FOUND;
  return change(postgres, 'webhook', async (client) => {
    const found = await getWebhook(client, organizationId);
    if (isRefused(found)) return found;
    const secret = generateWebhookSecret();
    await storeWebhook(client, box, { organizationId, url: found.url, active: found.active, secret });
    await auditWebhook(client, actor, organizationId, 'webhook.rotate_secret', null, null);
    return { ...found, secret };
  });
}

export async function removeWebhook(
  postgres: Postgres,
  actor: Actor,
  organizationId: string,
): Promise<{ readonly removed: true } | Refused> {
  if (!areUuids(organizationId)) return NOT_FOUND;
  return change(postgres, 'webhook', async (client) => {
    const before = await getWebhook(client, organizationId);
    if (isRefused(before)) return before;
    await client.query('DELETE FROM webhooks WHERE organization_id = $1', [organizationId]);
    await client.query('DELETE FROM webhook_deliveries WHERE organization_id = $1', [organizationId]);
    await auditWebhook(client, actor, organizationId, 'webhook.remove', before, null);
    return { removed: true };
  });
}

/** Queues messages that were given up again, beginning with the first attempt. */
export async function redeliverWebhooks(
  postgres: Postgres,
  actor: Actor,
  organizationId: string,
): Promise<{ readonly requeued: number } | Refused> {
  if (!areUuids(organizationId)) return NOT_FOUND;
  return change(postgres, 'webhook', async (client) => {
    const found = await getWebhook(client, organizationId);
    if (isRefused(found)) return found;
    const { rowCount } = await client.query(
      `UPDATE webhook_deliveries SET attempts = 0, next_attempt_at = now()
        WHERE organization_id = $1 AND next_attempt_at IS NULL`,
      [organizationId],
    );
    await client.query('UPDATE webhooks SET failures = 0, paused_until = NULL WHERE organization_id = $1', [
      organizationId,
    ]);
    await auditWebhook(client, actor, organizationId, 'webhook.redeliver', null, null);
    return { requeued: rowCount };
  });
}

/** The name to which a webhook's sealed secret is bound (secret-box.ts). */
export function sealedFor(organizationId: string): string {
  return `webhook of ${organizationId}`;
}

/** null: the secret was sealed under another MASTER_KEY, so the file's secret replaces it. */
function openSecret(box: SecretBox, organizationId: string, sealed: Buffer): string | null {
  try {
    return box.open(sealed, sealedFor(organizationId));
  } catch {
    return null;
  }
}

type WebhookAction = 'webhook.set' | 'webhook.rotate_secret' | 'webhook.remove' | 'webhook.redeliver';

async function auditWebhook(
  client: PostgresClient,
  actor: Actor,
  organizationId: string,
  action: WebhookAction,
  before: Webhook | null,
  after: Webhook | null,
): Promise<void> {
  const plain = (webhook: Webhook | null) =>
    webhook === null ? undefined : { url: webhook.url, active: webhook.active };
  const target = { kind: 'webhook', id: organizationId } as const;
  await recordAudit(client, actor, { organizationId, action, target, before: plain(before), after: plain(after) });
}

function floorOrNull(value: number | null): number | null {
  return value === null ? null : Math.floor(value);
}
