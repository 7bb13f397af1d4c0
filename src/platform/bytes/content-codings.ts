// Reads the content codings of a body (RFC 9110, 8.4), for requests of clients and replies of providers alike.

const NAME = 'content-encoding';
const NONE: readonly string[] = [];

/**
 * The names of the codings, in lower case. Several header lines are one list, in which an empty part names no coding
 * (RFC 9110, 5.3 and 5.6.1); `identity` is no coding either. `headers`: names in lower case and values, alternating.
 */
export function contentCodings(headers: readonly string[]): readonly string[] {
  // Hardly any body has a coding.
  if (!headers.includes(NAME)) return NONE;
  return headers
    .filter((_, index) => index % 2 === 1 && headers[index - 1] === NAME)
    .flatMap((line) => line.split(','))
    .map((coding) => coding.trim().toLowerCase())
    .filter((coding) => coding !== '' && coding !== 'identity');
}
