// Updates the gauges of reconciliation: the results of the last runs on any machine, and what is pending now.

import type { JobName } from '../../src/domain/jobs/job-names.ts';
import type { MetricsRegistry } from '../../src/platform/metrics.ts';
import { listLastRuns } from '../../src/storage/postgres/job-runs.ts';
import { readPendingExecutions } from '../../src/storage/postgres/ledger/pending-executions.ts';
import type { Postgres } from '../../src/storage/postgres/pool.ts';
import { countDeliveries } from '../../src/storage/postgres/webhooks/webhook-deliveries.ts';
import type { JobGauges } from './job-gauges.ts';

export interface WatchedGauges {
  /** All jobs processes of a cluster report the same figures, so their maximum is shown and not their sum. */
  refresh(postgres: Postgres, names: readonly string[]): Promise<void>;
}

/**
 * The jobs that count differences, and the gauge of each. `compare-facts-daily` looks back further than
 * `compare-facts`. Their gauge shows the larger count, so a difference that only the daily job sees stays visible.
 */
const COUNTING: ReadonlyMap<string, keyof JobGauges> = new Map<JobName, keyof JobGauges>([
  ['check-ledger', 'ledgerDrift'],
  ['compare-facts', 'factsDrift'],
  ['compare-facts-daily', 'factsDrift'],
  ['compare-cells', 'cellsDrift'],
  ['sweep-media', 'mediaDrift'],
]);

export function createWatchedGauges(metrics: MetricsRegistry, gauges: JobGauges): WatchedGauges {
  const labelled = { labelNames: ['task'], merge: 'max' } as const;
  const lastSuccess = metrics.gauge(
    'tollgate_job_last_success_timestamp_seconds',
    'When the job last ended well, in seconds since 1970.',
    labelled,
  );
  const duration = metrics.gauge('tollgate_job_duration_seconds', 'How long the last run of the job took.', labelled);
  const failed = metrics.gauge(
    'tollgate_job_failed',
    'Whether the last run of the job failed or has no end; above zero is an alarm.',
    labelled,
  );
  const worst = { merge: 'max' } as const;
  const pending = metrics.gauge('tollgate_pending_executions', 'Executions whose charge is not known yet.', worst);
  const oldest = metrics.gauge(
    'tollgate_pending_oldest_seconds',
    'Age of the oldest execution whose charge is not known yet.',
    worst,
  );
  const late = metrics.gauge(
    'tollgate_pending_late',
    'Executions that are pending for longer than the rule allows; above zero is an alarm.',
    worst,
  );
  const waiting = metrics.gauge(
    'tollgate_webhook_messages_waiting',
    'Webhook messages that are to be delivered.',
    worst,
  );
  const dead = metrics.gauge(
    'tollgate_webhook_messages_dead',
    'Webhook messages that were given up; above zero is an alarm.',
    worst,
  );
  return {
    async refresh(postgres, names) {
      const found = new Map<keyof JobGauges, number>();
      for (const run of await listLastRuns(postgres, names, 'succeeded')) {
        lastSuccess.labels(run.name).set((run.finishedAtMs ?? 0) / 1000);
        const gauge = COUNTING.get(run.name);
        const { drift } = run.details ?? {};
        if (gauge !== undefined && typeof drift === 'number') found.set(gauge, Math.max(found.get(gauge) ?? 0, drift));
      }
      for (const [gauge, drift] of found) gauges[gauge].set(drift);
      for (const run of await listLastRuns(postgres, names)) {
        if (run.finishedAtMs !== null) duration.labels(run.name).set((run.finishedAtMs - run.startedAtMs) / 1000);
        failed.labels(run.name).set(run.error === null ? 0 : 1);
      }
      const open = await readPendingExecutions(postgres);
      pending.set(open.count);
      oldest.set(open.oldestSeconds);
      late.set(open.late.reduce((sum, epoch) => sum + epoch.count, 0));
      const messages = await countDeliveries(postgres);
      waiting.set(messages.waiting);
      dead.set(messages.dead);
    },
  };
}
