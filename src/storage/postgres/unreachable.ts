// Tells a database that is not there, lets nobody in, or has yet to take over, from one that refuses a statement.

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
  // It is a standby: after a failover an address may lead to one for a while.
  '25006',
]);
/** The connection failed (08), or the server ended it or lets nobody in: it stops, has crashed, or starts (57P). */
export const ENDED_SQLSTATE = /^(?:08|57P)/;
/** All connections are taken, or no memory or disk is left (53). */
const NO_ROOM_SQLSTATE = /^53/;
/**
 * PgBouncer ends a connection with it that it has no server for. Postgres says it of a statement that was asked
 * wrongly, such as one with a parameter too many, and goes on.
 */
const PROTOCOL_VIOLATION = '08P01';
/** What the driver says of a connection without a code. */
const UNREACHABLE =
  /timeout exceeded when trying to connect|Connection terminated|not queryable|Query read timeout|does not support SSL/;

export function isUnreachable(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  const code = 'code' in error ? String(error.code) : '';
  if (UNREACHABLE_CODES.has(code)) return true;
  // The server's words tell nothing: they repeat values that somebody sent.
  if (!(error instanceof pg.DatabaseError)) return UNREACHABLE.test(error.message);
  if (code === PROTOCOL_VIOLATION) return error.severity === 'FATAL';
  return ENDED_SQLSTATE.test(code) || NO_ROOM_SQLSTATE.test(code);
}
