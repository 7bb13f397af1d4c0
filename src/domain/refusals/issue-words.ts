// Says in plain words what is wrong with a value that does not fit its schema.

import type { z } from 'zod';

/** What readers of JSON call a type. */
export const JSON_TYPES: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
};

/** What readers of YAML call a type. */
export const YAML_TYPES: Readonly<Record<string, string>> = {
  string: 'text (in quotes where it looks like a number)',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a mapping of keys to values',
  record: 'a mapping of keys to values',
};

const ZODS_OWN = /^(?:Invalid |Too big: |Too small: |Unrecognized key)/;

type Types = Readonly<Record<string, string>>;

/**
 * The words follow the name of the field, as "must be a string" does. Messages of our schemas are such words already;
 * zod's own are replaced. No value is quoted: it may be a secret.
 */
export function wordsOf(issue: z.core.$ZodIssue, types: Types): string {
  if (!ZODS_OWN.test(issue.message)) return issue.message;
  if (issue.message.endsWith('received undefined')) return 'is missing';
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${types[issue.expected] ?? issue.expected}`;
    case 'invalid_value':
      return `must be ${issue.values.map(String).join(' or ')}`;
    case 'invalid_key':
      return `cannot be a name here${nameWords(issue.issues[0]?.message)}`;
    case 'unrecognized_keys':
      return `has an unknown key: ${issue.keys.join(', ')}`;
    case 'invalid_union':
      return unionWords(issue, types);
    case 'too_big':
      return `must ${amountWords(issue.origin, issue.inclusive === false ? 'less than' : 'at most', issue.maximum)}`;
    case 'too_small':
      return `must ${amountWords(issue.origin, issue.inclusive === false ? 'more than' : 'at least', issue.minimum)}`;
    case 'invalid_format':
    case 'not_multiple_of':
    case 'invalid_element':
    case 'custom':
      return 'has a form that is not allowed';
  }
}

/** `message` is that of the schema of names. */
function nameWords(message = ''): string {
  return message === '' || ZODS_OWN.test(message) ? '' : `: a name ${message}`;
}

function unionWords(issue: z.core.$ZodIssueInvalidUnion, types: Types): string {
  if ('options' in issue && issue.options !== undefined) return `must be ${issue.options.map(String).join(' or ')}`;
  if (issue.errors.length === 0) return 'has a kind that does not exist';
  const wrongTypes = issue.errors.flat().filter(({ code, path }) => code === 'invalid_type' && path.length === 0);
  return wrongTypes.length < issue.errors.length
    ? 'has a form that is not allowed'
    : [...new Set(wrongTypes.map((inner) => wordsOf(inner, types)))].join(' or ').replaceAll(' or must be ', ' or ');
}

const UNITS: Readonly<Record<string, readonly [one: string, several: string]>> = {
  string: ['character', 'characters'],
  array: ['entry', 'entries'],
};

function amountWords(origin: string, bound: string, amount: number | bigint): string {
  const [one, several] = UNITS[origin] ?? [];
  return one === undefined ? `be ${bound} ${amount}` : `have ${bound} ${amount} ${amount === 1 ? one : several}`;
}
