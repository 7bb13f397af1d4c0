// Another master key while an installation serves: processes are rolled, jobs move every secret, credentials stay
// known, and no request fails. Ends with the first key given up.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { createSecretBox } from '../../src/storage/postgres/secret-box.ts';
import { type FakeUpstream, ONE_TOKEN_REPLY, startFakeUpstream } from '../support/fake-upstream.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { httpCall } from '../support/http-call.ts';
import { ADMIN_TOKEN, ask, Tenant } from '../support/identity-world.ts';
import { KEYS, testConfiguration } from '../support/test-configuration.ts';
import { pause, waitFor } from '../support/waiting.ts';

const [FIRST, SECOND] = [randomBytes(32), randomBytes(32)];
/** Beside those that are made over HTTP: written as jobs find them. */
const KEYS_STORED = 10_000;

const idOf = (masterKey: Buffer): string => createSecretBox({ current: masterKey, previous: [] }).keyId;

describe('another master key', () => {
  let upstream: FakeUpstream;
  let tollgate: Tollgate;
  let database: pg.Client;
  let directory: string;
  let keyFile: string;
  const give = (...keys: readonly Buffer[]) =>
    writeFileSync(keyFile, keys.map((key) => `${key.toString('base64')}\n`).join(''));

  before(async () => {
    directory = mkdtempSync(join(tmpdir(), 'tollgate-test-'));
    keyFile = join(directory, 'master-key');
    give(FIRST);
    upstream = await startFakeUpstream(() => ONE_TOKEN_REPLY);
    tollgate = await startTollgate({
      configurationYaml: testConfiguration({ upstreamUrl: upstream.url }),
      // Beside a database that is given the test's environment has a master key of its own.
      ownPostgres: true,
      env: { ADMIN_TOKEN, MASTER_KEY_FILE: keyFile },
      clickhouse: 'away',
    });
    database = new pg.Client({ connectionString: tollgate.postgresUrl });
    await database.connect();
  });
  after(async () => {
    await database?.end();
    await tollgate?.stop();
    await upstream?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  const generate = () =>
    httpCall(`${tollgate.url}/v1/chat/completions`, {
      headers: { authorization: `Bearer ${KEYS.acme}` },
      body: '{"model":"sim/small","messages":[{"role":"user","content":"hi"}],"max_tokens":1}',
    });
  const status = () => tollgate.run(['master-key', 'status']);
  /** Every process is another one. */
  const roll = async () => {
    const old = tollgate.gatewayPids();
    await pause(5_100);
    process.kill(tollgate.pid, 'SIGHUP');
    await waitFor(
      'the gateways to be replaced',
      async () => tollgate.gatewayPids(),
      (pids) => pids.length === old.length && pids.every((pid) => !old.includes(pid)),
    );
  };

  async function moveToSecond(): Promise<void> {
    // First every process is able to open what the second key seals, then it seals.
    give(FIRST, SECOND);
    await roll();
    give(SECOND, FIRST);
    await roll();
    const rewrapped = await tollgate.run(['reconcile', 'rewrap-secrets']);
    assert.equal(rewrapped.exitCode, 0, rewrapped.output);
    const counted = await status();
    assert.equal(counted.exitCode, 0, counted.output);
    assert.ok(counted.output.includes(idOf(SECOND)) && !counted.output.includes(idOf(FIRST)), counted.output);
    give(SECOND);
    await roll();
  }

  test('is taken over while requests are served, and the first one is given up', async (context) => {
    const tenant = await Tenant.create(tollgate.url, 'rotating');
    await ask(tollgate.url, ADMIN_TOKEN, 'PATCH', `/v1/admin/organizations/${tenant.id}/byok`, { enabled: true });
    const made = await tenant.as(
      'POST',
      '/provider-credentials',
      { kind: 'upstream', name: 'ours', secret: 'sk-own' },
      201,
    );
    await storeKeys(tenant.id);
    assert.equal((await status()).exitCode, 0);

    let [isOver, served] = [false, 0];
    const load = (async () => {
      while (!isOver) {
        // A connection that a gateway had not taken yet when it ended is reset, before any of its request was read.
        const reply = await generate().catch(() => null);
        if (reply === null) continue;
        assert.equal(reply.status, 200, reply.body.toString());
        served += 1;
        await pause(20);
      }
    })();
    try {
      await moveToSecond();
    } finally {
      isOver = true;
      await load;
    }

    assert.ok(served > 0);
    context.diagnostic(`${served} requests were served, and none failed`);
    // Credentials are hashed as before, by the pepper of the first key, and secrets open under the second alone.
    assert.equal((await generate()).status, 200);
    const verified = await tenant.as('POST', `/provider-credentials/${String(made['id'])}/verify`);
    assert.equal(verified['state'], 'active');
    const { rows } = await database.query<{ count: number }>(
      `SELECT count(*)::integer AS count FROM own_keys WHERE substring(secret_sealed FROM 2 FOR 8) = $1`,
      [Buffer.from(idOf(SECOND), 'hex')],
    );
    assert.equal(rows[0]?.count, KEYS_STORED + 1);
    assert.doesNotMatch(tollgate.output(), new RegExp(FIRST.toString('base64').replace(/[+/=]/g, '\\$&')));
  });

  test('one that opens nothing is told, and nothing is overwritten', async () => {
    const wrong = await tollgate.run(['key', 'create', '--organization', 'acme', '--name', 'before']);
    assert.equal(wrong.exitCode, 0, wrong.output);
    give(randomBytes(32));
    const refused = await tollgate.run(['key', 'create', '--organization', 'acme', '--name', 'after']);
    assert.notEqual(refused.exitCode, 0);
    assert.match(refused.output, /another MASTER_KEY/);
    assert.equal((await status()).exitCode, 1);
    give(SECOND);
    assert.equal((await status()).exitCode, 0);
  });

  async function storeKeys(organizationId: string): Promise<void> {
    const box = createSecretBox({ current: FIRST, previous: [] });
    const ids = Array.from({ length: KEYS_STORED }, () => crypto.randomUUID());
    const sealed = ids.map((id) => box.seal(`sk-${id}`, `own key ${organizationId} upstream ${id} 1`));
    await database.query(
      `INSERT INTO own_keys (id, organization_id, kind, name, fingerprint, place, position, fallback, secret_sealed, state)
       SELECT id, $1, 'upstream', id::text, '00000000', 'before', 1, 'inherit', sealed, 'disabled'
         FROM unnest($2::uuid[], $3::bytea[]) AS made (id, sealed)`,
      [organizationId, ids, sealed],
    );
  }
});
