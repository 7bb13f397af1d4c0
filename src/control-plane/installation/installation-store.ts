// What operations about the installation itself need of storage; the composition root provides it.

import type { Actor } from '../../domain/identity/actor.ts';
import type { JobName } from '../../domain/jobs/job-names.ts';
import type { JobRun, OpenEpoch } from '../../domain/jobs/job-run.ts';
import type { ProviderHealth } from '../../domain/models/provider-health.ts';
import type { BeatCounts, ProcessState } from '../../domain/processes/live-figures.ts';

export interface InstallationStore {
  lastRuns(which: 'any' | 'succeeded'): Promise<readonly JobRun[]>;
  requestRun(actor: Actor, name: JobName): Promise<string>;
  readRun(runId: string): Promise<JobRun | null>;
  openEpochs(): Promise<readonly OpenEpoch[]>;
  pending(): Promise<{ readonly count: number; readonly oldestSeconds: number; readonly late: number }>;
  processes(): Promise<readonly ProcessState[]>;
  beatCounts(): Promise<readonly BeatCounts[]>;
  providerHealth(): Promise<ReadonlyMap<string, ProviderHealth>>;
  nowMs(): number;
}
