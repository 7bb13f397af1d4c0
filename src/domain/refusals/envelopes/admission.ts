// The envelopes of admission refusals (spec 7.4): flat by default, in the route's own error format when the operator
// says so. Status, headers and the top-level fields `billing`, `result`, `retryable` and `retry_after_seconds` are the
// same in both.

import { type RefusalDescription, retryAfterSeconds } from '../description.ts';
import type { LimitResult } from '../refusal.ts';
import { messagesErrorType } from './messages.ts';
import { openaiErrorType } from './openai.ts';

/** Dialects whose error object an admission refusal can take. */
export type AdmissionDialect = 'openai' | 'messages';

interface CreditFields {
  readonly billing: {
    readonly code: string;
    readonly retryable: boolean;
    readonly balance_url: string;
    readonly top_up_url: string;
  };
}

interface TrafficFields {
  readonly retryable: boolean;
  readonly retry_after_seconds?: number;
  readonly result?: LimitResult;
}

/** Where a payer sees the balance and adds credit (spec 4.8). */
export interface BillingUrls {
  readonly balanceUrl: string;
  readonly topUpUrl: string;
}

export type AdmissionFields = CreditFields | TrafficFields;
export type FlatAdmissionEnvelope = { readonly error: string; readonly message: string } & AdmissionFields;
export type DialectAdmissionEnvelope = {
  readonly type?: 'error';
  readonly error: Readonly<Record<string, string | null>>;
} & AdmissionFields;

export function flatAdmissionEnvelope(refusal: RefusalDescription, urls: BillingUrls): FlatAdmissionEnvelope {
  return { error: refusal.code, message: refusal.message, ...topLevelFields(refusal, urls) };
}

export function dialectAdmissionEnvelope(
  refusal: RefusalDescription,
  urls: BillingUrls,
  dialect: AdmissionDialect,
): DialectAdmissionEnvelope {
  const fields = topLevelFields(refusal, urls);
  const { message, code, param } = refusal;
  if (dialect === 'messages')
    return { type: 'error', error: { type: admissionType(refusal, messagesErrorType), message, code }, ...fields };
  return { error: { message, type: admissionType(refusal, openaiErrorType), code, param }, ...fields };
}

/** Spec 7.4: credit refusals are of type billing_error in every dialect; the rest follow the dialect's table. */
function admissionType(refusal: RefusalDescription, typeOfStatus: (status: number) => string): string {
  return refusal.family === 'credit' ? 'billing_error' : typeOfStatus(refusal.status);
}

function topLevelFields(refusal: RefusalDescription, urls: BillingUrls): AdmissionFields {
  if (refusal.family === 'credit') {
    return {
      billing: {
        code: refusal.code,
        retryable: refusal.retryable,
        balance_url: urls.balanceUrl,
        top_up_url: urls.topUpUrl,
      },
    };
  }
  return {
    retryable: refusal.retryable,
    ...(refusal.retryAfterMs === null ? {} : { retry_after_seconds: retryAfterSeconds(refusal.retryAfterMs) }),
    ...(refusal.result === null ? {} : { result: refusal.result }),
  };
}
