// The check of `tollgate doctor` for organizations' own provider keys that wait for their secret to be entered again.

import type { Environment } from '../../config.ts';
import { shownState } from '../../domain/own-keys/shown-state.ts';
import { explainFileFault } from '../../installation/file-fault.ts';
import { StartFault } from '../../installation/start-fault.ts';
import { systemClock } from '../../platform/clock.ts';
import { loadCatalog } from '../../storage/postgres/catalog/catalog-store.ts';
import { listOwnKeysOfAll } from '../../storage/postgres/own-keys/list-own-keys.ts';
import { SchemaMismatch } from '../../storage/schema-fit.ts';
import { withDatabase } from '../command/database.ts';
import { type Finding, note } from './finding.ts';

export async function examineOwnKeys(environment: Environment): Promise<readonly Finding[]> {
  try {
    return await withDatabase(environment, async (postgres, _, openSecrets) => {
      const keys = await listOwnKeysOfAll(postgres);
      if (keys.length === 0) return [];
      const catalog = await loadCatalog(postgres, (await openSecrets()).box);
      return keys.flatMap(({ organization, key }) => {
        const { state, reason } = shownState(key, catalog, systemClock.nowMs());
        const named = `own key "${key.name}" (${key.kind}) of the organization "${organization}"`;
        return state === 'secret_needed' ? [note(`${named} is not used: ${reason}`)] : [];
      });
    });
  } catch (error) {
    // If no installation has run yet, there is nothing to check; other findings have said what keeps it from running.
    const isNotThere = error instanceof StartFault || error instanceof SchemaMismatch;
    if (isNotThere || explainFileFault(error) !== null) return [];
    throw error;
  }
}
