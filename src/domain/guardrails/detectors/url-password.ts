// Finds passwords in URLs (`scheme://user:password@host`): only the password, and only if it is not a variable or a
// placeholder.

import { classOf, holdByClass, LETTER, runEnd } from './characters.ts';
import { byteAt, type Detector, type Hit, pairOf, textOf } from './detector.ts';

const SLASH = 0x2f;
const COLON = 0x3a;
const AT_SIGN = 0x40;
const USER_BYTES_MAX = 64;
const PASSWORD_BYTES_MAX = 128;
const USER = classOf('A-Za-z0-9._~%!$&*+,;=\u002d');
/** The characters of RFC 3986's userinfo, and those that people leave unencoded in it. */
const PASSWORD = classOf('A-Za-z0-9._~%!$&*+,;=:^#?\u002d');
const HOST_FIRST = classOf('A-Za-z0-9_[');
const SCHEME_BYTES_MAX = 20;

/** The anchor is the second slash. */
function findUrlPassword(bytes: Uint8Array, at: number, start: number, end: number, hit: Hit): boolean {
  if (at - 2 < start || at < 3 || bytes[at - 2] !== COLON || LETTER[bytes[at - 3] as number] !== 1) return false;
  const userEnd = runEnd(USER, bytes, at + 1, end, USER_BYTES_MAX);
  if (byteAt(bytes, userEnd, end) !== COLON) return false;
  const from = userEnd + 1;
  const to = runEnd(PASSWORD, bytes, from, end, PASSWORD_BYTES_MAX);
  if (to === from || byteAt(bytes, to, end) !== AT_SIGN || HOST_FIRST[byteAt(bytes, to + 1, end)] !== 1) return false;
  if (isPlaceholder(textOf(bytes, from, to))) return false;
  hit.start = from;
  hit.end = to;
  hit.isOpen = false;
  return true;
}

const PLACEHOLDERS: ReadonlySet<string> = new Set(
  (
    'pass passwd password pwd pw secret token key changeme example test user username user_password your_password ' +
    'yourpassword my_password mypassword foo bar abc xyz guest apikey api_key auth credentials redacted hidden port'
  ).split(' '),
);

function isPlaceholder(password: string): boolean {
  const lower = password.toLowerCase();
  if (
    PLACEHOLDERS.has(lower) ||
    /^(?:db|pg|my|your|the|some|proxy|redis|user|basic)?[-_]?(?:pass|password|passwd|pwd|secret)s?\d*$/.test(lower)
  )
    return true;
  // `$VAR`, `%s`, `%(name)s`, `xxx`, `****`, `...`.
  return /^[$%]|^([x*.#_-])\1*$/i.test(password) || /^%?[sd]$/.test(password);
}

export const urlPassword: Detector = {
  entity: 'url_password',
  lookBehind: SCHEME_BYTES_MAX + 3 + USER_BYTES_MAX + 1,
  anchors: [pairOf(SLASH, SLASH)],
  find: findUrlPassword,
  hold: holdByClass(
    classOf('A-Za-z0-9._~%!$&*+,;=:^#?/@\u002d'),
    // The scheme may have been relayed already, as the end of a token.
    classOf('A-Za-z:/'),
    SCHEME_BYTES_MAX + 3 + USER_BYTES_MAX + 1 + PASSWORD_BYTES_MAX + 2,
  ),
};
