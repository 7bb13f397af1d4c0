// What pauses a provider's model or a classifier, and for whom: one organization's refused requests never do for
// another (docs/decisions.md, Relay). Each row of that table, over real sockets.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Principal } from '../../src/domain/identity/principal.ts';
import { type FakeUpstream, type Script, startFakeUpstream } from '../support/fake-upstream.ts';
import { callRoute } from '../support/generation-routes.ts';
import {
  classifierAnswer,
  modelServedBy,
  PlaneInProcess,
  providerAt,
  VIRTUAL_MODEL,
} from '../support/plane-in-process.ts';
import { principalOf } from '../support/principals.ts';

const CHAT = '/v1/chat/completions';
const RETRY_LATER = [
  ['content-type', 'application/json'],
  ['retry-after', '20'],
] as const;

/** What a request's text tells the provider, or the classifier, to answer. */
const ANSWERS: Readonly<Record<string, Script>> = {
  'be busy 429': { status: 429, headers: RETRY_LATER, body: '{}' },
  'be busy 503': { status: 503, headers: RETRY_LATER, body: '{}' },
  'be busy 529': { status: 529, headers: RETRY_LATER, body: '{}' },
  'refuse the text': { status: 400, body: '{}' },
  'break down': { status: 500, body: '{}' },
  'hang up': { instead: 'close' },
};

const STATUSES = [429, 503, 529] as const;
const FAILURES = ['break down', 'hang up'] as const;

describe('what one organization meets', () => {
  let upstream: FakeUpstream;
  let plane: PlaneInProcess;
  let keys = 0;
  let requests = 0;
  const principals = new Map<string, Principal>();
  const models = (url: string) =>
    ['sim/small', 'sim/large', ...STATUSES.map((status) => `sim/busy-${status}`)].map((id) =>
      modelServedBy(id, providerAt(url)),
    );

  before(async () => {
    upstream = await startFakeUpstream(({ path, body }) => {
      const text = body.toString('utf8');
      const isJudge = path === '/v1/systemone';
      const told = Object.keys(ANSWERS).find((words) => text.includes(`${isJudge ? 'judge' : 'provider'}, ${words}`));
      if (told !== undefined) return ANSWERS[told] as Script;
      return {
        body: isJudge ? classifierAnswer('light') : '{"id":"r","usage":{"prompt_tokens":3,"completion_tokens":2}}',
      };
    });
    for (let index = 0; index < 60; index += 1) principals.set(`key-${index}`, principalOf(`organization-${index}`));
  });
  after(() => upstream?.close());

  /** A plane of its own for each test, so that no pause of another is met. */
  async function withPlane(run: () => Promise<void>): Promise<void> {
    plane = await PlaneInProcess.start({ providerUrl: upstream.url, principals, models: models(upstream.url) });
    try {
      await run();
    } finally {
      await plane.stop();
    }
  }

  const newKey = (): string => {
    keys += 1;
    return `key-${keys}`;
  };
  const ask = (key: string, model: string, words: string) => {
    requests += 1;
    const content = `${words} (request number ${requests} of this test)`;
    return callRoute(plane.url + CHAT, {
      key,
      body: JSON.stringify({ model, max_tokens: 10, messages: [{ role: 'user', content }] }),
    });
  };
  const judgedFor = async (key: string): Promise<boolean> => {
    const calls = upstream.requests.filter(({ path }) => path === '/v1/systemone').length;
    assert.equal((await ask(key, VIRTUAL_MODEL, 'hello')).status, 200);
    return upstream.requests.filter(({ path }) => path === '/v1/systemone').length > calls;
  };

  for (const status of STATUSES) {
    test(
      `a ${status} with Retry-After pauses the model for that organization, and for all once a second one ` +
        `meets it`,
      async () => {
        await withPlane(async () => {
          const [tenant, other, third] = [newKey(), newKey(), newKey()];
          const model = `sim/busy-${status}`;
          assert.equal((await ask(tenant, model, `provider, be busy ${status}`)).status, status);
          const paused = await ask(tenant, model, 'hello');
          assert.deepEqual([paused.status, paused.body.includes('upstream_cooldown')], [429, true]);
          assert.equal((await ask(other, model, 'hello')).status, 200, 'nobody else is paused');
          assert.equal((await ask(tenant, 'sim/small', 'hello')).status, 200, 'and no other model');
          assert.equal((await ask(other, model, `provider, be busy ${status}`)).status, status);
          const forAll = await ask(third, model, 'hello');
          assert.deepEqual([forAll.status, forAll.body.includes('upstream_cooldown')], [429, true]);
        });
      },
    );
  }

  test('a classifier that asks for a pause is not asked for that organization, and is for the others', async () => {
    await withPlane(async () => {
      const [tenant, other] = [newKey(), newKey()];
      assert.equal((await ask(tenant, VIRTUAL_MODEL, 'judge, be busy 429')).status, 200);
      assert.deepEqual([await judgedFor(tenant), await judgedFor(other)], [false, true]);
    });
  });

  test('texts that the classifier refuses open its breaker for nobody, however many', async () => {
    await withPlane(async () => {
      const [tenant, other] = [newKey(), newKey()];
      for (let count = 0; count < 12; count += 1)
        assert.equal((await ask(tenant, VIRTUAL_MODEL, 'judge, refuse the text')).status, 200);
      assert.deepEqual([await judgedFor(tenant), await judgedFor(other)], [true, true]);
    });
  });

  for (const failure of FAILURES) {
    test(
      `a classifier that fails (${failure}) five times in a row is not asked for that organization, and ` +
        `for nobody once a second one has met that`,
      async () => {
        await withPlane(async () => {
          const [tenant, other, third] = [newKey(), newKey(), newKey()];
          for (let count = 0; count < 5; count += 1) await ask(tenant, VIRTUAL_MODEL, `judge, ${failure}`);
          assert.deepEqual(
            [await judgedFor(tenant), await judgedFor(other), await judgedFor(third)],
            [false, true, true],
          );
          for (let count = 0; count < 5; count += 1) await ask(other, VIRTUAL_MODEL, `judge, ${failure}`);
          assert.equal(await judgedFor(third), false);
        });
      },
    );
  }
});
