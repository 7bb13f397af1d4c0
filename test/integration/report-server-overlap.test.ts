// Two jobs processes on one data directory for a while, as when the next one is started before the last one has ended.

import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { ReportServer } from '../../jobs/reports/report-server.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import { silentLog } from '../support/silent-log.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

function serverAt(socketPath: string): ReportServer {
  return new ReportServer({
    address: { socketPath },
    delegationKey: Buffer.alloc(32),
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

function ask(socketPath: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath, path: '/v1/me/usage', agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    asked.on('error', reject).end();
  });
}

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
