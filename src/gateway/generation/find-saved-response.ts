// Looks up the owner of a saved response or item in Postgres for the data plane.

import type { SavedResponseStore } from '../../generation/catalog/saved-responses.ts';
import type { Postgres } from '../../storage/postgres/pool.ts';
import { findSavedItems } from '../../storage/postgres/saved/saved-items.ts';
import { findSavedResponse, isSavedResponse } from '../../storage/postgres/saved/saved-responses.ts';
import type { PostingFence } from './posting-fence.ts';

export function savedResponsesIn(postgres: Postgres, fence: PostingFence): SavedResponseStore {
  return {
    postingPassed: (limitMs) => fence.passed(limitMs),
    async findResponse({ organizationId, walletId }, responseId) {
      const find = () => findSavedResponse(postgres, { organizationId, walletId, responseId });
      const saved = await find();
      if (saved !== null) return saved;
      if (!(await isSavedResponse(postgres, responseId))) return 'unknown';
      // It may have been posted between the two statements, and belong to this caller.
      return (await find()) ?? 'foreign';
    },
    findItems: ({ organizationId, walletId }, itemIds) =>
      findSavedItems(postgres, { organizationId, walletId, itemIds }),
  };
}
