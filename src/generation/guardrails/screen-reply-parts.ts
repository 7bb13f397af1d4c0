// What both ways to screen a reply have in common: what they need of the relay, their bound, and their refusal.

import type { CompiledPolicy } from '../../domain/guardrails/compile-policy.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Exchange } from '../../http/exchange.ts';
import type { Clock } from '../../platform/clock.ts';
import type { ReplyHandler } from '../../upstream/reply-handler.ts';
import type { Dialect } from '../dialects/dialect.ts';
import type { CapturedReply } from '../reply/capture.ts';
import type { ScreeningWorkers } from './screen-body.ts';
import type { Screening } from './screening.ts';

/** The relay whose reply is screened. */
export interface ScreenedRelay {
  /** Stops reading the provider for good. */
  abortCall(): void;
  /** The client gets the refusal instead of the reply, once the end is recorded. */
  refuseInstead(refusal: Refusal): void;
  onOwnFault(fault: unknown): void;
}

export interface ScreenReplyParts {
  readonly screening: Screening;
  readonly compiled: CompiledPolicy;
  readonly reply: CapturedReply;
  readonly dialect: Dialect;
  readonly exchange: Exchange;
  readonly workers: ScreeningWorkers;
  readonly clock: Clock;
  readonly relay: ScreenedRelay;
}

/** Receives a reply from its head on and passes it on as the rules allow. */
export interface ReplyScreen extends ReplyHandler {
  /** The reply waits for a worker, for external detectors or for its turn. */
  readonly isScreening: boolean;
  /** The client has left: the findings so far are recorded. */
  leave(): void;
}

/** More of a reply is not kept, and so is not screened. */
export const KEPT_BYTES_MAX = 8_388_608;
/** The refusal of a reply that could not be screened, where the rules do not let it pass. */
export const UNREAD: Refusal = { kind: 'guardrail_unread', unread: 'output' };
