// The maximum of a record in a schema. Of lists zod asks it before it looks at an item; of records it knows none.

import { z } from 'zod';

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
