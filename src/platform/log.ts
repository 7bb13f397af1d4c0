// Structured logs: JSON lines on stdout, each naming the process that wrote it. Secrets and prompt text never reach a
// log call; the redaction here is the net under that rule, not the rule.

import { type DestinationStream, type Logger, pino } from 'pino';

export type Log = Logger;

/**
 * Keys whose value is a credential wherever it stands; covered to the depth that a log call's object has in practice.
 */
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
 * Fields of an error that say what failed and where. Others are dropped: drivers put rows, headers and bodies into
 * theirs.
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

/** An error as plain data, with its causes. Anything may be thrown, so anything is accepted. */
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
 * Makes the process's log. Errors go under the key `err`. The stdout write is synchronous, so that the last lines
 * before a crash are there.
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
