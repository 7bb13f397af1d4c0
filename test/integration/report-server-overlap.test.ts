// Two jobs processes on one data directory for a while, as when the next one is started before the last one has ended.

import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { ReportServer } from '../../jobs/reports/report-server.ts';
import { mintDelegationToken } from '../../src/domain/identity/delegation-token.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import { silentLog } from '../support/silent-log.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const DELEGATION_KEY = Buffer.alloc(32);

function serverAt(socketPath: string): ReportServer {
  return new ReportServer({
    address: { socketPath },
    delegationKey: DELEGATION_KEY,
    issuer: 'Test',
    ownerNames: () => assert.fail('nobody is let in'),
    endedExecution: () => assert.fail('nobody is let in'),
    clickhouse: () => null,
    sealedDays: () => null,
    atOnce: 1,
    settings: {},
    log: silentLog,
    clock: systemClock,
    metrics: new MetricsRegistry(),
  });
}

function ask(
  socketPath: string,
  { path = '/v1/me/usage', headers = {} }: { path?: string; headers?: Record<string, string> } = {},
): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath, path, headers, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    asked.on('error', reject).end();
  });
}

test('a delegation with a good signature that delegates nothing known is refused, and nothing hangs up', async (context) => {
  const socketPath = join(temporaryDirectory(context), 'reports.sock');
  const server = serverAt(socketPath);
  context.after(() => server.close(0));
  await server.start();
  const [path, scope] = ['/report', { organizationId: null }];
  const delegation = { report: 'request', audience: 'platform', scope, requestId: 'no-uuid' } as const;
  const request = { method: 'GET', target: path };
  const token = mintDelegationToken(DELEGATION_KEY, delegation, request, systemClock.nowMs() + 60_000);
  assert.equal(await ask(socketPath, { path, headers: { authorization: `Delegation ${token}` } }), 401);
});

test('the end of the one leaves the socket of the next, whose end leaves nothing', async (context: TestContext) => {
  const directory = temporaryDirectory(context);
  const socketPath = join(directory, 'reports.sock');
  const [before, next] = [serverAt(socketPath), serverAt(socketPath)];
  context.after(() => Promise.all([before.close(0), next.close(0)]));
  await before.start();
  assert.equal(await ask(socketPath), 401);
  await next.start();
  await before.close(1_000);
  assert.equal(await ask(socketPath), 401);
  await next.close(1_000);
  assert.deepEqual(readdirSync(directory), []);
});
