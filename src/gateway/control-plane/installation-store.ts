// Provides what storage knows of the installation itself to the control plane.

import type { InstallationStore } from '../../control-plane/installation/installation-store.ts';
import { JOB_NAMES } from '../../domain/jobs/job-names.ts';
import type { Clock } from '../../platform/clock.ts';
import { readProviderHealth } from '../../storage/postgres/catalog/provider-health.ts';
import { listLastRuns, readJobRun, requestAuditedRun } from '../../storage/postgres/job-runs.ts';
import { listEveryOpenEpoch } from '../../storage/postgres/ledger/lost-epochs.ts';
import { readPendingExecutions } from '../../storage/postgres/ledger/pending-executions.ts';
import type { Postgres } from '../../storage/postgres/pool.ts';
import { readBeatCounts, readProcesses } from '../../storage/postgres/processes/beats.ts';

export function createInstallationStore(postgres: Postgres, clock: Clock): InstallationStore {
  return {
    lastRuns: (which) => listLastRuns(postgres, JOB_NAMES, which),
    requestRun: (actor, name) => requestAuditedRun(postgres, actor, name),
    readRun: (runId) => readJobRun(postgres, runId),
    openEpochs: () => listEveryOpenEpoch(postgres),
    async pending() {
      const { count, oldestSeconds, late } = await readPendingExecutions(postgres);
      return { count, oldestSeconds, late: late.reduce((sum, epoch) => sum + epoch.count, 0) };
    },
    processes: () => readProcesses(postgres, clock.nowMs()),
    beatCounts: () => readBeatCounts(postgres, clock.nowMs()),
    providerHealth: () => readProviderHealth(postgres),
    nowMs: () => clock.nowMs(),
  };
}
