// A run of a job, and an open epoch with what it still holds, as storage reads them and operators see them.

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
  /** When something of its spool was posted last; null: never. */
  readonly lastPostedAtMs: number | null;
  /** The credit that it has leased, in pico-dollars. */
  readonly leased: bigint;
  readonly pending: number;
}
