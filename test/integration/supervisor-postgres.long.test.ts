// An embedded Postgres that ends unasked is started again by whoever supervises it, and gateways and jobs outlast its
// absence.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type FakeUpstream, ONE_TOKEN_REPLY, startFakeUpstream } from '../support/fake-upstream.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { httpCall } from '../support/http-call.ts';
import { openLedgerView } from '../support/ledger-view.ts';
import { KEYS, testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

const CHAT = '{"model":"sim/small","messages":[{"role":"user","content":"hi"}],"max_tokens":5}';

describe('the embedded Postgres ends', { timeout: 180_000 }, () => {
  let upstream: FakeUpstream;
  let tollgate: Tollgate;

  before(async () => {
    upstream = await startFakeUpstream(() => ONE_TOKEN_REPLY);
    tollgate = await startTollgate({
      clickhouse: 'away',
      ownPostgres: true,
      configurationYaml: testConfiguration({ upstreamUrl: upstream.url }),
    });
  });
  after(async () => {
    await tollgate?.stop();
    await upstream?.close();
  });

  const generate = async (credential: string): Promise<number> => {
    const headers = { authorization: `Bearer ${credential}` };
    return (await httpCall(`${tollgate.url}/v1/chat/completions`, { headers, body: CHAT })).status;
  };

  const victims = [
    {
      name: 'immediate shutdown',
      pidOf: () => tollgate.postgresPids().postmaster,
      signal: 'SIGQUIT',
      newCredential: KEYS.acmeSecond,
    },
    {
      name: 'kill -9 of the server',
      pidOf: () => tollgate.postgresPids().postmaster,
      signal: 'SIGKILL',
      newCredential: KEYS.free,
    },
    {
      name: 'kill -9 of the process that owns it',
      pidOf: () => tollgate.postgresPids().owner,
      signal: 'SIGKILL',
      newCredential: KEYS.other,
    },
  ] as const;
  for (const { name, pidOf, signal, newCredential } of victims) {
    test(name, async () => {
      assert.equal(await generate(KEYS.acme), 200);
      const others = { gateways: tollgate.gatewayPids(), jobs: tollgate.jobsPid() };
      const postmaster = tollgate.postgresPids().postmaster;
      process.kill(pidOf(), signal);
      await waitFor(
        'another server',
        () => tollgate.postgresPids().postmaster,
        (pid) => pid !== 0 && pid !== postmaster,
      );
      await waitFor(
        'the installation to be ready',
        async () => (await httpCall(`${tollgate.adminUrl}/readyz`)).status,
        (status) => status === 200,
      );
      await waitFor(
        'a credential that has to be looked up to be let in',
        () => generate(newCredential),
        (status) => status === 200,
      );
      assert.deepEqual(
        { gateways: tollgate.gatewayPids(), jobs: tollgate.jobsPid() },
        others,
        'no gateway and no jobs process ended',
      );
      await waitFor('jobs to post what was served', countPosted, (count) => count === upstream.requests.length);
    });
  }

  async function countPosted(): Promise<number> {
    const ledger = openLedgerView(tollgate.postgresUrl);
    try {
      return await ledger.generationCount();
    } finally {
      await ledger.close();
    }
  }
});
