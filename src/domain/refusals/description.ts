// A refusal with its rule applied: everything that an envelope needs. Envelopes never look at the kind.

import type { GuardrailFinding, LimitResult, Refusal } from './refusal.ts';
import type { ErrorTypes, RefusalFamily } from './refusal-rule.ts';
import { ruleOf } from './refusal-rules.ts';

export interface RefusalDescription {
  readonly kind: Refusal['kind'];
  readonly status: number;
  readonly code: string;
  /** The code is shown even by envelopes that have no code, or an opaque one. */
  readonly isCodePublished: boolean;
  /** The error type by envelope, for envelopes in which it does not follow from the status. */
  readonly errorTypes: ErrorTypes;
  readonly family: RefusalFamily;
  /** What was wrong. */
  readonly summary: string;
  /** What to do about it. */
  readonly advice: string | null;
  /** Summary and advice in one text, for envelopes with a single message. */
  readonly message: string;
  readonly param: string | null;
  readonly retryable: boolean;
  /** How long to wait; null when waiting does not help, or the time is unknown. */
  readonly retryAfterMs: number | null;
  readonly result: LimitResult | null;
  readonly guardrail: GuardrailFinding | null;
  readonly allow: readonly string[] | null;
  readonly closesConnection: boolean;
}

/** A field name can be as long as the body that contained it; the reply must not be. */
const PARAM_CHARACTERS_MAX = 120;

export function describeRefusal(refusal: Refusal): RefusalDescription {
  const rule = ruleOf(refusal);
  const summary = say(rule.summary, refusal) as string;
  const advice = say(rule.advice, refusal);
  const retryAfterMs = ('retryAfterMs' in refusal ? refusal.retryAfterMs : undefined) ?? rule.retryAfterMs ?? null;
  return {
    kind: refusal.kind,
    status: rule.status,
    code: rule.code ?? refusal.kind,
    isCodePublished: rule.isCodePublished === true,
    errorTypes: rule.errorTypes ?? {},
    family: rule.family,
    summary,
    advice,
    message: advice === null ? (rule.sentence ?? summary) : `${rule.sentence ?? summary} ${advice}`,
    param: say(rule.param, refusal)?.slice(0, PARAM_CHARACTERS_MAX) ?? null,
    retryable: rule.retryable,
    retryAfterMs,
    result: ('result' in refusal ? refusal.result : undefined) ?? null,
    guardrail: refusal.kind === 'guardrail_blocked' ? refusal.guardrail : null,
    allow: refusal.kind === 'method_not_allowed' ? (refusal.allow ?? []) : null,
    closesConnection: rule.closesConnection === true,
  };
}

function say(words: string | ((refusal: Refusal) => string | null) | undefined, refusal: Refusal): string | null {
  if (words === undefined) return null;
  return typeof words === 'string' ? words : words(refusal);
}

/**
 * The whole seconds of the Retry-After header and of `retry_after_seconds`: rounded up, so that a client never returns
 * too early, and at least 1.
 */
export function retryAfterSeconds(retryAfterMs: number): number {
  return Math.max(1, Math.ceil(retryAfterMs / 1000));
}
