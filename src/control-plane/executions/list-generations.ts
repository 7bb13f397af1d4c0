// GET /v1/generations?client_request_id=: the executions that carried a correlation value; always an array (spec 4.5).
// The array is given only when everything that was recorded before the request is posted, so that the latest execution
// is never missing.

import type { ScopedPrincipal } from '../../domain/identity/principal.ts';
import type { Exchange } from '../../http/exchange.ts';
import { CLIENT_REQUEST_ID_LENGTH_MAX } from '../../records/field-types.ts';
import { type Generation, renderGeneration } from '../../records/generation.ts';
import { type GenerationLookup, POSTING_WAIT_MS } from './get-generation.ts';

export interface GenerationsParams {
  readonly clientRequestId: string;
  readonly organizationId: string;
  readonly walletId: string | null;
}

/** Newest first; storage bounds how many. */
export type FindGenerations = (params: GenerationsParams) => Promise<readonly Generation[]>;

export function listGenerations(
  findGenerations: FindGenerations,
  postingPassed: GenerationLookup['postingPassed'],
): (exchange: Exchange, principal: ScopedPrincipal) => Promise<void> {
  return async (exchange, principal) => {
    const clientRequestId = new URLSearchParams(exchange.query).get('client_request_id');
    if (clientRequestId === null || clientRequestId === '') {
      return exchange.refuse({
        kind: 'invalid_field',
        field: 'client_request_id',
        reason: 'the query must name the value sent in X-Client-Request-Id',
      });
    }
    if (clientRequestId.length > CLIENT_REQUEST_ID_LENGTH_MAX) {
      const reason = `it has more than ${CLIENT_REQUEST_ID_LENGTH_MAX} characters, and no request has such a label`;
      return exchange.refuse({ kind: 'invalid_field', field: 'client_request_id', reason });
    }
    const { organizationId, walletId } = principal;
    const params = { clientRequestId, organizationId, walletId };
    if (!(await postingPassed(POSTING_WAIT_MS))) return exchange.refuse({ kind: 'not_posted_yet' });
    const found = await findGenerations(params);
    exchange.answerJson(200, `{"data":[${found.map(renderGeneration).join(',')}]}`);
  };
}
