// Checks what a client sent against a schema and turns the first mistake into a refusal that names the field.

import type { z } from 'zod';
import type { Refusal } from './refusal.ts';
import { issuesWithin } from './union-issues.ts';

/**
 * Only the first mistake is reported: collecting the mistakes of 80,000 wrong items held the event loop for most of a
 * second.
 */
const AT_FIRST_MISTAKE: z.core.ParseContextInternal<z.core.$ZodIssue> = { abortEarly: true };

export function checkAgainst<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
): { readonly value: z.output<Schema> } | Refusal {
  const checked = schema.safeParse(value, AT_FIRST_MISTAKE);
  if (checked.success) return { value: checked.data };
  const issue = issuesWithin(checked.error.issues[0] as z.core.$ZodIssue)[0] as z.core.$ZodIssue;
  const path = issue.path.map(String);
  if (issue.code === 'unrecognized_keys')
    return { kind: 'invalid_field', field: [...path, issue.keys[0] ?? ''].join('.'), reason: 'there is no such field' };
  return { kind: 'invalid_field', field: path.join('.') || 'body', reason: reasonOf(issue) };
}

/** Our own messages begin with "must be"; zod's read "Invalid input: expected string, received undefined". */
function reasonOf(issue: z.core.$ZodIssue): string {
  if (issue.message.endsWith('received undefined')) return 'it is required';
  return issue.message.startsWith('must ')
    ? `it ${issue.message}`
    : issue.message.charAt(0).toLowerCase() + issue.message.slice(1);
}
