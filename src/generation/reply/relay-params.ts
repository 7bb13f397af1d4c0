// The parameters of one relay, and what all relays of the process share.

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
  /** Relays that have not ended; the coarse clock ends those that are out of time. */
  readonly open: OpenRelays;
  readonly providers: Providers;
  readonly reportFailedCall: ReportFailedCall;
}

export interface RelayParams {
  readonly exchange: Exchange;
  /** The organization whose request this is. */
  readonly organizationId: string;
  readonly dialect: Dialect;
  /**
   * The relay releases the request's buffer once it is over; until the start is recorded, start-relay.ts does. The
   * pieces that go to a provider are views of the buffer, and a connection that still writes from it holds it for
   * itself (BufferPool).
   */
  readonly request: ReceivedRequest;
  /** The client's headers that go to the provider. */
  readonly headers: ForwardedHeaders;
  readonly read: ReadRequest;
  readonly execution: Execution;
  /** In the order in which they are tried; the next one is called when one cannot serve (Failover). */
  readonly deployments: readonly Deployment[];
  readonly tokenizer: string;
  /** null: no guardrail applies to the request. */
  readonly screening: Screening | null;
  /**
   * When own keys cannot serve: why the service's deployments may not serve either, although the organization allows it
   * (no credit, say). null: they may serve, or the organization does not allow it.
   */
  readonly serviceRefusal: Refusal | null;
  /** Headers that the gateway adds to the response, names and values alternating. */
  readonly ownHeaders: readonly string[];
}
