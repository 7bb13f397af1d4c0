// Tells a database that is not there, lets nobody in, or has yet to take over, from one that refuses a statement.

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
  // All connections are taken.
  '53300',
  // It is a standby: after a failover an address may lead to one for a while.
  '25006',
  // It stops, has crashed, or starts.
  '57P01',
  '57P02',
  '57P03',
]);
/** The connection failed; also how PgBouncer says that there is no server behind it. */
const CONNECTION_EXCEPTION = /^08/;
/** What the driver says of a connection without a code. */
const UNREACHABLE =
  /timeout exceeded when trying to connect|Connection terminated|not queryable|Query read timeout|does not support SSL/;

export function isUnreachable(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  const code = 'code' in error ? String(error.code) : '';
  return UNREACHABLE_CODES.has(code) || CONNECTION_EXCEPTION.test(code) || UNREACHABLE.test(error.message);
}
