// Idempotency keys of clients at a provider that honours them: in the operator's account, which serves all
// organizations, no organization is given the reply to another one's request, whatever keys its clients choose.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { CONTRACT_MODELS, callRoute } from '../support/generation-routes.ts';
import { KEYS, testConfiguration } from '../support/test-configuration.ts';

const HASH = /^[0-9a-f]{64}$/;

for (const client of ['own', 'undici'] as const) {
  describe(`idempotency keys of clients, over the client ${client}`, () => {
    /** What the provider has answered, by its account and the key of the request. */
    const answered = new Map<string, string>();
    let upstream: FakeUpstream;
    let tollgate: Front;

    before(async () => {
      upstream = await startFakeUpstream((request) => {
        const key = request.header('idempotency-key');
        const fresh = `{"id":"resp_1","usage":{"input_tokens":1,"output_tokens":1},"to":${request.body.length > 0 ? request.body.toString() : '""'}}`;
        if (key === null) return { body: fresh };
        const account = `${request.header('authorization')} ${key}`;
        if (!answered.has(account)) answered.set(account, fresh);
        return { body: answered.get(account) ?? '' };
      });
      tollgate = await startFront({
        configurationYaml: testConfiguration({ upstreamUrl: upstream.url, models: CONTRACT_MODELS }),
        env: { UPSTREAM_CLIENT: client },
      });
    });
    after(async () => {
      await tollgate?.stop();
      await upstream?.close();
    });

    /** What the provider says that it was asked, and the key that it saw. */
    async function ask(key: string, input: string, idempotencyKey?: string): Promise<readonly [string, string | null]> {
      const headers = idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey };
      const body = JSON.stringify({ model: 'sim/small', max_output_tokens: 5, input });
      const answer = await callRoute(`${tollgate.url}/v1/responses`, { key, headers, body });
      assert.equal(answer.status, 200, answer.body);
      const { to } = JSON.parse(answer.body) as { readonly to: { readonly input: string } };
      return [to.input, upstream.requests.at(-1)?.header('idempotency-key') ?? null];
    }

    test('the same key of two organizations is two keys for the provider', async () => {
      const [first, seenOfFirst] = await ask(KEYS.acme, 'a secret of acme', 'retry-1');
      const [second, seenOfSecond] = await ask(KEYS.other, 'hello', 'retry-1');
      assert.deepEqual([first, second], ['a secret of acme', 'hello']);
      assert.match(seenOfFirst ?? '', HASH);
      assert.match(seenOfSecond ?? '', HASH);
      assert.notEqual(seenOfFirst, seenOfSecond);
    });

    test('within an organization the same key stays the same, and another one another', async () => {
      const [, first] = await ask(KEYS.acme, 'once', 'retry-2');
      assert.deepEqual(await ask(KEYS.acmeSecond, 'once more', 'retry-2'), ['once', first]);
      assert.notEqual((await ask(KEYS.acme, 'another', 'retry-3'))[1], first);
    });

    test('a request without one has none, and an empty one stays empty', async () => {
      assert.deepEqual(await ask(KEYS.acme, 'without'), ['without', null]);
      assert.equal((await ask(KEYS.acme, 'empty', ''))[1] ?? '', '');
    });

    test('the operations on saved responses, too', async () => {
      await ask(KEYS.acme, 'to be fetched');
      const headers = { 'idempotency-key': 'retry-4' };
      const answer = await callRoute(`${tollgate.url}/v1/responses/resp_1`, { method: 'GET', key: KEYS.acme, headers });
      assert.equal(answer.status, 200, answer.body);
      assert.match(upstream.requests.at(-1)?.header('idempotency-key') ?? '', HASH);
    });
  });
}
