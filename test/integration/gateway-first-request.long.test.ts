// A gateway that answers can admit: it listens once Postgres has answered what its first request needs. Why requests
// are refused for a reason of the service is in the log.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { CONTRACT_MODELS, callRoute } from '../support/generation-routes.ts';
import { KEYS, testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

const COMPLETION = JSON.stringify({
  id: 'c',
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
});
const NOT_YET = 'this process does not listen yet';

describe('a gateway whose Postgres does not answer', () => {
  let upstream: FakeUpstream;
  let tollgate: Tollgate;
  before(async () => {
    upstream = await startFakeUpstream(() => ({ body: COMPLETION }));
    tollgate = await startTollgate({
      clickhouse: 'away',
      configurationYaml: testConfiguration({ upstreamUrl: upstream.url, models: CONTRACT_MODELS }),
    });
  });
  after(async () => {
    await tollgate?.stop();
    await upstream?.close();
  });

  /** Runs work while a statement holds its locks. */
  async function whileLocked(statement: string, work: () => Promise<void>): Promise<void> {
    const client = new pg.Client({ connectionString: tollgate.postgresUrl });
    await client.connect();
    try {
      await client.query('BEGIN');
      await client.query(statement);
      await work();
    } finally {
      await client.end();
    }
  }

  const ask = (key: string) =>
    callRoute(`${tollgate.url}/v1/chat/completions`, {
      body: '{"model":"sim/small","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}',
      key,
    });
  const linesWith = (text: string): string[] =>
    tollgate
      .output()
      .split('\n')
      .filter((line) => line.includes(text));

  test('does not listen, says why, and serves its first request', async () => {
    const [pid = 0] = tollgate.gatewayPids();
    await whileLocked('LOCK TABLE api_keys IN ACCESS EXCLUSIVE MODE', async () => {
      process.kill(pid, 'SIGKILL');
      await waitFor(
        'the log line',
        () => linesWith(NOT_YET).length,
        (count) => count > 0,
      );
      await assert.rejects(ask(KEYS.acme), /ECONNREFUSED|ECONNRESET/);
    });
    const first = await waitFor(
      'an answer',
      () => ask(KEYS.acme).catch(() => null),
      (answer) => answer !== null,
    );
    assert.equal(first?.status, 200, first?.body);
  });

  test('a credential that cannot be looked up is refused, and the log says why', async () => {
    await whileLocked('LOCK TABLE api_keys IN ACCESS EXCLUSIVE MODE', async () => {
      assert.equal((await ask(KEYS.other)).status, 502);
    });
    const [cause = ''] = linesWith('"store":"identity"');
    assert.match(cause, /no answer within 2000 ms|what it needs is locked/);
    const [refused = ''] = linesWith('"code":"authorization_unavailable"');
    assert.match(refused, /refused for a reason of this service/);
    assert.ok(!tollgate.output().includes(KEYS.other));
  });

  test('a lease that cannot be had is refused, and the log says why', async () => {
    await waitFor(
      'the key to be known',
      async () => (await callRoute(`${tollgate.url}/v1/models`, { method: 'GET', key: KEYS.other })).status,
      (status) => status === 200,
    );
    await whileLocked('LOCK TABLE wallets, leases IN ACCESS EXCLUSIVE MODE', async () => {
      const answer = await ask(KEYS.other);
      assert.equal(answer.status, 503, answer.body);
    });
    assert.match(linesWith('"store":"leases"')[0] ?? '', /no answer within|what it needs is locked/);
    assert.match(linesWith('"code":"billing_unavailable"')[0] ?? '', /refused for a reason of this service/);
  });
});
