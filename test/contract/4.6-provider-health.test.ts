// How providers are doing (spec 4.6): what two gateway processes have seen of them is shown together, to platform
// administrators whole and to clients without what is the operator's matter.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type FakeUpstream, type Script, startFakeUpstream } from '../support/fake-upstream.ts';
import { findFreePort } from '../support/free-port.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { httpCall } from '../support/http-call.ts';
import { ADMIN_TOKEN, ask } from '../support/identity-world.ts';
import { providersConfiguration } from '../support/provider-configuration.ts';
import { KEYS } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

const JSON_TYPE = ['content-type', 'application/json'] as const;
const GOOD: Script = {
  headers: [JSON_TYPE],
  body: JSON.stringify({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } }),
};
const ANSWERS: Readonly<Record<string, Script>> = {
  good: GOOD,
  fails: { status: 503, headers: [JSON_TYPE], body: '{"error":{"message":"busy"}}' },
  limits: { status: 429, headers: [JSON_TYPE, ['retry-after', '300']], body: '{"error":{"message":"slow down"}}' },
  refuses: { status: 401, headers: [JSON_TYPE], body: '{"error":{"message":"sk-of-the-operator is no key"}}' },
};

interface Health {
  readonly status: string;
  readonly last_success_at: string | null;
  readonly last_failure_at: string | null;
  readonly last_failure: string | null;
  readonly last_failure_status?: number | null;
  readonly latency_ms: number | null;
  readonly paused_until?: string | null;
  readonly pauses?: readonly { readonly model: string | null; readonly until: string; readonly for_all: boolean }[];
}
interface Listed {
  readonly data: readonly { readonly id: string; readonly health: Health }[];
}

describe('the health of providers', () => {
  const upstreams = new Map<string, FakeUpstream>();
  let tollgate: Tollgate;

  before(async () => {
    for (const [name, script] of Object.entries(ANSWERS)) upstreams.set(name, await startFakeUpstream(() => script));
    const providers = [...upstreams].map(([id, { url }]) => ({ id, url }));
    providers.push(
      { id: 'gone', url: `http://127.0.0.1:${await findFreePort()}` },
      { id: 'idle', url: 'http://127.0.0.1:9' },
    );
    tollgate = await startTollgate({
      clickhouse: 'away',
      gatewayProcesses: 2,
      env: { ADMIN_TOKEN },
      configurationYaml: providersConfiguration(
        providers,
        providers.map(({ id }) => ({ id: `test/${id}`, deployments: [{ provider: id, model: 'm' }] })),
      ),
    });
  });
  after(async () => {
    await tollgate?.stop();
    await Promise.all([...upstreams.values()].map((upstream) => upstream.close()));
  });

  const call = (name: string, key: string = KEYS.acme) =>
    httpCall(`${tollgate.url}/v1/chat/completions`, {
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: `test/${name}`, messages: [] }),
    });
  const publicOf = async (id: string): Promise<Health> => {
    const answer = await httpCall(`${tollgate.url}/v1/models/providers`, {
      headers: { authorization: `Bearer ${KEYS.acme}` },
    });
    assert.equal(answer.status, 200);
    const { data } = JSON.parse(answer.body.toString()) as Listed;
    return data.find((one) => one.id === id)?.health ?? assert.fail(id);
  };
  const wholeOf = async (id: string): Promise<Health> => {
    const all = (await ask(tollgate.url, ADMIN_TOKEN, 'GET', '/v1/admin/providers')) as unknown as Listed['data'];
    const one = (await ask(tollgate.url, ADMIN_TOKEN, 'GET', `/v1/admin/providers/${id}`)) as unknown as {
      health: Health;
    };
    assert.ok(all.some((listed) => listed.id === id));
    return one.health;
  };
  const shows = (id: string, what: (health: Health) => boolean, of = publicOf): Promise<Health> =>
    waitFor(`the health of ${id}`, () => of(id), what);

  test('nothing is known of one that nobody has called', async () => {
    const unknown = { status: 'unknown', last_success_at: null, last_failure_at: null, last_failure: null };
    assert.deepEqual(await publicOf('idle'), { ...unknown, latency_ms: null, paused_until: null, token: null });
    const whole = { ...unknown, last_failure_status: null, latency_ms: null, pauses: [], token: null };
    assert.deepEqual(await wholeOf('idle'), whole);
  });

  test('one that serves: its last success and how fast it is, in every process', async () => {
    assert.equal((await call('good')).status, 200);
    const health = await shows('good', ({ status }) => status === 'ok');
    assert.ok(Number(health.latency_ms) >= 0 && health.last_failure_at === null);
    assert.ok(Math.abs(Date.parse(health.last_success_at ?? '') - Date.now()) < 60_000);
    // New connections come to either process.
    for (let look = 0; look < 6; look += 1) await shows('good', ({ status }) => status === 'ok');
  });

  test('one that fails: how, and that its address is passed over, once for one organization and once for all', async () => {
    // Its pauses are short at first; each that is over and fails again is twice as long.
    const calledOnceMore = async (id: string): Promise<Health> => {
      assert.equal((await call('fails')).status, 503);
      return wholeOf(id);
    };
    const one = await shows('fails', ({ pauses = [] }) => pauses.length > 0, calledOnceMore);
    assert.deepEqual([one.status, one.last_failure, one.last_failure_status], ['failing', 'server_error', 503]);
    assert.deepEqual(
      one.pauses?.map(({ model, for_all }) => [model, for_all]),
      [[null, false]],
    );
    assert.equal((await publicOf('fails')).paused_until, null);
  });

  test('a cooldown of a model: for its organization, and for all once a second one has met it', async () => {
    const pausedForAll = async () => {
      // Either process may get them, and each counts for itself.
      for (const key of [KEYS.acme, KEYS.other]) await call('limits', key);
      return publicOf('limits');
    };
    const seen = await waitFor('a pause for all', pausedForAll, ({ paused_until: until = null }) => until !== null);
    assert.deepEqual([seen.status, seen.last_failure], ['failing', 'rate_limited']);
    // The other process hears of it a few seconds later, and it may be the one that answers.
    const isForAll = ({ pauses = [] }: Health) => pauses.some(({ model, for_all }) => model === 'm' && for_all);
    await shows('limits', isForAll, wholeOf);
  });

  test('one that is away, and one that refuses the key: clients are not told of the key', async () => {
    await call('gone');
    await call('refuses');
    const gone = await shows('gone', ({ status }) => status === 'failing');
    assert.deepEqual([gone.last_failure, gone.last_success_at], ['connect', null]);
    const refuses = await shows('refuses', ({ status }) => status === 'failing');
    assert.equal(refuses.last_failure, 'unavailable');
    // The other process may not have heard of it yet.
    const whole = await shows('refuses', ({ status }) => status === 'failing', wholeOf);
    assert.deepEqual([whole.last_failure, whole.last_failure_status], ['key_refused', 401]);
  });
});
