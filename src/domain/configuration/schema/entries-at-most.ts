// The maximum number of entries of lists and records in a schema. Zod checks a list's maximum before its items, and has
// no maximum for records.

import { z } from 'zod';

/**
 * The most entries of a list or record in a provider, in a model or in its prices. It applies to the reading of stored
 * prices, too.
 */
export const CONFIGURED_MAX = 200;
export const CONFIGURED_TOO_MANY = `must be at most ${CONFIGURED_MAX}`;

/** `record` with at most `max` entries, which are counted before any of them is checked. */
export function entriesAtMost<Shape extends z.ZodRecord>(max: number, record: Shape, what = 'entries') {
  return z.preprocess(
    (value, context) => {
      if (typeof value !== 'object' || value === null || Object.keys(value).length <= max) return value;
      context.issues.push({ code: 'custom', message: `must have at most ${max} ${what}`, input: value });
      return z.NEVER;
    },
    record.meta({ maxProperties: max }),
  );
}
