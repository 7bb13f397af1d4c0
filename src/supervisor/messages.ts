// The messages between a supervisor and its processes over the channel of fork(2).

import type { MetricsSnapshot } from '../platform/metrics.ts';
import type { ProfileKind } from '../platform/profile.ts';

export interface Readiness {
  /** What a process lacks to serve; empty: it serves. */
  readonly notReady: readonly string[];
  /** Faults that do not keep the process from serving, for the operator to know. */
  readonly impaired: readonly string[];
}

export type SupervisorMessage =
  /**
   * Finish open requests, answer requests that come on kept connections within `keptMs`, and end, all within the limit.
   */
  | { readonly type: 'drain'; readonly limitMs: number; readonly keptMs: number }
  | { readonly type: 'metrics' | 'readiness'; readonly id: number }
  | { readonly type: 'profile'; readonly id: number; readonly kind: ProfileKind; readonly seconds: number };

export type ProcessMessage =
  | { readonly type: 'ready' }
  /** The answer to a request by its id. With id null it is the last message of a process that ends. */
  | { readonly type: 'metrics'; readonly id: number | null; readonly snapshot: MetricsSnapshot }
  /** The answer to a request by its id. */
  | ({ readonly type: 'readiness'; readonly id: number } & Readiness)
  /** The answer to a request by its id; null: no profile could be taken. */
  | { readonly type: 'profile'; readonly id: number; readonly profile: string | null }
  /** The simulated provider is ready. */
  | { readonly type: 'listening'; readonly url: string };
