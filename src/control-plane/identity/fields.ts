// The field types of identity operations: which texts may be stored, and how values are shown. They refuse NUL, control
// characters and lone surrogates, which Postgres cannot store.

import { z } from 'zod';

export const slugField = z
  .string()
  .regex(
    /^[a-z0-9][a-z0-9_-]{0,62}$/,
    'must be 1 to 63 lower-case letters, digits, hyphens or underscores, beginning with a letter or digit',
  );
/**
 * One line: no control or format characters, no unpaired surrogates, nothing unassigned, no line or paragraph
 * separators.
 */
export const labelField = z
  .string()
  .regex(/^[^\p{C}\p{Zl}\p{Zp}]{1,200}$/u, 'must be 1 to 200 characters without control characters');
export const emailField = z
  .string()
  .max(254, 'must be at most 254 characters')
  .regex(/^[^\s@\p{C}]+@[^\s@\p{C}]+$/u, 'must be an e-mail address');
export const roleField = z.enum(['owner', 'admin', 'member']);
export const billingField = z.enum(['prepaid', 'none']);
export const setByField = z.enum(['platform', 'organization']);
export const modelNameField = z
  .string()
  .regex(/^[\x21-\x7e]{1,200}$/, 'must be 1 to 200 visible ASCII characters without spaces');
export const idField = z.uuid('must be a UUID').toLowerCase();
/** An instant as clients write it, with its time zone. */
export const momentField = z.iso.datetime({
  offset: true,
  message: 'must be a date and time with a time zone, such as 2026-01-31T12:00:00Z',
});

/** Ids as answers show them. */
export const shownId = z.uuid();
export const shownMoment = z.iso.datetime();

export function showMoment(timeMs: number): string {
  return new Date(timeMs).toISOString();
}

export function showMomentOrNull(timeMs: number | null): string | null {
  return timeMs === null ? null : showMoment(timeMs);
}

/** The query of a paged listing. */
export const pageQuery = z.object({
  limit: z.coerce
    .number('must be a whole number')
    .int('must be a whole number')
    .min(1, 'must be at least 1')
    .max(100, 'must be at most 100')
    .default(50),
  cursor: z
    .string()
    .regex(/^[\x21-\x7e]{1,200}$/, 'must be the next_cursor of an earlier page')
    .optional(),
});
