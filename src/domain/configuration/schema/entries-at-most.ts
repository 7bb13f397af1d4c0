// The maximum of lists and records in a schema. Of lists zod asks it before it looks at an item; of records it knows
// none.

import { z } from 'zod';

/** No list or record in a provider, in a model or in its prices has more entries; stored prices are read by it, too. */
export const CONFIGURED_MAX = 200;
export const CONFIGURED_TOO_MANY = `must be at most ${CONFIGURED_MAX}`;

/** `record` with at most `max` entries, which are counted before one is looked at. */
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
