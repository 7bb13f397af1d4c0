// Derives an execution's outcome from what its relay saw of the reply.

import type { Outcome } from '../../domain/settlement/outcome.ts';
import type { MeasuredUsage } from '../execution/observed-end.ts';
import type { ReplyEnd } from './withhold-end.ts';

/** `clean`: the reply is complete. `cut`: the provider broke it off. */
export type HowItEnded = 'clean' | 'cut' | 'client_left';

export interface EndedReply {
  readonly providerStatus: number;
  readonly how: HowItEnded;
  readonly report: MeasuredUsage;
  /** The reply's own events say that it failed, and no usage is reported: as good as a 5xx that came too late. */
  readonly hasFailed: boolean;
  readonly relayedBytes: number;
  /** A guardrail has ended the reply, or put a refusal in its place. */
  readonly isBlocked: boolean;
}

export function outcomeOfReply(ended: EndedReply): Outcome {
  const { isBlocked, providerStatus, how, report, hasFailed, relayedBytes } = ended;
  if (providerStatus >= 500) return 'provider_failed';
  if (providerStatus >= 300) return 'provider_refused';
  if (isBlocked) return 'output_blocked';
  if (hasFailed) return 'provider_failed';
  if (how === 'clean')
    return report.usage === null && report.distrust === null ? 'completed_without_usage' : 'completed';
  if (report.usage !== null) return 'usage_then_cut';
  if (how === 'cut') return 'cut_mid_stream';
  return relayedBytes === 0 ? 'aborted_before_first_byte' : 'aborted_mid_stream';
}

/** The outcome when no attempt got a reply that could be relayed. */
export function outcomeWithoutReply(end: ReplyEnd): Outcome {
  if (end === 'client_left') return 'aborted_before_first_byte';
  if (end === 'key_refused') return 'provider_refused';
  return end === 'connect_failed' ? 'connect_failed' : 'no_reply';
}
