// Reads a request's query parameters by a schema of text values; a mistake becomes a refusal that names the parameter.

import type { z } from 'zod';
import { checkAgainst } from './check-against.ts';
import type { Refusal } from './refusal.ts';

/**
 * Unknown parameters are ignored: they belong to other programs, such as trackers and caches. Those in `misplaced` are
 * refused: they mean something on other endpoints, and ignoring one would answer another question than was asked.
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
