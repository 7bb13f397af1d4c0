// What a row of refusal-rules.ts says of a kind of refusal.

import type { Refusal, RefusalKind } from './refusal.ts';

/**
 * Families decide the envelope: `gateway` (7.6) and `credit`/`traffic` (7.4) have their own, `request` and `service`
 * use the route's.
 */
export type RefusalFamily = 'gateway' | 'request' | 'credit' | 'traffic' | 'service';

/** By envelope. */
export type ErrorTypes = Readonly<Partial<Record<'chat' | 'openai' | 'messages' | 'systemone', string>>>;

export interface RefusalRule<R extends Refusal = Refusal> {
  readonly status: number;
  /** Stable symbolic code, where it is not the kind's own name. */
  readonly code?: string;
  /**
   * The spec names this code to clients also where codes are opaque, or where the envelope has none: it is shown as it
   * is (spec 7.7, 7.8).
   */
  readonly isCodePublished?: true;
  readonly family: RefusalFamily;
  /** `error.type` in a route's own envelope, where the spec gives another one than the status does (spec 7.4, 7.7). */
  readonly errorTypes?: ErrorTypes;
  /** Whether the same request can succeed later without anyone changing anything. */
  readonly retryable: boolean;
  /** The wait to propose when the refusal does not say; present exactly when `retryable`. */
  readonly retryAfterMs?: number;
  /** The connection ends with the reply: the rest of the request cannot be told from a next one, or we are leaving. */
  readonly closesConnection?: true;
  /** What was wrong: a sentence. For the `gateway` family, the exact string of spec 7.6. */
  readonly summary: string | ((refusal: R) => string);
  /** What to do about it: a sentence. */
  readonly advice?: string | ((refusal: R) => string | null);
  /** The request field at fault (`error.param`, spec 7.3). */
  readonly param?: string | ((refusal: R) => string);
}

export type RefusalRules<K extends RefusalKind> = {
  readonly [Kind in K]: RefusalRule<Extract<Refusal, { readonly kind: Kind }>>;
};

export const SECOND_MS = 1000;
export const RETRY_LATER = 'Try again after the time in the Retry-After header.';
