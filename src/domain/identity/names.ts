// Checks names and ids of organizations, teams, users and keys. None may contain NUL or lone surrogates, which Postgres
// accepts in no text.

const SLUG = /^[a-z0-9][a-z0-9_-]{0,62}$/;
/** One line: no control or format characters, no unpaired surrogates, no line or paragraph separators. */
const LABEL = /^[^\p{C}\p{Zl}\p{Zp}]{1,200}$/u;
const EMAIL = /^[^\s@\p{C}]+@[^\s@\p{C}]+$/u;
const EMAIL_LENGTH_MAX = 254;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Each returns null, or what the text must be. */
export function slugProblem(text: string): string | null {
  return SLUG.test(text)
    ? null
    : 'must be 1 to 63 lower-case letters, digits, hyphens or underscores, beginning with a letter or digit';
}

export function labelProblem(text: string): string | null {
  return LABEL.test(text) ? null : 'must be 1 to 200 characters without control characters';
}

export function emailProblem(text: string): string | null {
  return text.length <= EMAIL_LENGTH_MAX && EMAIL.test(text) ? null : 'must be an e-mail address';
}

/**
 * Postgres throws when anything else is compared with a uuid column. Nothing has such an id, so callers answer "not
 * found".
 */
export function areUuids(...ids: readonly string[]): boolean {
  return ids.every((id) => UUID.test(id));
}
