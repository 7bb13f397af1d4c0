// A connection to the embedded engine runs one statement at a time, whoever leaves, and whatever fails.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ClientConnection, embeddedConnection } from '../../src/storage/clickhouse/embedded-connection.ts';

interface Running {
  readonly query: string;
  end(): void;
  fail(error: Error): void;
}

/** An engine whose statements end when the test says so. */
function engineOfGates() {
  const begun: Running[] = [];
  const query = ({ query }: { query: string }) => {
    const gate = Promise.withResolvers<string>();
    begun.push({ query, end: () => gate.resolve(query), fail: gate.reject });
    return gate.promise;
  };
  return { begun, connection: embeddedConnection({ query, command: query } as unknown as ClientConnection) };
}

const ask = (connection: Pick<ClientConnection, 'query'>, query: string, signal?: AbortSignal): Promise<unknown> =>
  connection.query({ query, ...(signal === undefined ? {} : { abort_signal: signal }) });

const soon = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('a statement begins when the one before has ended in the engine, also if its reader left', async () => {
  const { begun, connection } = engineOfGates();
  const leaving = new AbortController();
  const first = ask(connection, 'first', leaving.signal);
  const second = ask(connection, 'second');
  await soon();
  leaving.abort(new Error('left'));
  await assert.rejects(first, /left/);
  await soon();
  assert.deepEqual(
    begun.map(({ query }) => query),
    ['first'],
  );
  begun[0]?.end();
  await soon();
  begun[1]?.end();
  assert.equal(await second, 'second');
});

test('whoever leaves while waiting is told at once, and their statement never begins', async () => {
  const { begun, connection } = engineOfGates();
  const leaving = new AbortController();
  const first = ask(connection, 'first');
  const second = ask(connection, 'second', leaving.signal);
  const third = ask(connection, 'third');
  await soon();
  leaving.abort(new Error('left'));
  await assert.rejects(second, /left/);
  await assert.rejects(ask(connection, 'fourth', leaving.signal), /left/);
  begun[0]?.end();
  await first;
  await soon();
  begun[1]?.end();
  assert.equal(await third, 'third');
  assert.equal(begun.length, 2);
});

test('one that fails, in the engine or for its values, holds up nobody', async () => {
  const { begun, connection } = engineOfGates();
  const failed = ask(connection, 'failing');
  const unreadable = connection.query({ query: '{a:UInt8}', query_params: { a: 'x' } });
  const last = connection.command({ query: 'last' });
  await soon();
  begun[0]?.fail(new Error('the engine says no'));
  await assert.rejects(failed, /says no/);
  await assert.rejects(unreadable, /not an integer/);
  await soon();
  begun[1]?.end();
  assert.equal(await last, 'last');
});
