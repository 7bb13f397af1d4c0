// ADMIN_HOST: where /metrics, /healthz and /readyz listen, and nowhere else; the banner and `status` say so.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startFakeUpstream } from '../support/fake-upstream.ts';
import { startTollgate } from '../support/gateway.ts';
import { httpCall } from '../support/http-call.ts';
import { testConfiguration } from '../support/test-configuration.ts';

const HOST = '127.0.0.2';

test('the admin address is on ADMIN_HOST alone', async (context) => {
  const upstream = await startFakeUpstream(() => ({ body: '{}' }));
  context.after(() => upstream.close());
  const tollgate = await startTollgate({
    clickhouse: 'away',
    configurationYaml: testConfiguration({ upstreamUrl: upstream.url }),
    env: { ADMIN_HOST: HOST },
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
  } finally {
    await tollgate.stop();
  }
});
