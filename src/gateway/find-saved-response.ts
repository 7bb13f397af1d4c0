// Looks up the owner of a saved response or item in Postgres for the data plane.

import type { SavedResponseStore } from '../generation/catalog/saved-responses.ts';
import type { Postgres } from '../storage/postgres/pool.ts';
import { findSavedItems } from '../storage/postgres/saved/saved-items.ts';
import { findSavedResponse, isSavedResponse } from '../storage/postgres/saved/saved-responses.ts';

export function savedResponsesIn(postgres: Postgres): SavedResponseStore {
  return {
    async findResponse({ organizationId, walletId }, responseId) {
      const saved = await findSavedResponse(postgres, { organizationId, walletId, responseId });
      if (saved !== null) return saved;
      return (await isSavedResponse(postgres, responseId)) ? 'foreign' : 'unknown';
    },
    findItems: ({ organizationId, walletId }, itemIds) =>
      findSavedItems(postgres, { organizationId, walletId, itemIds }),
  };
}
