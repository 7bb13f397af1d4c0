// What a relay is asked, and what it works with.

import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Exchange } from '../../http/exchange.ts';
import type { BufferPool } from '../../platform/buffer-pool.ts';
import type { WorkerPool } from '../../platform/worker-pool.ts';
import type { ForwardedHeaders } from '../../upstream/header-policy.ts';
import type { Providers } from '../../upstream/providers.ts';
import type { Deployment } from '../catalog/serving-catalog.ts';
import type { Dialect, ReadRequest } from '../dialects/dialect.ts';
import type { Execution } from '../execution/execution.ts';
import type { Screening } from '../guardrails/screening.ts';
import type { ReceivedRequest } from '../request/receive.ts';
import type { ReportFailedCall } from './failed-call.ts';
import type { LearntFromCalls } from './learn-from-calls.ts';
import type { OpenRelays } from './open-relays.ts';

export interface RelayContext extends LearntFromCalls {
  readonly buffers: BufferPool;
  readonly workers: WorkerPool;
  /** Relays that have not ended; the coarse clock looks through them for those out of time. */
  readonly open: OpenRelays;
  readonly providers: Providers;
  readonly reportFailedCall: ReportFailedCall;
}

export interface RelayParams {
  readonly exchange: Exchange;
  /** Whose request it is. */
  readonly organizationId: string;
  readonly dialect: Dialect;
  /**
   * Its buffer is the relay's to release, once the relay is over: what goes to a provider are views of it. A connection
   * that still writes from it holds it for itself (BufferPool). Until the start is recorded it is start-relay.ts's.
   */
  readonly request: ReceivedRequest;
  /** The client's, for the provider. */
  readonly headers: ForwardedHeaders;
  readonly read: ReadRequest;
  readonly execution: Execution;
  /** First to last; the next one serves when one cannot be reached. */
  readonly deployments: readonly Deployment[];
  readonly tokenizer: string;
  /** null: no guardrail is for it. */
  readonly screening: Screening | null;
  /**
   * Why the service's deployments may not serve where own keys cannot, although the organization lets them (no credit,
   * say); null: they may, or the organization does not let them.
   */
  readonly serviceRefusal: Refusal | null;
  /** Headers of ours on the response, names and values alternating. */
  readonly ownHeaders: readonly string[];
}
