// Parses the value of a Content-Length strictly (RFC 9110, 8.6), for requests of clients and replies of providers
// alike.

const DIGITS_MAX = 15;
const ZERO = 0x30;

/** The number of bytes; -1: not a length, or one that is absurdly large. */
export function readContentLength(value: string): number {
  if (value.length === 0 || value.length > DIGITS_MAX) return -1;
  let length = 0;
  for (let index = 0; index < value.length; index++) {
    const digit = value.charCodeAt(index) - ZERO;
    if (digit < 0 || digit > 9) return -1;
    length = length * 10 + digit;
  }
  return length;
}
