// Reads the query of a request by a schema of text values; what is wrong becomes a refusal that names the parameter.

import type { z } from 'zod';
import { checkAgainst } from './check-against.ts';
import type { Refusal } from './refusal.ts';

/**
 * A parameter that we do not know is another program's, such as a tracker's or a cache's. One of `misplaced` is ours
 * and means something elsewhere: left out silently, the answer would seem to be to another question.
 */
export function readQuery<Schema extends z.ZodObject>(
  schema: Schema,
  text: string,
  misplaced: readonly string[] = [],
): { readonly value: z.output<Schema> } | Refusal {
  const fields: Record<string, string> = {};
  for (const [name, value] of new URLSearchParams(text)) {
    if (Object.hasOwn(schema.shape, name)) {
      if (Object.hasOwn(fields, name))
        return { kind: 'invalid_field', field: name, reason: 'it appears more than once' };
      fields[name] = value;
    } else if (misplaced.includes(name)) {
      return { kind: 'invalid_field', field: name, reason: 'it is not a parameter of this endpoint' };
    }
  }
  return checkAgainst(schema, fields);
}
