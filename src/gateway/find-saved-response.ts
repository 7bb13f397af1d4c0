// Asks Postgres whose a saved response is, for the data plane.

import type { FindSavedResponse } from '../data-plane/catalog/saved-responses.ts';
import type { Postgres } from '../storage/postgres/pool.ts';
import { findSavedResponse, isSavedResponse } from '../storage/postgres/saved-responses.ts';

export function findSavedResponseIn(postgres: Postgres): FindSavedResponse {
  return async ({ organizationId, walletId }, responseId) => {
    const saved = await findSavedResponse(postgres, { organizationId, walletId, responseId });
    if (saved !== null) return saved;
    return (await isSavedResponse(postgres, responseId)) ? 'foreign' : 'unknown';
  };
}
