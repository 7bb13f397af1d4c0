// Reports between a gateway and jobs: who is away, what cannot be minted, what is cut, what is slow, how many at once.
// ClickHouse is a script.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, type TestContext, test } from 'node:test';
import { mintDelegationToken } from '../../src/domain/identity/delegation-token.ts';
import type { ClickHouseClient } from '../../src/storage/clickhouse/clickhouse.ts';
import { NOBODY, PLATFORM } from '../support/billing-front.ts';
import { findFreePort } from '../support/free-port.ts';
import { httpCall } from '../support/http-call.ts';
import { refusalBody } from '../support/refusal-body.ts';
import {
  DELEGATION_KEY,
  type Json,
  type ReportsFront,
  type ReportsFrontOptions,
  startReportsFront,
} from '../support/reports-front.ts';
import { waitFor } from '../support/waiting.ts';

const PRINCIPALS = {
  ann: { ...NOBODY, organizationId: randomUUID(), userId: randomUUID() },
  bob: { ...NOBODY, organizationId: randomUUID(), userId: randomUUID() },
  platform: PLATFORM,
};

async function startFront(context: TestContext, options: Partial<ReportsFrontOptions> = {}): Promise<ReportsFront> {
  const front = await startReportsFront({ principals: PRINCIPALS, clickhouse: () => null, ...options });
  context.after(() => front.stop());
  return front;
}

/** A jobs process of the test's own. */
async function startJobs(
  context: TestContext,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<{ readonly host: string; readonly port: number }> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
}

/** A ClickHouse whose every query is answered by `answer`, or throws what it throws. */
function scripted(answer: (query: string) => unknown[] | Promise<unknown[]>): ClickHouseClient {
  return {
    query: async ({ query }: { query: string }) => ({ json: async () => answer(query) }),
  } as unknown as ClickHouseClient;
}

function assertUnavailable(answer: Awaited<ReturnType<ReportsFront['get']>>): void {
  const body = JSON.parse(answer.body.toString()) as Json;
  assert.equal(answer.status, 503, answer.body.toString());
  assert.match(String(body['code']), /^[0-9a-f]{8}$/);
  assert.equal(body['error'], 'Reports cannot be read at the moment; requests are served and recorded all the same.');
  assert.match(String(answer.headers['retry-after']), /^[1-9]\d*$/);
}

describe('while something is away', () => {
  test('jobs: 503 in the platform envelope', async (context) => {
    const front = await startFront(context, { address: { host: '127.0.0.1', port: await findFreePort() } });
    assertUnavailable(await front.get('ann', '/v1/usage/me'));
    const socket = await startFront(context, { address: { socketPath: '/tmp/tollgate-no-such.sock' } });
    assertUnavailable(await socket.get('platform', '/v1/admin/analytics/routing'));
    await waitFor(
      'the places to be free',
      () => front.forwarder.open + socket.forwarder.open,
      (open) => open === 0,
    );
  });

  test('ClickHouse: 503 likewise, whether it is not open, not there, or too slow', async (context) => {
    let client: ClickHouseClient | null = null;
    const front = await startFront(context, { clickhouse: () => client });
    assertUnavailable(await front.get('ann', '/v1/usage/me'));
    for (const error of [
      new Error('socket hang up'),
      Object.assign(new Error('timeout exceeded'), { code: '159' }),
      Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }),
    ]) {
      client = scripted(() => Promise.reject(error));
      for (const path of [
        '/v1/usage/me',
        '/v1/usage/me/daily',
        '/v1/usage/me/requests',
        '/v1/usage/me/requests?format=csv',
        '/v1/usage/me/analytics/routing',
      ]) {
        assertUnavailable(await front.get('ann', path));
      }
      assertUnavailable(await front.get('platform', '/v1/admin/usage/export/focus'));
    }
  });

  test('a statement that is wrong is a fault of ours: 500', async (context) => {
    const front = await startFront(context, {
      clickhouse: () => scripted(() => Promise.reject(Object.assign(new Error('unknown column'), { code: '47' }))),
    });
    const answer = await front.get('ann', '/v1/usage/me');
    assert.equal(answer.status, 500);
    assert.doesNotMatch(answer.body.toString(), /column/);
  });
});

