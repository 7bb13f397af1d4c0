// A revoked credential ends on every gateway process: pushed, also under load; after a lost notification by a new
// connection or the time to live. How fast is reported; asserted is that it ends within the backstop.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { howMany } from '../support/at-length.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { httpCall } from '../support/http-call.ts';
import { ADMIN_TOKEN, ask, Tenant } from '../support/identity-world.ts';
import { testConfiguration } from '../support/test-configuration.ts';
import { pause, waitFor } from '../support/waiting.ts';

const GATEWAYS = 4;
/** Each stays with the process that accepted it; so many leave no process out, by all odds. */
const CONNECTIONS = 24;
const KEYS_REVOKED = howMany({ short: 4, long: 32 });
const KEYS_AT_ONCE = 4;
const CONFIGURATION = testConfiguration({ upstreamUrl: 'http://127.0.0.1:9' });
/**
 * The time to live of what a gateway remembers of a credential (src/generation/identity/authenticate.ts), and something
 * for a busy machine.
 */
const BACKSTOP_MS = 30_000 + 15_000;

interface Revoked {
  readonly afterAskingMs: number;
  readonly afterAnswerMs: number;
}

describe('revocation on four gateway processes', () => {
  let tollgate: Tollgate;
  let tenant: Tenant;
  let postgres: pg.Client;
  const agents = Array.from({ length: CONNECTIONS }, () => new Agent({ keepAlive: true, maxSockets: KEYS_AT_ONCE }));

  before(async () => {
    // No request of this test reaches a provider.
    tollgate = await startTollgate({
      clickhouse: 'away',
      configurationYaml: CONFIGURATION,
      env: { ADMIN_TOKEN },
      gatewayProcesses: GATEWAYS,
    });
    tenant = await Tenant.create(tollgate.url, 'revocation');
    postgres = new pg.Client({ connectionString: tollgate.postgresUrl });
    await postgres.connect();
  });

  after(async () => {
    for (const agent of agents) agent.destroy();
    await postgres?.end();
    await tollgate?.stop();
  });

  const revoke = (keyId: string) => tenant.as('DELETE', `/keys/${keyId}`);

  function statusOf(credential: string, agent = agents[0]): Promise<number> {
    return new Promise((resolve, reject) => {
      const call = request(
        `${tollgate.url}/v1/models`,
        { agent, headers: { authorization: `Bearer ${credential}` } },
        (response) => {
          response.resume().on('end', () => resolve(response.statusCode ?? 0));
        },
      );
      call.on('error', reject).end();
    });
  }

  /**
   * Presents the credential on every connection, again after a pause, until it is refused everywhere; every process
   * remembers it when this resolves.
   */
  async function present(credential: string, pauseMs = 0) {
    let running = true;
    let acceptedAtMs = 0;
    const accepted = agents.map(() => 0);
    const refusedInARow = agents.map(() => 0);
    const loops = agents.map(async (agent, index) => {
      while (running) {
        const status = await statusOf(credential, agent);
        assert.ok(status === 200 || status === 401, String(status));
        if (status === 200) {
          accepted[index] = (accepted[index] ?? 0) + 1;
          refusedInARow[index] = 0;
          acceptedAtMs = performance.now();
        } else refusedInARow[index] = (refusedInARow[index] ?? 0) + 1;
        if (pauseMs > 0) await pause(pauseMs);
      }
    });
    await waitFor(
      'the credential to be known everywhere',
      () => Math.min(...accepted),
      (count) => count >= 3,
    );
    return {
      /** Resolves when no connection accepts it any more: with the moment of the last acceptance. */
      async refusedEverywhere(): Promise<number> {
        await waitFor(
          'the credential to be refused everywhere',
          () => Math.min(...refusedInARow),
          (count) => count >= 3,
          BACKSTOP_MS,
        );
        running = false;
        await Promise.all(loops);
        return acceptedAtMs;
      },
    };
  }

  async function revokeUnderLoad(): Promise<Revoked> {
    const key = await tenant.addKey();
    const load = await present(key.secret);
    const revokedAtMs = performance.now();
    await revoke(key.id);
    const answeredAtMs = performance.now();
    const acceptedAtMs = await load.refusedEverywhere();
    return { afterAskingMs: acceptedAtMs - revokedAtMs, afterAnswerMs: Math.max(0, acceptedAtMs - answeredAtMs) };
  }

  test('a revoked key is refused everywhere, under load', async (context) => {
    const revoked: Revoked[] = [];
    for (let round = 0; round < KEYS_REVOKED / KEYS_AT_ONCE; round += 1) {
      revoked.push(...(await Promise.all(Array.from({ length: KEYS_AT_ONCE }, revokeUnderLoad))));
    }
    const tell = (name: keyof Revoked) => {
      const sorted = revoked.map((one) => one[name]).sort((a, b) => a - b);
      const at = (share: number) =>
        (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0).toFixed(1);
      context.diagnostic(`last acceptance, ${sorted.length} keys, ${name}: p50 ${at(0.5)}, p99 ${at(0.99)}`);
    };
    tell('afterAskingMs');
    tell('afterAnswerMs');
  });

  test('a revoked access token, a changed role and a left organization end as soon', async () => {
    const person = await tenant.addPerson('admin');
    const members = () =>
      httpCall(`${tollgate.url}/v1/admin/active-org/members`, { headers: { authorization: `Bearer ${person.token}` } });
    const statuses = async () => {
      const seen = await Promise.all(Array.from({ length: GATEWAYS * 6 }, async () => (await members()).status));
      return [...new Set(seen)].join();
    };
    const becomes = (status: number) =>
      waitFor(`every process to answer ${status}`, statuses, (seen) => seen === String(status), BACKSTOP_MS);
    await becomes(200);
    await tenant.as('PATCH', `/members/${person.userId}`, { role: 'member' });
    await becomes(403);
    await tenant.as('PATCH', `/members/${person.userId}`, { role: 'admin' });
    await becomes(200);
    await tenant.as('DELETE', `/members/${person.userId}`);
    await becomes(400);
    await ask(tollgate.url, person.token, 'DELETE', `/v1/me/tokens/${person.tokenId}`);
    await becomes(401);
  });

  test('a model that is made inactive is no longer served by any process, until it is active again', async () => {
    const key = await tenant.addKey();
    const headers = { authorization: `Bearer ${key.secret}` };
    const chat = () =>
      httpCall(`${tollgate.url}/v1/chat/completions`, {
        headers,
        body: '{"model":"sim/small","messages":[],"max_tokens":5}',
      });
    const statuses = async () => {
      const seen = await Promise.all(Array.from({ length: GATEWAYS * 6 }, async () => (await chat()).status));
      return [...new Set(seen)].join();
    };
    const becomes = (status: number) =>
      waitFor(`every process to answer ${status}`, statuses, (seen) => seen === String(status), BACKSTOP_MS);
    const apply = async (text: string) => {
      const file = join(tollgate.dataDir, 'changed.yaml');
      writeFileSync(file, text);
      assert.equal((await tollgate.run(['apply', file])).exitCode, 0);
    };
    // Its provider cannot be reached.
    await becomes(502);
    await apply(CONFIGURATION.replace('active: true', 'active: false'));
    await becomes(404);
    const listed = (await httpCall(`${tollgate.url}/v1/models`, { headers })).body.toString();
    assert.ok(listed.includes('"sim/uncapped"') && !listed.includes('"sim/small"'));
    await apply(CONFIGURATION);
    await becomes(502);
  });

  test('a rotated key: both secrets during the overlap, the old one ends with it', async () => {
    const key = await tenant.addKey();
    const rotated = await tenant.as('POST', `/keys/${key.id}/rotate`, { overlap_seconds: 3_600 });
    assert.equal(await statusOf(key.secret), 200);
    assert.equal(await statusOf(String(rotated['secret'])), 200);
    const load = await present(key.secret);
    const again = await tenant.as('POST', `/keys/${key.id}/rotate`, { overlap_seconds: 0 });
    await load.refusedEverywhere();
    assert.equal(await statusOf(String(again['secret'])), 200);
  });

  test('a notification lost with its connection is made up for when the listener is back', async (context) => {
    const key = await tenant.addKey();
    const load = await present(key.secret);
    // The listeners are cut off again and again while the key is revoked, so that the notification finds none of them.
    let cutting = true;
    const cuts = (async () => {
      for (let round = 0; cutting || round < 20; round += 1) {
        await postgres.query(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tollgate listener'`,
        );
        await pause(5);
      }
    })();
    await pause(50);
    await revoke(key.id);
    const revokedAtMs = performance.now();
    cutting = false;
    await cuts;
    context.diagnostic(
      `refused everywhere ${Math.max(0, (await load.refusedEverywhere()) - revokedAtMs).toFixed(0)} ms ` +
        `after the revocation`,
    );
  });

  test('a notification that never comes is made up for by the time to live', async (context) => {
    // A listener that has just come back would make its process forget everything.
    const listeners = async () => {
      const { rows } = await postgres.query<{ steady: boolean }>(
        `SELECT backend_start < now() - interval '1 second' AS steady FROM pg_stat_activity
          WHERE application_name = 'tollgate listener'`,
      );
      return rows.filter(({ steady }) => steady).length;
    };
    await waitFor('every process to listen again', listeners, (count) => count >= GATEWAYS);
    const key = await tenant.addKey();
    // For half a minute, which is not to be one of the machine's full load.
    const load = await present(key.secret, 1_000);
    // Behind the back of everything that would tell.
    await postgres.query('UPDATE api_keys SET revoked_at = now() WHERE id = $1', [key.id]);
    const revokedAtMs = performance.now();
    context.diagnostic(
      `refused everywhere ${Math.max(0, (await load.refusedEverywhere()) - revokedAtMs).toFixed(0)} ms ` +
        `after the revocation`,
    );
  });
});
