// Under which model a refused request is recorded (spec 2.3): the own id of the one that its name stands for, wherever
// it was refused, and the name itself where its caller may use no such model.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type FakeUpstream, ONE_TOKEN_REPLY, startFakeUpstream } from '../support/fake-upstream.ts';
import { callRoute } from '../support/generation-routes.ts';
import { modelServedBy, PlaneInProcess, providerAt } from '../support/plane-in-process.ts';
import { principalOf } from '../support/principals.ts';
import { waitFor } from '../support/waiting.ts';

const ALIAS = 'small-latest';

describe('a request by an alias', () => {
  let upstream: FakeUpstream;
  let plane: PlaneInProcess;

  before(async () => {
    upstream = await startFakeUpstream(() => ONE_TOKEN_REPLY);
    const model = modelServedBy('sim/small', providerAt(upstream.url), { aliases: [ALIAS] });
    const servedBy = model.servedBy.map((served) => ({ ...served, apis: ['chat_completions'] as const }));
    plane = await PlaneInProcess.start({
      providerUrl: upstream.url,
      principals: new Map([
        ['rich', principalOf('rich')],
        ['other-models', principalOf('other-models', { allowedModels: new Set(['sim/other']) })],
      ]),
      models: [{ ...model, servedBy }],
    });
  });

  after(async () => {
    await plane?.stop();
    await upstream?.close();
  });

  for (const [title, key, path, headers, status, model] of [
    ['before its model is looked up', 'rich', '/v1/chat/completions', { 'x-client-request-id': 'x'.repeat(999) }, 400],
    ['since that is not served on the endpoint', 'rich', '/v1/messages', {}, 400],
    ['since its caller may not use that', 'other-models', '/v1/chat/completions', {}, 404, ALIAS],
  ] as const) {
    test(`that is refused ${title} is recorded under ${model ?? 'the own id'}`, async () => {
      const body = JSON.stringify({ model: ALIAS, max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] });
      const answer = await callRoute(plane.url + path, { key, headers, body });
      assert.equal(answer.status, status, answer.body);
      const record = await waitFor(
        'the record',
        () => plane.refused.find(({ id }) => id === answer.headers['x-service-execution-id']),
        (found) => found !== undefined,
      );
      assert.deepEqual([record?.model, record?.requestedModel], [model ?? 'sim/small', ALIAS]);
    });
  }
});
