// Typed questions are admitted before their body is looked at (spec 7.5): credit and traffic refusals come first, and
// what is refused for its body holds nothing afterwards.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type FakeUpstream, ONE_TOKEN_REPLY, startFakeUpstream } from '../support/fake-upstream.ts';
import { callRoute } from '../support/generation-routes.ts';
import { PlaneInProcess } from '../support/plane-in-process.ts';
import { principalOf } from '../support/principals.ts';

const NO_OBJECTS = [[1], 'one', 7, true];
const TOKENS_PER_MINUTE = {
  id: 'tokens',
  scope: 'organization',
  kind: 'tokens_per_minute',
  window: null,
  amount: 1_000_000n,
  model: null,
  setBy: 'organization',
} as const;

describe('a typed question whose `questions` are no object', () => {
  let upstream: FakeUpstream;
  let plane: PlaneInProcess;

  before(async () => {
    upstream = await startFakeUpstream(() => ONE_TOKEN_REPLY);
    plane = await PlaneInProcess.start({
      providerUrl: upstream.url,
      principals: new Map([
        ['unlimited', principalOf('unlimited')],
        ['limited', principalOf('limited', { limits: [TOKENS_PER_MINUTE] })],
        ['no-credit', principalOf('no-credit')],
      ]),
      amounts: new Map([['wallet-of-no-credit', 0n]]),
    });
  });

  after(async () => {
    await plane?.stop();
    await upstream?.close();
  });

  for (const [key, status, says] of [
    ['limited', 422, '"error":"traffic_token_bound_required"'],
    ['no-credit', 402, '"error":"insufficient_credit"'],
    ['unlimited', 400, '"detail":{"error_type":"invalid_request_error"'],
  ] as const) {
    test(`${key}: ${status}, nobody is called and nothing stays held`, async () => {
      for (const questions of NO_OBJECTS) {
        const body = JSON.stringify({ model: 'sim/judge', state: 's', questions });
        const answer = await callRoute(`${plane.url}/v1/systemone`, { key, body });
        assert.equal(answer.status, status, answer.body);
        assert.ok(answer.body.includes(says), answer.body);
      }
      assert.deepEqual([upstream.requests.length, plane.held], [0, 0n]);
    });
  }
});
