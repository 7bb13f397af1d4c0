// What operations about the installation itself need of storage; the composition root provides it.

import type { Actor } from '../../domain/identity/actor.ts';
import type { JobName } from '../../domain/jobs/job-names.ts';

export interface ShownJobRun {
  readonly name: string;
  readonly machine: string;
  readonly startedAtMs: number;
  readonly finishedAtMs: number | null;
  readonly error: string | null;
  readonly details: Readonly<Record<string, unknown>> | null;
}

export interface ShownEpoch {
  readonly epoch: number;
  readonly machine: string;
  readonly kind: string;
  readonly pid: number;
  readonly startedAtMs: number;
  readonly lastPostedAtMs: number | null;
  readonly leased: bigint;
  readonly pending: number;
}

export interface InstallationStore {
  lastRuns(which: 'any' | 'succeeded'): Promise<readonly ShownJobRun[]>;
  requestRun(actor: Actor, name: JobName): Promise<string>;
  readRun(runId: string): Promise<ShownJobRun | null>;
  openEpochs(): Promise<readonly ShownEpoch[]>;
  pending(): Promise<{ readonly count: number; readonly oldestSeconds: number; readonly late: number }>;
}
