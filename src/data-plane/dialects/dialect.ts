// What differs between the request formats. Everything outside a dialect's own file is the same for all of them (DESIGN 3).

import type { ApiName } from '../../domain/models/catalog.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Usage } from '../../domain/usage/usage.ts';
import type { ScannedRequest } from './request-scan/request-scanner.ts';
import type { StreamEnd } from './stream-end.ts';

/** What a request may cost at most, as far as its own fields say. */
export interface RequestBounds {
  readonly streamed: boolean;
  /** The client's own limit on output tokens, per answer; null when it set none. */
  readonly outputTokensMax: number | null;
  /** How many answers were asked for. */
  readonly answers: number;
  /** In the Responses dialect alone. */
  readonly saved?: SavedResponseFields;
}

/** What ties a Responses request to responses that the provider keeps (spec 4.2). Read, never judged: that is the provider's. */
export interface SavedResponseFields {
  /** The reply comes at once and without usage; the response is fetched later. */
  readonly background: boolean;
  /** null: not said, which the dialect takes for yes. */
  readonly store: boolean | null;
  readonly previousResponseId: string | null;
  readonly conversationId: string | null;
}

/** What `RelayedBytes` keeps of a reply. Of a short one both parts are all of it. */
export interface KeptReply {
  readonly beginning: Buffer;
  readonly end: Buffer;
  /** The reply broke off, so its last line or bracket may be missing. */
  readonly cut: boolean;
}

export interface Dialect {
  readonly api: ApiName;
  /** Path on the provider, appended to its base URL. */
  readonly upstreamPath: string;
  /** The field named in a `not_safely_billable` refusal: what the client should set. */
  readonly outputLimitField: string;
  /** False where a request costs nothing: there is nothing to bound, to hold or to rate. */
  readonly charged: boolean;
  /** Reads the control fields; a refusal where one of them has the wrong type. */
  readBounds(scanned: ScannedRequest, body: Buffer): RequestBounds | Refusal;
  /**
   * Usage as the provider reported it; null when it reported none. Counts are as written, unchecked: `checkUsage` decides whether they can be
   * used. A count that is missing, as the output's where a Messages stream broke off, is null.
   */
  readUsage(reply: KeptReply): Usage | null;
  /** A watcher for one stream's end, as clients of this dialect understand it. */
  watchStreamEnd(): StreamEnd;
}
