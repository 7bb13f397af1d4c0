// Checks what a client sent against a schema and turns the first mistake into a refusal that names the field.

import type { z } from 'zod';
import { JSON_TYPES, wordsOf } from './issue-words.ts';
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

function reasonOf(issue: z.core.$ZodIssue): string {
  const words = wordsOf(issue, JSON_TYPES);
  if (words === 'is missing') return 'it is required';
  return words.startsWith('must ') || words.startsWith('has ')
    ? `it ${words}`
    : words.charAt(0).toLowerCase() + words.slice(1);
}
