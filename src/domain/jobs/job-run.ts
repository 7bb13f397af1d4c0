// A run of a job, and an open epoch with the credit that it still holds, as storage reads them and operators see them.

export interface JobRun {
  readonly name: string;
  /** Empty until a machine takes it. */
  readonly machine: string;
  readonly startedAtMs: number;
  /** null: it is running, or its process died. */
  readonly finishedAtMs: number | null;
  readonly error: string | null;
  readonly details: Readonly<Record<string, unknown>> | null;
}

export interface OpenEpoch {
  readonly epoch: number;
  readonly machine: string;
  readonly kind: string;
  readonly pid: number;
  readonly startedAtMs: number;
  /** When a record of its spool was last posted; null: never. */
  readonly lastPostedAtMs: number | null;
  /** The credit that the process has leased, in pico-dollars. */
  readonly leased: bigint;
  readonly pending: number;
}