describe('the delegation token', () => {
  const unavailable = { error: 'delegation token unavailable' };

  test('that cannot be minted, or that jobs does not take, is 502 in the gateway envelope', async (context) => {
    for (const delegationKey of [null, Buffer.from('of another installation, 32 bytes')]) {
      const front = await startFront(context, {
        delegationKey,
        clickhouse: () => scripted(() => assert.fail('nothing may be read')),
      });
      const answer = await front.get('ann', '/v1/usage/me');
      assert.deepEqual([answer.status, refusalBody(answer.body.toString())], [502, unavailable]);
      await waitFor(
        'the place to be free',
        () => front.forwarder.open,
        (open) => open === 0,
      );
    }
  });

  test('comes before anything else: without a good one jobs reads nothing', async (context) => {
    const front = await startFront(context, { clickhouse: () => scripted(() => assert.fail('nothing may be read')) });
    let seen = '';
    const spied = await startJobs(context, (asked, response) => {
      seen = asked.headers.authorization ?? '';
      response.end('{}');
    });
    const spy = await startFront(context, { address: spied });
    await spy.get('ann', '/v1/usage/me?model=a');
    const jobs = `http://127.0.0.1:${front.jobsPort}`;
    const delegation = { report: 'usage', audience: 'platform', scope: { organizationId: null } } as const;
    const past =
      mintDelegationToken(DELEGATION_KEY, delegation, { method: 'GET', target: '/v1/admin/usage' }, 1_000) ?? '';
    for (const [path, authorization] of [
      ['/v1/usage/me?model=b', seen],
      ['/v1/admin/usage', seen],
      ['/v1/admin/usage', `Delegation ${past}`],
      ['/v1/usage/me?model=a', seen.replace('Delegation', 'Bearer')],
      ['/v1/usage/me', 'Bearer tg-something'],
      ['/v1/usage/me', ''],
    ] as const) {
      const answer = await httpCall(`${jobs}${path}`, { headers: { authorization } });
      assert.equal(answer.status, 401, `${path} ${authorization}`);
    }
    assert.match(seen, /^Delegation v1\./);
  });

  test('is sent once per request, and no credential with it', async (context) => {
    const headers: IncomingMessage['headers'][] = [];
    const jobs = await startJobs(context, (asked, response) => {
      headers.push(asked.headers);
      response.end('{}');
    });
    const front = await startFront(context, { address: jobs });
    await front.get('ann', '/v1/usage/me?model=%C3%A9"', {
      cookie: 'a=b',
      'x-api-key': 'secret',
      'x-forwarded-for': '1.2.3.4',
    });
    assert.deepEqual(
      headers.map((of) => Object.keys(of).toSorted()),
      [['accept', 'authorization', 'connection', 'host', 'x-request-id']],
    );
  });
});

