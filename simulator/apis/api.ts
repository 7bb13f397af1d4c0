// The seam between the simulated provider's server and the APIs it speaks: an API turns a request body into a plan, the server carries it out.

import type { Directives } from '../directives.ts';
import type { ReplySocket } from '../reply-socket.ts';

export interface CallRequest {
  /** The id this call's reply must carry. */
  readonly id: string;
  readonly body: Buffer;
  /** Parsed body; null when it is not a JSON object. */
  readonly json: Readonly<Record<string, unknown>> | null;
  readonly directives: Directives;
  /** Pause between tokens when the request does not say. */
  readonly defaultDelayMs: number;
}

/** What a call amounted to so far; the API keeps it up to date while it sends, since the caller may leave at any time. */
export interface CallTally {
  promptTokens: number;
  cachedTokens: number;
  completionTokens: number;
  usageSent: boolean;
}

export interface ProviderError {
  readonly status: number;
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: string | null;
}

/** One planned reply. */
export interface CallPlan {
  readonly tally: CallTally;
  /** Sends the reply; true when it was sent whole and without a fault. */
  send(reply: ReplySocket, headers: Readonly<Record<string, string>>): Promise<boolean>;
}

export interface Api {
  readonly name: string;
  /** The text in which directives are looked for. */
  readText(json: Readonly<Record<string, unknown>>): string;
  plan(request: CallRequest): { ok: true; plan: CallPlan } | { ok: false; error: ProviderError };
  renderError(error: ProviderError): string;
}
