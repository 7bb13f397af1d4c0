// ADMIN_HOST: where /metrics, /healthz and /readyz listen, and nowhere else; the banner and `status` say so. Profiles
// of its processes, for the holder of ADMIN_TOKEN.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { startFakeUpstream } from '../support/fake-upstream.ts';
import { startTollgate } from '../support/gateway.ts';
import { httpCall } from '../support/http-call.ts';
import { testConfiguration } from '../support/test-configuration.ts';

const HOST = '127.0.0.2';
const ADMIN_TOKEN = randomBytes(32).toString('base64url');

test('the admin address is on ADMIN_HOST alone', async (context) => {
  const upstream = await startFakeUpstream(() => ({ body: '{}' }));
  context.after(() => upstream.close());
  const tollgate = await startTollgate({
    clickhouse: 'away',
    configurationYaml: testConfiguration({ upstreamUrl: upstream.url }),
    env: { ADMIN_HOST: HOST, ADMIN_TOKEN },
  });
  try {
    const { adminUrl } = tollgate;
    for (const path of ['/healthz', '/readyz', '/metrics'])
      assert.equal((await httpCall(`${adminUrl}${path}`)).status, 200, path);
    await assert.rejects(httpCall(`${adminUrl.replace(HOST, '127.0.0.1')}/healthz`), { code: 'ECONNREFUSED' });
    assert.ok(tollgate.output().includes(`admin ${adminUrl} `), tollgate.output());
    const status = await tollgate.run(['status']);
    assert.equal(status.exitCode, 0, status.output);
    assert.ok(status.output.includes(adminUrl), status.output);

    const take = (query: string, token = ADMIN_TOKEN, method = 'POST') =>
      httpCall(`${adminUrl}/profile?${query}`, { method, headers: { authorization: `Bearer ${token}` } });
    const cpu = await take('process=gateway-1&seconds=0.2');
    assert.equal(cpu.status, 200, cpu.body.toString());
    assert.ok((JSON.parse(cpu.body.toString()) as { nodes: unknown[] }).nodes.length > 0);
    const heap = await take('process=jobs&kind=heap&seconds=0.1');
    assert.ok('head' in (JSON.parse(heap.body.toString()) as object), heap.body.toString());
    for (const [answer, expected] of [
      [await take('process=gateway-1', 'x'.repeat(43)), 401],
      [await take('process=gateway-1', ADMIN_TOKEN, 'GET'), 405],
      [await take('process=postgres'), 400],
      [await take('process=gateway-1&seconds=61'), 400],
      [await take('process=gateway-1&kind=core'), 400],
    ] as const)
      assert.equal(answer.status, expected, answer.body.toString());
    const [one, other] = await Promise.all([take('process=jobs&seconds=0.3'), take('process=jobs&seconds=0.3')]);
    assert.deepEqual(new Set([one.status, other.status]), new Set([200, 503]), 'one at a time');
  } finally {
    await tollgate.stop();
  }
});