describe('an answer on its way', () => {
  test('that jobs cuts is cut, and never looks whole', async (context) => {
    for (const headers of [{}, { 'content-length': '1000' }]) {
      const jobs = await startJobs(context, (_, response) => {
        response.writeHead(200, { 'content-type': 'text/csv', ...headers });
        response.write('id,created_at\r\n');
        setTimeout(() => response.destroy(), 20);
      });
      const front = await startFront(context, { address: jobs });
      const answer = await front.get('ann', '/v1/usage/me/requests?format=csv');
      assert.deepEqual([answer.status, answer.complete], [200, false]);
      await waitFor(
        'the place to be free',
        () => front.forwarder.open,
        (open) => open === 0,
      );
    }
  });

  test('whose ClickHouse goes away is cut', async (context) => {
    let statements = 0;
    const client = scripted((query) => {
      statements += 1;
      if (statements > 6) throw new Error('socket hang up');
      const startMs = Date.now() - 10_000 * statements;
      if (!query.includes('AS organization')) return [{ entry_created_at: startMs, entry_tags: [] }];
      return Array.from({ length: 5_001 }, (_, index) => ({
        entry_id: randomUUID(),
        organization: randomUUID(),
        admitted_ms: startMs - index,
      }));
    });
    const front = await startFront(context, { clickhouse: () => client });
    const answer = await front.get('ann', '/v1/usage/me/requests?format=csv');
    assert.deepEqual([answer.status, answer.complete], [200, false]);
  });

  test('begins with the first day of costs, also where that and the next ones have none', async (context) => {
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    let statements = 0;
    const client = scripted(async () => {
      statements += 1;
      if (statements > 1) await released;
      return [];
    });
    const front = await startFront(context, { clickhouse: () => client });
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const headers = { authorization: 'Bearer platform' };
      request(`${front.url}/v1/admin/usage/export/focus`, { headers, agent: false }, resolve)
        .once('error', reject)
        .end();
    });
    assert.equal(response.statusCode, 200);
    release();
    assert.match(await text(response), /^BilledCost,[^\n]*\r\n$/);
    assert.deepEqual([response.complete, statements > 27], [true, true]);
  });

  test('waits for a slow client, and holds no more of it than buffers do', async (context) => {
    const PIECE = Buffer.alloc(65_536, 'x');
    const PIECES = 1_600;
    let written = 0;
    const jobs = await startJobs(context, (_, response) => {
      response.writeHead(200, { 'content-type': 'text/csv' });
      const write = (): void => {
        while (written < PIECES) {
          written += 1;
          if (!response.write(PIECE)) return void response.once('drain', write);
        }
        response.end();
      };
      write();
    });
    const front = await startFront(context, { address: jobs });
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      request(
        `${front.url}/v1/usage/me/requests?format=csv`,
        { headers: { authorization: 'Bearer ann' }, agent: false },
        resolve,
      )
        .once('error', reject)
        .end();
    });
    let before = -1;
    await waitFor(
      'jobs to be held up',
      () => {
        const stood = written === before;
        before = written;
        return stood;
      },
      (stood) => stood,
    );
    assert.ok(written < PIECES / 2, `${written} of ${PIECES} pieces were taken from jobs`);
    let bytes = 0;
    for await (const piece of response) bytes += (piece as Buffer).length;
    assert.deepEqual([bytes, response.complete], [PIECES * PIECE.length, true]);
  });

  test('ends at jobs when the client leaves, also before it began', async (context) => {
    let left = 0;
    let asked = 0;
    const jobs = await startJobs(context, (_, response) => {
      asked += 1;
      response.on('close', () => (left += 1));
      if (asked === 2) response.write('a,b\r\n');
    });
    const front = await startFront(context, { address: jobs });
    for (const expected of [1, 2]) {
      const call = request(`${front.url}/v1/usage/me/requests?format=csv`, {
        headers: { authorization: 'Bearer ann' },
        agent: false,
      });
      call.on('error', () => undefined);
      call.end();
      await waitFor(
        'jobs to be asked',
        () => asked,
        (count) => count === expected,
      );
      call.destroy();
      await waitFor(
        'jobs to be left',
        () => left,
        (count) => count === expected,
      );
      await waitFor(
        'the place to be free',
        () => front.forwarder.open,
        (open) => open === 0,
      );
    }
  });

  test(
    'that does not begin in time is 503, also where jobs says something meanwhile, and cut when it stops ' +
      'on its way',
    async (context) => {
      let asked = 0;
      const jobs = await startJobs(context, (_, response) => {
        asked += 1;
        if (asked === 2) {
          const alive = setInterval(() => response.writeProcessing(), 20);
          response.on('close', () => clearInterval(alive));
        }
        if (asked === 3) response.write('a,b\r\n');
      });
      const front = await startFront(context, { address: jobs, limits: { headMs: 200, stallMs: 100 } });
      assertUnavailable(await front.get('ann', '/v1/usage/me/requests?format=csv'));
      assertUnavailable(await front.get('ann', '/v1/usage/me/requests?format=csv'));
      const answer = await front.get('ann', '/v1/usage/me/requests?format=csv');
      assert.deepEqual([answer.status, answer.complete, answer.body.toString()], [200, false, 'a,b\r\n']);
      await waitFor(
        'the place to be free',
        () => front.forwarder.open,
        (open) => open === 0,
      );
    },
  );
});

