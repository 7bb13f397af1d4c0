// The interface between the simulated provider's server and its APIs: an API turns a request into a plan, and the
// server carries it out.

import type { IncomingHttpHeaders } from 'node:http';
import type { Directives } from '../directives.ts';
import type { RewriteDocument } from '../document-rewrite.ts';
import type { Json } from '../json-fields.ts';
import type { ReplySocket } from '../reply-socket.ts';

export type ReplyHeaders = Readonly<Record<string, string>>;

/** A call as received, before it is interpreted. */
export interface CallBody {
  readonly body: Buffer;
  /** The parsed body; null when it is not a JSON object, or not the form that the API reads instead. */
  readonly json: Json | null;
  /** The parts of a form, for the log. */
  readonly parts: readonly ReceivedPart[] | null;
  readonly headers: IncomingHttpHeaders;
  /** The part of the path that is a parameter of the route. */
  readonly pathId: string;
  readonly query: URLSearchParams;
  /** A hash of the caller's credential. */
  readonly caller: string;
}

export interface CallRequest extends CallBody {
  /** The id that the reply must have. */
  readonly id: string;
  readonly directives: Directives;
  /** The pause between tokens if the request does not set one. */
  readonly defaultDelayMs: number;
  /** Rewrites the reply's documents for a double; absent: they stay as the API writes them. */
  readonly rewriteDocument?: RewriteDocument | undefined;
  /** Written before a stream's first event. */
  readonly streamOpening?: string | undefined;
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
 * What a call has used so far. The API keeps it up to date while it sends, since the caller may disconnect at any time.
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
  /** The form of the error that was requested, if the dialect has several. */
  readonly form?: string | undefined;
  /** Replaces the body that the dialect would make of the fields above. */
  readonly body?: Json;
}

/** One planned reply. */
export interface CallPlan {
  readonly tally: CallTally;
  /** Sends the reply; true when all of it was sent without a fault. */
  send(reply: ReplySocket, headers: ReplyHeaders): Promise<boolean>;
}

export type Planned =
  | { readonly ok: true; readonly plan: CallPlan }
  | { readonly ok: false; readonly error: ProviderError };

/** The shortest successful exchange, for tests that call every API. */
export interface ApiExample {
  /** The request without its model; `text` is what the user says. */
  readonly request: (text: string) => Json;
  readonly reply: Json;
}

export interface Api {
  readonly name: string;
  /** The provider family whose response headers the reply has. */
  readonly family: 'openai' | 'anthropic' | 'typesafe';
  readonly idPrefix: string;
  /** The scopes of the directives that apply to it (directives.ts). */
  readonly scopes: readonly string[];
  /** Replaces `scopes` for calls that serve another purpose than their API suggests. */
  scopesOf?(call: CallBody): readonly string[];
  readonly unauthenticated: ProviderError;
  /** Reads a body that is not JSON; null when it is malformed, undefined when it should be read as JSON. */
  readForm?(body: Buffer, contentType: string): { json: Json; parts: readonly ReceivedPart[] } | null | undefined;
  /** The text that is searched for directives. */
  readText(call: CallBody): string;
  plan(request: CallRequest): Planned;
  renderError(error: ProviderError, requestId: string): string;
  /** Absent: the API works on objects that another API has made. */
  readonly example?: ApiExample;
}
