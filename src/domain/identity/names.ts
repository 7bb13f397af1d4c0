// What names and ids of identity may look like, whoever gives them. NUL and lone surrogates, which Postgres takes in no
// text, are in none of them.

const SLUG = /^[a-z0-9][a-z0-9_-]{0,62}$/;
/** One line: no control or format characters, no unpaired surrogates, no line or paragraph separators. */
const LABEL = /^[^\p{C}\p{Zl}\p{Zp}]{1,200}$/u;
const EMAIL = /^[^\s@\p{C}]+@[^\s@\p{C}]+$/u;
const EMAIL_LENGTH_MAX = 254;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Each answers null, or what the text must be. */
export function slugFault(text: string): string | null {
  return SLUG.test(text)
    ? null
    : 'must be 1 to 63 lower-case letters, digits, hyphens or underscores, beginning with a letter or digit';
}

export function labelFault(text: string): string | null {
  return LABEL.test(text) ? null : 'must be 1 to 200 characters without control characters';
}

export function emailFault(text: string): string | null {
  return text.length <= EMAIL_LENGTH_MAX && EMAIL.test(text) ? null : 'must be an e-mail address';
}

/** Postgres refuses anything else as a fault; nothing has such an id, so it is simply absent. */
export function areUuids(...ids: readonly string[]): boolean {
  return ids.every((id) => UUID.test(id));
}
