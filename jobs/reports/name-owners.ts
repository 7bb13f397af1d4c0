// Finds the names that reports show beside ids. While Postgres is away, reports are answered without names.

import type { FindOwnerNames, Owner } from '../../src/domain/reports/owners.ts';
import { withinTime } from './within-time.ts';

const NO_NAMES: Readonly<Record<Owner, ReadonlyMap<string, string>>> = {
  organization: new Map(),
  team: new Map(),
  user: new Map(),
  api_key: new Map(),
};

export function nameOwners(find: FindOwnerNames, log: { warn(fields: object, message: string): void }): FindOwnerNames {
  return async (organizationId, ids) => {
    if (Object.values(ids).every((of) => of.length === 0)) return NO_NAMES;
    return withinTime(find(organizationId, ids), NO_NAMES, { log, without: 'names' });
  };
}
