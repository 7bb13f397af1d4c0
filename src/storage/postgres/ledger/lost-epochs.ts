// Lists open epochs, and abandons one whose machine and spool are gone, by an operator's command. A lease never returns
// only because time has passed.

import type { Actor } from '../../../domain/identity/actor.ts';
import type { OpenEpoch } from '../../../domain/jobs/job-run.ts';
import { formatUsdString } from '../../../domain/money/format.ts';
import type { TerminalRecord } from '../../../records/execution-record.ts';
import { recordAudit } from '../identity/audit.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import { closeDeadEpoch, resolveAllPending } from './epochs.ts';

interface EpochRow {
  readonly epoch: string;
  readonly machine: string;
  readonly kind: string;
  readonly pid: number;
  readonly started_ms: number;
  readonly last_posted_ms: number | null;
  readonly leased: string;
  readonly pending: number;
}

const LIST = `
  SELECT e.epoch, e.machine, e.kind, e.pid, (extract(epoch FROM e.started_at) * 1000)::double precision AS started_ms,
         (SELECT (extract(epoch FROM max(c.updated_at)) * 1000)::double precision
            FROM spool_cursors c WHERE c.epoch = e.epoch) AS last_posted_ms,
         (SELECT coalesce(sum(l.outstanding), 0) FROM leases l WHERE l.epoch = e.epoch) AS leased,
         (SELECT count(*) FROM generations g
           WHERE g.epoch = e.epoch AND g.billing_status = 'pending')::integer AS pending
    FROM process_epochs e WHERE e.returned_at IS NULL ORDER BY e.epoch`;

/** The open epochs of every machine, oldest first. */
export async function listEveryOpenEpoch(postgres: PostgresClient): Promise<OpenEpoch[]> {
  const { rows } = await postgres.query<EpochRow>(LIST);
  return rows.map((row) => ({
    epoch: Number(row.epoch),
    machine: row.machine,
    kind: row.kind,
    pid: row.pid,
    startedAtMs: row.started_ms,
    lastPostedAtMs: row.last_posted_ms,
    leased: BigInt(row.leased),
    pending: row.pending,
  }));
}

/**
 * Fences the epoch, returns its leases and resolves its open executions. The operator loses charges that are recorded
 * only in its spool. If the spool reappears, it is not posted, since its epoch has no lease any more.
 */
export async function abandonEpoch(
  postgres: Postgres,
  actor: Actor,
  { epoch, machine, nowMs }: { epoch: number; machine: string; nowMs: number },
): Promise<{ returned: bigint; resolved: readonly TerminalRecord[] }> {
  const { returned } = await postgres.transaction(async (client) => {
    const closed = await closeDeadEpoch(client, epoch);
    const after = { machine, returned: formatUsdString(closed.returned) };
    await recordAudit(client, actor, {
      organizationId: null,
      action: 'epoch.abandon',
      target: { kind: 'epoch', id: String(epoch) },
      after,
    });
    return closed;
  });
  const resolved: TerminalRecord[] = [];
  for await (const records of resolveAllPending(postgres, nowMs)) resolved.push(...records);
  return { returned, resolved };
}
