// Finds the mistakes in a value that may have one of several shapes: those in the shape that it was meant to have.

import type { z } from 'zod';

/** The message of a union that has none of its own. */
const ZOD_MESSAGE = 'Invalid input';

/** The issue itself, or the inner issues of a union if exactly one of its members has the value's type. */
export function issuesWithin(issue: z.core.$ZodIssue): readonly z.core.$ZodIssue[] {
  if (issue.code !== 'invalid_union') return [issue];
  const meant = issue.errors.filter((errors) =>
    errors.every(({ code, path }) => code !== 'invalid_type' || path.length > 0),
  );
  const [only] = meant;
  if (only === undefined || meant.length > 1) return [issue];
  // If the value as a whole is wrong, the union's own message is better, since it knows the other shapes.
  const isWhole = only.some(({ code, path }) => path.length === 0 && code !== 'unrecognized_keys');
  if (isWhole && issue.message !== ZOD_MESSAGE) return [issue];
  return only.flatMap((inner) => issuesWithin({ ...inner, path: [...issue.path, ...inner.path] }));
}