describe('how many at once', () => {
  test('a gateway passes on so many of one organization, and so many in all', async (context) => {
    const waiting: ServerResponse[] = [];
    const jobs = await startJobs(context, (_, response) => waiting.push(response));
    const front = await startFront(context, { address: jobs, limits: { openMax: 4, openOfOwnerMax: 2 } });
    const ask = (as: string) => front.get(as, as === 'platform' ? '/v1/admin/usage' : '/v1/usage/me');
    const open = ['ann', 'ann', 'bob'].map(ask);
    await waitFor(
      'three to be under way',
      () => waiting.length,
      (count) => count === 3,
    );
    assertUnavailable(await ask('ann'));
    open.push(ask('platform'));
    await waitFor(
      'four to be under way',
      () => waiting.length,
      (count) => count === 4,
    );
    assertUnavailable(await ask('bob'));
    for (const response of waiting) response.end('{}');
    assert.deepEqual(
      (await Promise.all(open)).map(({ status }) => status),
      [200, 200, 200, 200],
    );
    await waitFor(
      'the places to be free',
      () => front.forwarder.open,
      (count) => count === 0,
    );
    const again = ask('ann');
    await waitFor(
      'a fifth to be under way',
      () => waiting.length,
      (count) => count === 5,
    );
    waiting[4]?.end('{}');
    assert.equal((await again).status, 200);
  });

  test('whoever leaves while they wait is not read for', async (context) => {
    let statements = 0;
    const gate = Promise.withResolvers<void>();
    const client = scripted(async () => {
      statements += 1;
      await gate.promise;
      return [];
    });
    const front = await startFront(context, { clickhouse: () => client, atOnce: 1 });
    const first = front.get('ann', '/v1/usage/me/daily');
    await waitFor(
      'the first to be read',
      () => statements,
      (count) => count === 1,
    );
    const call = request(`${front.url}/v1/usage/me`, { headers: { authorization: 'Bearer ann' }, agent: false });
    call.on('error', () => undefined);
    call.end();
    await waitFor(
      'the second to wait',
      () => front.forwarder.open,
      (open) => open === 2,
    );
    call.destroy();
    await waitFor(
      'the second to leave',
      () => front.forwarder.open,
      (open) => open === 1,
    );
    const third = front.get('bob', '/v1/usage/me/daily');
    await waitFor(
      'the third to wait',
      () => front.forwarder.open,
      (open) => open === 2,
    );
    gate.resolve();
    assert.deepEqual([(await first).status, (await third).status, statements], [200, 200, 2]);
  });

  test('jobs runs so many statements, and lets so many wait', async (context) => {
    let running = 0;
    let most = 0;
    const gate = Promise.withResolvers<void>();
    const client = scripted(async () => {
      running += 1;
      most = Math.max(most, running);
      await gate.promise;
      running -= 1;
      return [];
    });
    const front = await startFront(context, {
      clickhouse: () => client,
      atOnce: 2,
      limits: { openMax: 100, openOfOwnerMax: 100 },
    });
    const refused: Awaited<ReturnType<ReportsFront['get']>>[] = [];
    const answers = Array.from({ length: 70 }, async () => {
      const answer = await front.get('ann', '/v1/usage/me/daily');
      if (answer.status !== 200) refused.push(answer);
    });
    await waitFor(
      'what is too much to be refused',
      () => refused.length,
      (count) => count === 4,
    );
    gate.resolve();
    await Promise.all(answers);
    for (const answer of refused) assertUnavailable(answer);
    assert.deepEqual([refused.length, most], [4, 2]);
  });
});
