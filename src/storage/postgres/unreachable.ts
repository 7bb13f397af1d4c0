// Decides whether an error means that the database is unreachable: it is down, refuses logins or is a standby. Other
// errors mean that it refused a statement.

import pg from 'pg';

const UNREACHABLE_CODES = new Set([
  'ECONNREFUSED',
  'ENOENT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ECONNRESET',
  'EPIPE',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'CERT_HAS_EXPIRED',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  '28000',
  '28P01',
  '3D000',
  // The server is a standby. After a failover, an address may lead to a standby for a while.
  '25006',
]);
/** The connection failed (08), or the server ended or refused it because it stops, has crashed or starts (57P). */
export const ENDED_SQLSTATE = /^(?:08|57P)/;
/** All connections are taken, or no memory or disk is left (53). */
const NO_ROOM_SQLSTATE = /^53/;
/**
 * PgBouncer ends a connection with this code if it has no server for it. Postgres uses the code for a wrong message of
 * the client, such as a statement with too many parameters, and keeps the connection.
 */
const PROTOCOL_VIOLATION = '08P01';
/** The driver's messages for faults of a connection, which have no code. */
const UNREACHABLE =
  /timeout exceeded when trying to connect|Connection terminated|not queryable|Query read timeout|does not support SSL/;

export function isUnreachable(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  const code = 'code' in error ? String(error.code) : '';
  if (UNREACHABLE_CODES.has(code)) return true;
  // The message of a server's error is not examined, because it may quote values that clients sent.
  if (!(error instanceof pg.DatabaseError)) return UNREACHABLE.test(error.message);
  if (code === PROTOCOL_VIOLATION) return error.severity === 'FATAL';
  return ENDED_SQLSTATE.test(code) || NO_ROOM_SQLSTATE.test(code);
}
