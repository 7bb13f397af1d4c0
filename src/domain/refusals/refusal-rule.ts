// The type of a row of refusal-rules.ts.

import type { Refusal, RefusalKind } from './refusal.ts';

/**
 * The family decides the envelope: `gateway` (7.6) and `credit` and `traffic` (7.4) have their own, `request` and
 * `service` use the route's.
 */
export type RefusalFamily = 'gateway' | 'request' | 'credit' | 'traffic' | 'service';

/** Error types by envelope. */
export type ErrorTypes = Readonly<Partial<Record<'chat' | 'openai' | 'messages' | 'systemone', string>>>;

export interface RefusalRule<R extends Refusal = Refusal> {
  readonly status: number;
  /** The stable symbolic code, if it is not the kind's own name. */
  readonly code?: string;
  /**
   * The spec publishes this code to clients (7.7, 7.8), so it is shown even where codes are opaque or the envelope has
   * none.
   */
  readonly isCodePublished?: true;
  readonly family: RefusalFamily;
  /**
   * `error.type` in a route's own envelope, if the spec gives a different one than the status implies (spec 7.4, 7.7).
   */
  readonly errorTypes?: ErrorTypes;
  /** Whether the same request can succeed later without anybody changing anything. */
  readonly retryable: boolean;
  /** The wait to propose when the refusal itself has none; present exactly when `retryable`. */
  readonly retryAfterMs?: number;
  /**
   * The connection ends with the reply: it is unknown where the next request begins, or the process is shutting down.
   */
  readonly closesConnection?: true;
  /** A sentence that says what was wrong. For the `gateway` family, the exact string of spec 7.6. */
  readonly summary: string | ((refusal: R) => string);
  /** Used instead of `summary` in envelopes with a message, if `summary` is a fixed string of the spec. */
  readonly sentence?: string;
  /** A sentence that says what to do about it. */
  readonly advice?: string | ((refusal: R) => string | null);
  /** The request field at fault (`error.param`, spec 7.3). */
  readonly param?: string | ((refusal: R) => string);
}

export type RefusalRules<K extends RefusalKind> = {
  readonly [Kind in K]: RefusalRule<Extract<Refusal, { readonly kind: Kind }>>;
};

export const RETRY_LATER = 'Try again after the time in the Retry-After header.';
