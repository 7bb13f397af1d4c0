// What a supervisor and its processes say to each other over the channel that fork(2) gave them.

import type { MetricsSnapshot } from '../platform/metrics.ts';

export interface Readiness {
  /** What a process lacks to serve; empty when it serves. */
  readonly notReady: readonly string[];
  /** What it serves without, for the operator to know: it is ready all the same. */
  readonly impaired: readonly string[];
}

export type SupervisorMessage =
  /** Finish what is in flight, for at most so long, and end. */
  | { readonly type: 'drain'; readonly limitMs: number }
  | { readonly type: 'metrics' | 'readiness'; readonly id: number };

export type ProcessMessage =
  | { readonly type: 'ready' }
  /** In answer to a request by its id; with id null the last word of a process that ends. */
  | { readonly type: 'metrics'; readonly id: number | null; readonly snapshot: MetricsSnapshot }
  /** In answer to a request by its id. */
  | ({ readonly type: 'readiness'; readonly id: number } & Readiness)
  /** The simulated provider's word for ready. */
  | { readonly type: 'listening'; readonly url: string };
