// What the harness requests from the load generator and what it gets back: plain data that passes between their
// processes.

/** What every request of a job is, and what its reply must be to count as good. */
export interface Target {
  readonly port: number;
  readonly path: string;
  /** Extra headers beside host, content-type and content-length. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * The name of a header whose value differs in every request, such as a session's name; absent: all requests are the
   * same bytes.
   */
  readonly freshHeader?: string;
  /** Name of a request body of request-bodies.ts, and the model it names. */
  readonly body: string;
  readonly model: string;
  /** Exact bytes of the reply's body; null accepts any body that is not empty. */
  readonly replyBytes: number | null;
}

/** Each connection sends its next request when its last reply is complete: as fast as the proxy answers. */
export interface ClosedLoopJob {
  readonly kind: 'closed';
  readonly target: Target;
  readonly connections: number;
  /** Rest between a reply and the next request of a connection; 0 for none. */
  readonly thinkMs: number;
  readonly warmupMs: number;
  readonly durationMs: number;
}

/**
 * Requests leave on a schedule, whatever the replies do. Latency counts from the scheduled time, so a stall shows in
 * every request that it delays.
 */
export interface FixedRateJob {
  readonly kind: 'rate';
  readonly target: Target;
  readonly requestsPerSecond: number;
  readonly warmupMs: number;
  readonly durationMs: number;
}

/** Opens streams and keeps them open until released. */
export interface HoldStreamsJob {
  readonly kind: 'hold';
  readonly target: Target;
  readonly streams: number;
}

export type Job = ClosedLoopJob | FixedRateJob | HoldStreamsJob;

export interface Quantiles {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

export interface JobResult {
  readonly requests: number;
  readonly errors: number;
  readonly firstErrors: readonly string[];
  readonly elapsedMs: number;
  readonly requestsPerSecond: number;
  /** Body bytes of the last good reply. */
  readonly replyBytes: number;
  /** From sending (closed loop) or the scheduled time (fixed rate) to the last byte. */
  readonly latencyUs: Quantiles;
  readonly firstByteUs: Quantiles;
  /** Stamped stream events seen, and how long each took from the stub's stamp to the load generator. */
  readonly events: number;
  readonly eventUs: Quantiles;
}

/** Harness to load generator. */
export type LoadCommand =
  | { readonly do: 'start'; readonly id: number; readonly job: Job }
  | { readonly do: 'release'; readonly id: number };

/**
 * Load generator to harness: `measuring` when the warm-up is over (or the streams are open), `done` with the figures.
 */
export type LoadEvent =
  | { readonly event: 'ready' }
  | { readonly event: 'measuring'; readonly id: number }
  | { readonly event: 'done'; readonly id: number; readonly result: JobResult };
