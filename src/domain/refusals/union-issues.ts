// What is wrong with a value that may have one of several shapes: the mistakes in the shape that it was meant to have.

import type { z } from 'zod';

/** Of a union that has no message of its own. */
const ZOD_MESSAGE = 'Invalid input';

/** An issue of the value itself; of a union those of its one member whose kind of value it is, where there is one. */
export function issuesWithin(issue: z.core.$ZodIssue): readonly z.core.$ZodIssue[] {
  if (issue.code !== 'invalid_union') return [issue];
  const meant = issue.errors.filter((errors) =>
    errors.every(({ code, path }) => code !== 'invalid_type' || path.length > 0),
  );
  const [only] = meant;
  if (only === undefined || meant.length > 1) return [issue];
  // What is wrong with the value as a whole a union may say better, which knows its other shapes.
  const isWhole = only.some(({ code, path }) => path.length === 0 && code !== 'unrecognized_keys');
  if (isWhole && issue.message !== ZOD_MESSAGE) return [issue];
  return only.flatMap((inner) => issuesWithin({ ...inner, path: [...issue.path, ...inner.path] }));
}
