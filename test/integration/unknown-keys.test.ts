// Requests of nobody: each is refused before its body has come, on every route that takes one, and holds no memory
// meanwhile.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { httpCall } from '../support/http-call.ts';
import { readMetrics } from '../support/metric-values.ts';
import { RawClient } from '../support/raw-client.ts';
import { finalStatuses } from '../support/raw-connection.ts';
import { KEYS, testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

const REPLY =
  '{"id":"c","object":"chat.completion","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,' +
  '"total_tokens":2}}';
const FORM = 'multipart/form-data; boundary=b';
const ROUTES = [
  { path: '/v1/chat/completions', type: 'application/json', bytes: 33_554_432 },
  { path: '/v1/images/edits', type: FORM, bytes: 33_554_432 },
  { path: '/v1/admin/active-org/keys', type: 'application/json', bytes: 262_144 },
] as const;

describe('requests with keys that nobody has', () => {
  let upstream: FakeUpstream;
  let tollgate: Front;
  let port: number;

  before(async () => {
    upstream = await startFakeUpstream(() => ({ body: REPLY }));
    tollgate = await startFront({
      configurationYaml: testConfiguration({ upstreamUrl: upstream.url }),
    });
    port = Number(new URL(tollgate.url).port);
  });

  after(async () => {
    await tollgate?.stop();
    await upstream?.close();
  });

  for (const { path, type, bytes } of ROUTES) {
    test(
      `60 heads on ${path} are refused without a byte of their bodies, lend nothing, and keep nobody from ` +
        `being served`,
      async () => {
        const clients = await Promise.all(Array.from({ length: 60 }, () => RawClient.open(port)));
        const sent = clients.map((client, index) => {
          const key = `tg-nobody-${index}-${'n'.repeat(24)}`;
          return client.write(
            `POST ${path} HTTP/1.1\r\nHost: gate.test\r\nAuthorization: ` +
              `Bearer ${key}\r\nContent-Type: ${type}\r\nContent-Length: ${bytes}\r\n\r\n`,
          );
        });
        await Promise.all(sent);
        const served = await httpCall(`${tollgate.url}/v1/chat/completions`, {
          headers: { authorization: `Bearer ${KEYS.free}`, 'content-type': 'application/json' },
          body: '{"model":"sim/small","messages":[]}',
        });
        assert.equal(served.status, 200);
        for (const client of clients) {
          await client.untilAnswered();
          // 502: more are looked up than the store is asked for at once.
          assert.ok(
            finalStatuses(client.received).every((status) => status === 401 || status === 502),
            client.received,
          );
        }
        const valueOf = await readMetrics(tollgate.adminUrl);
        assert.equal(valueOf('tollgate_body_bytes_lent'), 0);
        assert.ok(valueOf('tollgate_bodies_arriving') > 0, 'what they still send is waited for, and would be dropped');
        for (const client of clients) client.leave();
        await waitFor(
          'no body to be on its way',
          async () => (await readMetrics(tollgate.adminUrl))('tollgate_bodies_arriving'),
          (bodies) => bodies === 0,
        );
      },
    );
  }
});
