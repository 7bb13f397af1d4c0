// Reads a request's query parameters by a schema of text values; a mistake becomes a refusal that names the parameter.

import type { z } from 'zod';
import { checkAgainst } from './check-against.ts';
import type { Refusal } from './refusal.ts';

/** Unknown parameters are skipped; endpoints that refuse them call `refuseUnknownParameter` first. */
export function readQuery<Schema extends z.ZodObject>(
  schema: Schema,
  text: string,
): { readonly value: z.output<Schema> } | Refusal {
  const fields: Record<string, string> = {};
  for (const [name, value] of new URLSearchParams(text)) {
    if (!Object.hasOwn(schema.shape, name)) continue;
    if (Object.hasOwn(fields, name)) return { kind: 'invalid_field', field: name, reason: 'it appears more than once' };
    fields[name] = value;
  }
  return checkAgainst(schema, fields);
}

/**
 * Spec 4.4: refuses the first parameter that the endpoint does not have, since the answer without it would be to
 * another question. `schema` null: the endpoint has no parameters. Returns null if all are known.
 */
export function refuseUnknownParameter(schema: z.ZodObject | null, text: string): Refusal | null {
  for (const name of new URLSearchParams(text).keys()) {
    if (schema === null || !Object.hasOwn(schema.shape, name))
      return { kind: 'invalid_field', field: name, reason: 'it is not a parameter of this endpoint' };
  }
  return null;
}
