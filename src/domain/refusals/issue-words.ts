// Says in plain words what is wrong with a value that does not fit its schema.

import type { z } from 'zod';

/** What readers of JSON call a type. */
export const JSON_TYPES: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
};

/** What readers of YAML call a type. */
export const YAML_TYPES: Readonly<Record<string, string>> = {
  string: 'text (in quotes where it looks like a number)',
  number: 'a number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a mapping of keys to values',
  record: 'a mapping of keys to values',
};

/**
 * The words follow the name of the field, as "must be a string" does. Messages of our schemas are such words already;
 * zod's own begin with "Invalid" and are replaced. No value is quoted: it may be a secret.
 */
export function wordsOf(issue: z.core.$ZodIssue, types: Readonly<Record<string, string>>): string {
  if (!issue.message.startsWith('Invalid ')) return issue.message;
  if (issue.message.endsWith('received undefined')) return 'is missing';
  if (issue.code === 'invalid_type') return `must be ${types[issue.expected] ?? issue.expected}`;
  if (issue.code === 'invalid_value') return `must be ${issue.values.map(String).join(' or ')}`;
  if (issue.code === 'invalid_key') return 'has a key that is not a name';
  if (issue.code === 'invalid_union' && 'options' in issue && issue.options !== undefined)
    return `must be ${issue.options.map(String).join(' or ')}`;
  return issue.code === 'invalid_union' ? 'has a kind that does not exist' : issue.message;
}
