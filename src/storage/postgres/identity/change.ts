// Runs a change of identity data in a transaction. Expected failures, including violated constraints, are returned as
// values.

import type { Refused } from '../../../domain/refusals/refused.ts';
import type { Postgres, PostgresClient } from '../pool.ts';

export const NOT_FOUND: Refused = { refused: 'not_found' };

export function invalid(field: string, reason: string): Refused {
  return { refused: 'invalid', field, reason };
}

export function conflict(field: string, reason: string): Refused {
  return { refused: 'conflict', field, reason };
}

/** A conflict with other stored data, which `reason` describes. */
export function contradicts(reason: string): Refused {
  return { refused: 'conflict', reason };
}

/** The first field with a problem, as a refusal; null when there is none. */
export function refuseProblems(problems: Readonly<Record<string, string | null>>): Refused | null {
  for (const [field, problem] of Object.entries(problems)) if (problem !== null) return invalid(field, problem);
  return null;
}

/**
 * Raised by the trigger that protects the last owner of an organization or team (deploy/postgres/0008-identity.sql).
 */
export const OWNER_FLOOR_SQLSTATE = 'TG409';
const UNIQUE_VIOLATION = '23505';
const FOREIGN_KEY_VIOLATION = '23503';

/**
 * Runs `work` in one transaction. A refusal that it returns must come before its first write, since returning commits.
 * `taken` is the field to name when a unique constraint is violated.
 */
export async function change<T>(
  postgres: Postgres,
  taken: string,
  work: (client: PostgresClient) => Promise<T | Refused>,
): Promise<T | Refused> {
  try {
    return await postgres.transaction(work);
  } catch (error) {
    switch ((error as { code?: unknown }).code) {
      case OWNER_FLOOR_SQLSTATE:
        return { refused: 'owner_floor' };
      case UNIQUE_VIOLATION:
        return conflict(taken, 'is taken');
      case FOREIGN_KEY_VIOLATION:
        return NOT_FOUND;
      default:
        throw error;
    }
  }
}
