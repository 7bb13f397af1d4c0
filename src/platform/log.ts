// Structured logs: JSON lines that name the process. Callers must never log secrets or prompt text; the redaction here
// is only a safety net.

import { type DestinationStream, type Logger, pino } from 'pino';

export type Log = Logger;

/** Keys whose value is always a credential, redacted to the depth that logged objects have in practice. */
const SECRET_KEYS = [
  'authorization',
  'Authorization',
  'proxy-authorization',
  'x-api-key',
  'X-Api-Key',
  'apiKey',
  'api_key',
  'secret',
  'password',
  'cookie',
  'set-cookie',
  'token',
  'adminToken',
  'masterKey',
  'delegationKey',
  'databaseUrl',
  'connectionString',
] as const;

const REDACTED_PATHS = SECRET_KEYS.flatMap((key) => {
  const quoted = `["${key}"]`;
  return [quoted, `*${quoted}`, `*.*${quoted}`, `*.*.*${quoted}`];
});

/**
 * The fields of an error that say what failed and where. Others are dropped, because drivers put rows, headers and
 * bodies into them.
 */
const ERROR_FIELDS = [
  'code',
  'errno',
  'syscall',
  'address',
  'port',
  'severity',
  'schema',
  'table',
  'column',
  'constraint',
  'routine',
] as const;
const CAUSE_DEPTH_MAX = 8;

interface SerializedError {
  type: string;
  message: string;
  stack?: string;
  cause?: SerializedError;
  errors?: SerializedError[];
  [field: string]: unknown;
}

/** Converts an error and its causes to plain data. Any value may have been thrown. */
export function serializeError(thrown: unknown, depth = 0): SerializedError {
  if (!(thrown instanceof Error)) return { type: typeof thrown, message: String(thrown) };
  const serialized: SerializedError = { type: thrown.name, message: thrown.message };
  if (thrown.stack !== undefined) serialized.stack = thrown.stack;
  for (const field of ERROR_FIELDS) {
    const value = (thrown as unknown as Record<string, unknown>)[field];
    if (typeof value === 'string' || typeof value === 'number') serialized[field] = value;
  }
  if (depth >= CAUSE_DEPTH_MAX) return serialized;
  if (thrown.cause !== undefined) serialized.cause = serializeError(thrown.cause, depth + 1);
  if (thrown instanceof AggregateError) {
    serialized.errors = thrown.errors
      .slice(0, CAUSE_DEPTH_MAX)
      .map((error: unknown) => serializeError(error, depth + 1));
  }
  return serialized;
}

/**
 * Creates the process's log. Errors go under the key `err`. Writes are synchronous, so that the last lines before a
 * crash are not lost.
 */
export function createLog(options: { level: string; process: string; destination?: DestinationStream }): Log {
  return pino(
    {
      level: options.level,
      base: { process: options.process, pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: (thrown: unknown) => serializeError(thrown) },
      redact: { paths: REDACTED_PATHS, censor: '[redacted]' },
    },
    options.destination ?? pino.destination({ dest: 1, sync: true }),
  );
}

/**
 * The destination of a command's log, since stdout is for its output. Writes are synchronous, so that the last lines
 * before an end are not lost.
 */
export function logToStderr(): DestinationStream {
  return pino.destination({ dest: 2, sync: true });
}
