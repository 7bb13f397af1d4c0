// The schemas of names in a configuration file, for all parts of its schema.

import { z } from 'zod';

export const slugSchema = z.string().regex(/^[a-z0-9][a-z0-9_-]{0,62}$/, {
  error: 'must be 1 to 63 lower-case letters, digits, hyphens or underscores',
  abort: true,
});
/** Also used in URLs, logs and reports: no spaces, no control characters. */
export const modelNameSchema = z
  .string()
  .regex(/^[\x21-\x7e]{1,200}$/, 'must be 1 to 200 visible ASCII characters without spaces');
/** A label for people: one line. */
export const labelSchema = z.string().regex(/^\P{C}{1,200}$/u, 'must be 1 to 200 characters');
