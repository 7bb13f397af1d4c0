// The names that reports show beside ids. Reports are answered without them while Postgres is away.

import type { FindOwnerNames, Owner } from '../../src/domain/reports/owners.ts';

/** A report has to begin within the gateway's time for it. */
const NAMES_TIMEOUT_MS = 3_000;

const NO_NAMES: Readonly<Record<Owner, ReadonlyMap<string, string>>> = {
  organization: new Map(),
  team: new Map(),
  user: new Map(),
  api_key: new Map(),
};

export function nameOwners(find: FindOwnerNames, log: { warn(fields: object, message: string): void }): FindOwnerNames {
  return async (organizationId, ids) => {
    if (Object.values(ids).every((of) => of.length === 0)) return NO_NAMES;
    let timeout: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timeout = setTimeout(() => reject(new Error('Postgres did not answer in time')), NAMES_TIMEOUT_MS);
    });
    try {
      return await Promise.race([find(organizationId, ids), late]);
    } catch (error) {
      log.warn({ err: error }, 'a report is shown without names');
      return NO_NAMES;
    } finally {
      clearTimeout(timeout);
    }
  };
}
