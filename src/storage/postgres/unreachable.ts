// Tells a database that is not there, or lets nobody in, from one that refuses a statement.

const UNREACHABLE_CODES = new Set([
  'ECONNREFUSED',
  'ENOENT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ECONNRESET',
  'EPIPE',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  '28000',
  '28P01',
  '3D000',
  // It stops, has crashed, or starts.
  '57P01',
  '57P02',
  '57P03',
]);
/** What the driver says of a connection without a code. */
const UNREACHABLE =
  /timeout exceeded when trying to connect|Connection terminated|not queryable|Query read timeout|does not support SSL/;

export function isUnreachable(error: unknown): error is Error {
  return (
    error instanceof Error &&
    (('code' in error && UNREACHABLE_CODES.has(String(error.code))) || UNREACHABLE.test(error.message))
  );
}
