// The value of a Content-Length, read strictly (RFC 9110 8.6): of a client's request and of a provider's reply alike.

const DIGITS_MAX = 15;
const ZERO = 0x30;

/** Bytes; -1: it is no length, or one beyond all measure. */
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
