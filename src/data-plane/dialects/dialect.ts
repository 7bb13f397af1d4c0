// What differs between the request formats. Everything outside a dialect's own file is the same for all of them (DESIGN 3).

import type { ApiName } from '../../domain/models/catalog.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Usage } from '../../domain/usage/usage.ts';
import type { ScannedRequest } from './request-scan/request-scanner.ts';

/** What a request may cost at most, as far as its own fields say. */
export interface RequestBounds {
  readonly streamed: boolean;
  /** The client's own limit on output tokens, per answer; null when it set none. */
  readonly outputTokensMax: number | null;
  /** How many answers were asked for. */
  readonly answers: number;
}

export interface Dialect {
  readonly api: ApiName;
  /** Path on the provider, appended to its base URL. */
  readonly upstreamPath: string;
  /** The field named in a `not_safely_billable` refusal: what the client should set. */
  readonly outputLimitField: string;
  /** Reads the control fields; a refusal where one of them has the wrong type. */
  readBounds(scanned: ScannedRequest, body: Buffer): RequestBounds | Refusal;
  /**
   * Usage as the provider reported it, from the end of the reply (the whole of it when short); null when it reported none.
   * Counts are as written, unchecked: `checkUsage` decides whether they can be used.
   */
  readUsage(end: Buffer): Usage | null;
  /** Whether a stream that so far ends with the first `length` bytes of `end` is over, as clients of this dialect understand it. Asked for every flush. */
  endsStream(end: Buffer, length: number): boolean;
}
