// What the value of a record's field can be. Its kind decides how the spool, Postgres, ClickHouse and the listings have
// it; the row of a field (fields.ts) names one of these.

import type { ScreeningReport } from '../domain/guardrails/screening-report.ts';
import type { ModelRoute } from '../domain/routing/model-route.ts';
import type { Usage } from '../domain/usage/usage.ts';

/** The most that is kept of a client's label. */
export const CLIENT_REQUEST_ID_LENGTH_MAX = 255;

export type Kind =
  | 'uuid'
  | 'uuids'
  | 'text'
  | 'texts'
  | 'flag'
  | 'status'
  | 'bytes'
  | 'instant'
  | 'duration'
  | 'amount'
  | 'usage'
  | 'details'
  | 'screening'
  | 'failures'
  | 'attempts'
  | 'route';

/** Members that say nothing are absent. */
export interface RecordedDetails {
  /** A part of the tokens written to the cache: those that are kept for an hour. */
  readonly cache_write_1h_tokens?: number;
  readonly service_tier?: string;
  readonly speed?: string;
  readonly inference_geo?: string;
  readonly input_audio_tokens?: number;
  readonly cached_audio_tokens?: number;
  readonly output_audio_tokens?: number;
  /** Dollars that the provider has asked for, where they were charged. */
  readonly reported_cost_usd?: string;
  /** Of tools that the provider ran; null: the reply does not say how many. */
  readonly calls?: Readonly<Record<string, number | null>>;
}

/** So many own keys that could not serve a request are in its record, the first ones. */
export const OWN_FAILURES_MAX = 64;

/** Why an organization's own key could not serve a request. */
export interface RecordedKeyFailure {
  readonly credential_id: string;
  readonly reason: string;
  /** Of the provider's answer; null: there was none. */
  readonly status: number | null;
}

/** One call of a provider for a request that several were called for. */
export interface RecordedAttempt {
  readonly provider: string;
  /** The organization's own key that it was called with; absent: the service's. */
  readonly credential_id?: string;
  /** When it was called, and when the next one was, in milliseconds since the request was received. */
  readonly started_ms: number;
  /** null: the reply is this one's. */
  readonly ended_ms: number | null;
  /** Why it was given up; null: it was not. */
  readonly cause: string | null;
  /** Of the provider's answer; null: there was none, or it is the request's own. */
  readonly status: number | null;
}

export interface ValueType<Value> {
  readonly kind: Kind;
  readonly isNullable: boolean;
  /** Of a text that is one of few; null: any. */
  readonly words: readonly string[] | null;
  /** Never there: it carries the type of the value. */
  readonly value?: Value;
}

function type<Value>(kind: Kind): ValueType<Value> {
  return { kind, isNullable: false, words: null };
}

export const uuid = type<string>('uuid');
export const uuids = type<readonly string[]>('uuids');
export const text = type<string>('text');
export const texts = type<readonly string[]>('texts');
export const flag = type<boolean>('flag');
/** An HTTP status. */
export const status = type<number>('status');
export const bytes = type<number>('bytes');
/** Milliseconds since 1970. */
export const instant = type<number>('instant');
/** Milliseconds. */
export const duration = type<number>('duration');
/** Pico-dollars, as a decimal string. */
export const amount = type<string>('amount');
export const usage = type<Usage>('usage');
export const details = type<RecordedDetails>('details');
export const screening = type<ScreeningReport>('screening');
export const failures = type<readonly RecordedKeyFailure[]>('failures');
export const attempts = type<readonly RecordedAttempt[]>('attempts');
export const route = type<ModelRoute>('route');

export function nullable<Value>(of: ValueType<Value>): ValueType<Value | null> {
  return { ...of, isNullable: true };
}

/** A text of which any value of `Word` may come; nothing that reads records depends on which there are. */
export function word<Word extends string>(): ValueType<Word> {
  return type('text');
}

/** A text whose few values are part of the API. */
export function oneOf<Word extends string>(...words: readonly Word[]): ValueType<Word> {
  return { ...type<Word>('text'), words };
}
