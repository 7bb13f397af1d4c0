// The log: one JSON line a call, causes kept, credentials not.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLog, serializeError } from '../../src/platform/log.ts';

function capture(): { lines: string[]; log: ReturnType<typeof createLog> } {
  const lines: string[] = [];
  const log = createLog({
    level: 'info',
    process: 'gateway-1',
    destination: { write: (line: string) => void lines.push(line) },
  });
  return { lines, log };
}

test('a line says when, how grave, and which process', () => {
  const { lines, log } = capture();
  log.info({ port: 8080 }, 'listening');
  log.debug('not at this level');
  assert.equal(lines.length, 1);
  const line = JSON.parse(lines[0] as string) as Record<string, unknown>;
  assert.equal(line['process'], 'gateway-1');
  assert.equal(line['level'], 'info');
  assert.equal(line['msg'], 'listening');
  assert.match(line['time'] as string, /^\d{4}-\d\d-\d\dT/);
});

test('credentials are redacted wherever they stand', () => {
  const { lines, log } = capture();
  log.info(
    {
      secret: 'hush',
      headers: { authorization: 'Bearer hush', 'x-api-key': 'hush' },
      providers: [{ id: 'p', apiKey: 'hush' }],
      deep: { er: { config: { apiKey: 'hush' } } },
    },
    'x',
  );
  log.child({ request: { headers: { Authorization: 'hush' } } }).warn('y');
  assert.equal(lines.length, 2);
  for (const line of lines) assert.doesNotMatch(line, /hush/);
  assert.match(lines[0] as string, /\[redacted\]/);
});

test('an error is told with its causes, and without what drivers hang on it', () => {
  const { lines, log } = capture();
  const driverError = Object.assign(new Error('duplicate key'), {
    code: '23505',
    constraint: 'generations_pkey',
    detail: 'Key (email)=(a@b)',
    headers: { authorization: 'hush' },
  });
  log.error(
    { err: new Error('could not post', { cause: new AggregateError([driverError, 'text'], 'all failed') }) },
    'posting failed',
  );
  const { err } = JSON.parse(lines[0] as string) as {
    err: { message: string; stack: string; cause: { errors: Record<string, unknown>[] } };
  };
  assert.equal(err.message, 'could not post');
  assert.match(err.stack, /log\.test/);
  assert.deepEqual(
    { ...err.cause.errors[0], stack: '' },
    { type: 'Error', message: 'duplicate key', stack: '', code: '23505', constraint: 'generations_pkey' },
  );
  assert.deepEqual(err.cause.errors[1], { type: 'string', message: 'text' });
});

test('a cause that is its own cause ends', () => {
  const error = new Error('loop');
  error.cause = error;
  assert.ok(JSON.stringify(serializeError(error)).length > 0);
});
