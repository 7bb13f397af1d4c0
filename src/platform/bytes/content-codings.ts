// Reads in which codings a body lies (RFC 9110, 8.4), for requests of clients and replies of providers alike.

const NAME = 'content-encoding';
const NONE: readonly string[] = [];

/**
 * Their names in small letters, of all lines that have some: several lines are one list, an empty part of which names
 * no coding (RFC 9110, 5.3 and 5.6.1), and `identity` is none. `headers`: names in small letters and values,
 * alternating.
 */
export function contentCodings(headers: readonly string[]): readonly string[] {
  // Nearly no body has one.
  if (!headers.includes(NAME)) return NONE;
  return headers
    .filter((_, index) => index % 2 === 1 && headers[index - 1] === NAME)
    .flatMap((line) => line.split(','))
    .map((coding) => coding.trim().toLowerCase())
    .filter((coding) => coding !== '' && coding !== 'identity');
}
