// A reader who leaves: no further statement begins for them, a ClickHouse server is left, and the embedded engine goes
// on for everybody else.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { Readable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../../src/platform/clock.ts';
import {
  type ClickHouseClient,
  createClickHouse,
  readingFor,
  SERVER_READ_SETTINGS,
  selectRows,
} from '../../src/storage/clickhouse/clickhouse.ts';
import { NOBODY } from '../support/billing-front.ts';
import { openTestClickHouse } from '../support/clickhouse.ts';
import { startClickHouseServer } from '../support/clickhouse-server.ts';
import { type ReportsFront, type ReportsFrontOptions, startReportsFront } from '../support/reports-front.ts';
import { waitFor } from '../support/waiting.ts';

const PRINCIPALS = {
  ann: { ...NOBODY, organizationId: randomUUID(), userId: randomUUID() },
  bob: { ...NOBODY, organizationId: randomUUID(), userId: randomUUID() },
};

/** With which a routing report begins. */
const STATEMENTS_AT_ONCE = 2;

async function startFront(
  context: TestContext,
  options: Omit<ReportsFrontOptions, 'principals'>,
): Promise<ReportsFront> {
  const front = await startReportsFront({ principals: PRINCIPALS, ...options });
  context.after(() => front.stop());
  return front;
}

/** Asks, and leaves once jobs has begun to read. */
async function askAndLeave(front: ReportsFront, path: string, hasBegun: () => boolean): Promise<void> {
  const call = request(`${front.url}${path}`, { headers: { authorization: 'Bearer ann' }, agent: false });
  call.on('error', () => undefined);
  call.end();
  await waitFor('jobs to read', hasBegun, (begun) => begun);
  call.destroy();
  await waitFor(
    'the place to be free',
    () => front.forwarder.open,
    (open) => open === 0,
  );
}

test('no further statement begins for them', async (context) => {
  for (const [path, atOnce] of [
    ['/v1/usage/me/analytics/routing', STATEMENTS_AT_ONCE],
    ['/v1/usage/me/requests', 1],
    ['/v1/usage/me/requests?format=csv', 1],
  ] as const) {
    const signals: (AbortSignal | undefined)[] = [];
    const gate = Promise.withResolvers<unknown[]>();
    const client = {
      query: async ({ abort_signal }: { abort_signal?: AbortSignal }) => {
        signals.push(abort_signal);
        return { json: () => (signals.length <= atOnce ? gate.promise : []) };
      },
    } as unknown as ClickHouseClient;
    const front = await startFront(context, { clickhouse: () => client, atOnce: 1 });
    await askAndLeave(front, path, () => signals.length === atOnce);
    await waitFor(
      'jobs to know',
      () => signals.every((signal) => signal?.aborted),
      (aborted) => aborted,
    );
    gate.resolve([{ entry_id: randomUUID(), organization: randomUUID(), admitted_ms: 1 }]);
    // Goes through the same semaphore.
    await front.json('bob', '/v1/usage/me/daily');
    assert.equal(signals.length, atOnce + 1, path);
  }
});

test('a ClickHouse server is left, and ends the statement if it may', async (context) => {
  let begun = 0;
  const gate = Promise.withResolvers<void>();
  const engine = {
    exec: async () => {
      begun += 1;
      await gate.promise;
      return { stream: Readable.from(['']) };
    },
  } as unknown as ClickHouseClient;
  const server = await startClickHouseServer(engine);
  const client = await createClickHouse({ url: server.url }, systemClock);
  context.after(async () => {
    gate.resolve();
    await client.close();
    await server.close();
  });
  for (const [settings, ended] of [
    [{}, 0],
    [SERVER_READ_SETTINGS, STATEMENTS_AT_ONCE],
  ] as const) {
    const front = await startFront(context, { clickhouse: () => client, settings });
    const before = begun;
    await askAndLeave(front, '/v1/usage/me/analytics/routing', () => begun === before + STATEMENTS_AT_ONCE);
    await waitFor(
      'the statement to be left',
      () => server.left,
      (left) => left === begun,
    );
    assert.equal(server.ended, ended);
  }
  assert.equal(begun, 2 * STATEMENTS_AT_ONCE);
});

test('the embedded engine ends its statement and goes on', async (context) => {
  const clickhouse = await openTestClickHouse();
  context.after(() => clickhouse.close());
  const leaving = new AbortController();
  const reader = readingFor(clickhouse.client, leaving.signal, {});
  const one = { n: 1 };
  assert.deepEqual(await selectRows(reader, 'SELECT {n:UInt8} AS n', one), [one]);
  const slow = selectRows(reader, 'SELECT sleep({n:UInt8}) AS n', one);
  leaving.abort(new Error('gone'));
  await assert.rejects(slow);
  await assert.rejects(selectRows(reader, 'SELECT {n:UInt8} AS n', one), /gone/);
  assert.deepEqual(await selectRows(clickhouse.client, 'SELECT {n:UInt8} AS n', one), [one]);
});
