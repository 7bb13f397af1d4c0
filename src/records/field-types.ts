// The types of record fields. Each row of the table in fields.ts names one of them. The type's kind decides how the
// spool, Postgres, ClickHouse and the listings represent the value.

import type { ScreeningReport } from '../domain/guardrails/screening-report.ts';
import type { ModelRoute } from '../domain/routing/model-route.ts';
import type { Usage } from '../domain/usage/usage.ts';

/** A longer client request id is refused. */
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

/** Members with nothing to report are absent. */
export interface RecordedDetails {
  /** How many of the tokens written to the cache are kept there for an hour. */
  readonly cache_write_1h_tokens?: number;
  readonly service_tier?: string;
  readonly speed?: string;
  readonly inference_geo?: string;
  readonly input_audio_tokens?: number;
  readonly cached_audio_tokens?: number;
  readonly output_audio_tokens?: number;
  /** The cost that the provider reported, in dollars; absent unless that cost was charged. */
  readonly reported_cost_usd?: string;
  /** Calls of each tool that the provider ran; null: the reply does not say how many. */
  readonly calls?: Readonly<Record<string, number | null>>;
}

/** A record lists at most this many own keys that could not serve the request: the first ones. */
export const OWN_FAILURES_MAX = 64;

/** Why an organization's own key could not serve a request. */
export interface RecordedKeyFailure {
  readonly credential_id: string;
  readonly reason: string;
  /** HTTP status of the provider's answer; null: the provider did not answer. */
  readonly status: number | null;
}

/** One call to a provider, for a request that needed several calls. */
export interface RecordedAttempt {
  readonly provider: string;
  /** The organization's own key that the call was made with; absent: the service's key. */
  readonly credential_id?: string;
  /** When the call began, in milliseconds since the request was received. */
  readonly started_ms: number;
  /** When the call was given up for the next one, on the same scale; null: this call is the last. */
  readonly ended_ms: number | null;
  /** Why the call was given up; null: this call is the last. */
  readonly cause: string | null;
  /** HTTP status of the provider's answer; null: there was no answer, or this call is the last. */
  readonly status: number | null;
}

export interface ValueType<Value> {
  readonly kind: Kind;
  readonly isNullable: boolean;
  /** The values that a text can have; null: any text. */
  readonly words: readonly string[] | null;
  /** Never set at run time: the member carries the TypeScript type of the value. */
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

/** A text of the type `Word`. Readers of records accept other values too, which a newer version may write. */
export function word<Word extends string>(): ValueType<Word> {
  return type('text');
}

/** A text whose values are listed in the API. */
export function oneOf<Word extends string>(...words: readonly Word[]): ValueType<Word> {
  return { ...type<Word>('text'), words };
}
