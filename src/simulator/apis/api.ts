// The seam between the simulated provider's server and the APIs it speaks: an API turns a request into a plan, the
// server carries it out.

import type { IncomingHttpHeaders } from 'node:http';
import type { Directives } from '../directives.ts';
import type { Json } from '../json-fields.ts';
import type { ReplySocket } from '../reply-socket.ts';

export type ReplyHeaders = Readonly<Record<string, string>>;

/** What came with a call, before it is known what to make of it. */
export interface CallBody {
  readonly body: Buffer;
  /** Parsed body; null when it is not a JSON object (or not the form that the API reads instead). */
  readonly json: Json | null;
  /** What a form was made of, for the log. */
  readonly parts: readonly ReceivedPart[] | null;
  readonly headers: IncomingHttpHeaders;
  /** The part of the path that the route leaves open. */
  readonly pathId: string;
  readonly query: URLSearchParams;
  /** Whose call it is, as a hash of the credential. */
  readonly caller: string;
}

export interface CallRequest extends CallBody {
  /** The id this call's reply must carry. */
  readonly id: string;
  readonly directives: Directives;
  /** Pause between tokens when the request does not say. */
  readonly defaultDelayMs: number;
}

/** One part of a form, or one file of a JSON form, as it arrived. */
export interface ReceivedPart {
  readonly name: string;
  readonly filename: string | null;
  readonly contentType: string | null;
  readonly bytes: number;
  readonly sha256: string;
}

/**
 * What a call amounted to so far; the API keeps it up to date while it sends, since the caller may leave at any time.
 */
export interface CallTally {
  promptTokens: number;
  cachedTokens: number;
  cacheWriteTokens: number;
  completionTokens: number;
  images: number;
  usageSent: boolean;
}

export function emptyTally(): CallTally {
  return { promptTokens: 0, cachedTokens: 0, cacheWriteTokens: 0, completionTokens: 0, images: 0, usageSent: false };
}

export interface ProviderError {
  readonly status: number;
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: string | null;
  /** Which of the forms that the dialect has for an error was asked for, if it has several. */
  readonly form?: string | undefined;
  /** Instead of what the dialect makes of the fields above. */
  readonly body?: Json;
}

/** One planned reply. */
export interface CallPlan {
  readonly tally: CallTally;
  /** Sends the reply; true when it was sent whole and without a fault. */
  send(reply: ReplySocket, headers: ReplyHeaders): Promise<boolean>;
}

export type Planned =
  | { readonly ok: true; readonly plan: CallPlan }
  | { readonly ok: false; readonly error: ProviderError };

export interface Api {
  readonly name: string;
  /** Whose habits the reply's headers follow. */
  readonly family: 'openai' | 'anthropic' | 'typesafe';
  readonly idPrefix: string;
  /** Which directives concern it (directives.ts). */
  readonly scopes: readonly string[];
  /** Instead of these, for calls that are another's than their API says. */
  scopesOf?(call: CallBody): readonly string[];
  readonly unauthenticated: ProviderError;
  /** Reads a body that is not JSON; null when it makes no sense, undefined when it is to be read as JSON. */
  readForm?(body: Buffer, contentType: string): { json: Json; parts: readonly ReceivedPart[] } | null | undefined;
  /** The text in which directives are looked for. */
  readText(call: CallBody): string;
  plan(request: CallRequest): Planned;
  renderError(error: ProviderError, requestId: string): string;
}
