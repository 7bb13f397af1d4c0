// What a platform administrator does over HTTP: teams, keys and limits in any organization. Who else may call these
// routes is in the identity matrix.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { httpCall } from '../support/http-call.ts';
import { ADMIN_TOKEN, ask, Tenant } from '../support/identity-world.ts';
import { testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

type Json = Readonly<Record<string, unknown>>;

let upstream: FakeUpstream;
let tollgate: Tollgate;
before(async () => {
  upstream = await startFakeUpstream(() => ({
    body: JSON.stringify({ usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } }),
  }));
  tollgate = await startTollgate({
    configurationYaml: testConfiguration({ upstreamUrl: upstream.url }),
    env: { ADMIN_TOKEN },
  });
});
after(async () => {
  await tollgate?.stop();
  await upstream?.close();
});

const admin = (method: string, path: string, body?: Json, status = 200): Promise<Json> =>
  ask(tollgate.url, ADMIN_TOKEN, method, `/v1/admin${path}`, body, status);

async function generate(key: string, model = 'sim/small'): Promise<number> {
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }], max_tokens: 5 });
  const headers = { authorization: `Bearer ${key}` };
  return (await httpCall(`${tollgate.url}/v1/chat/completions`, { headers, body })).status;
}

const follows = (what: string, status: () => Promise<number>, expected: number): Promise<unknown> =>
  waitFor(what, status, (found) => found === expected);

describe('in any organization', () => {
  let tenant: Tenant;
  let path: string;
  before(async () => {
    tenant = await Tenant.create(tollgate.url, 'anybody');
    path = `/organizations/${tenant.id}`;
  });

  const actionsOf = async (): Promise<readonly unknown[]> =>
    ((await admin('GET', `${path}/audit`)) as unknown as readonly Json[]).map(
      ({ action, actor }) => `${String(action)} by ${String((actor as Json)['label'])}`,
    );

  test('a team is made, renamed, staffed and deleted', async () => {
    const team = String((await admin('POST', `${path}/teams`, { slug: 'lab' }, 201))['id']);
    assert.equal((await admin('PATCH', `${path}/teams/${team}`, { display_name: 'Lab' }))['display_name'], 'Lab');
    const { email } = ((await admin('GET', `${path}/members`)) as unknown as readonly Json[])[0] ?? {};
    const member = await admin('POST', `${path}/teams/${team}/members`, { email }, 201);
    assert.equal(member['user_id'], tenant.owner.userId);
    const staff = `${path}/teams/${team}/members/${tenant.owner.userId}`;
    assert.equal((await admin('PATCH', staff, { role: 'admin' }))['role'], 'admin');
    assert.equal((await admin('DELETE', staff))['removed'], true);
    assert.equal((await admin('DELETE', `${path}/teams/${team}`))['deleted'], true);
    assert.deepEqual((await actionsOf()).slice(0, 2), ['team.delete by ADMIN_TOKEN', 'member.remove by ADMIN_TOKEN']);
  });

  test('a key is made with its models, limited, rotated and revoked, and its secret is shown once', async () => {
    const order = { name: 'made for them', allowed_models: ['sim/small'] };
    const key = await admin('POST', `${path}/keys`, order, 201);
    assert.deepEqual(key['allowed_models_set_by'], { platform: ['sim/small'], organization: null });
    const own = `${path}/keys/${String(key['id'])}`;
    assert.equal(await generate(String(key['secret'])), 200);
    assert.equal(await generate(String(key['secret']), 'sim/uncapped'), 404);
    assert.equal((await admin('GET', own))['secret'], undefined);

    const limits = [{ kind: 'requests_per_minute', limit: 0 }];
    const limited = await admin('PUT', `${own}/limits`, { limits });
    assert.deepEqual(limited['limits'], [{ ...limits[0], set_by: 'platform' }]);
    await follows('the limit', () => generate(String(key['secret'])), 429);
    await admin('PUT', `${own}/limits`, { limits: [] });

    const rotated = await admin('POST', `${own}/rotate`, { overlap_seconds: 0 });
    await follows('the old secret to end', () => generate(String(key['secret'])), 401);
    await follows('the new secret', () => generate(String(rotated['secret'])), 200);
    assert.notEqual((await admin('DELETE', own))['revoked_at'], null);
    await follows('the key to end', () => generate(String(rotated['secret'])), 401);
    const actions = await actionsOf();
    for (const action of ['key.create', 'limits.replace', 'key.rotate', 'key.revoke'])
      assert.ok(actions.includes(`${action} by ADMIN_TOKEN`), action);
  });

  test('what belongs to another organization is not found below this one', async () => {
    const other = await Tenant.create(tollgate.url, 'another');
    const key = await other.addKey();
    await admin('DELETE', `${path}/keys/${key.id}`, undefined, 404);
    await admin('PATCH', `${path}/teams/${await other.addTeam()}`, { display_name: 'x' }, 404);
    assert.equal((await other.as('GET', `/keys/${key.id}`))['revoked_at'], null);
  });
});
