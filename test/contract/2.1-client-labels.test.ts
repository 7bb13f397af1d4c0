// Spec 1.7, 4.5: a client's own label is kept whole, or its request is refused: none is dropped in silence.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { expectDocumentedAnswers } from '../support/documented-answers.ts';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import { httpCall } from '../support/http-call.ts';
import { modelServedBy, PlaneInProcess, providerAt } from '../support/plane-in-process.ts';
import { principalOf } from '../support/principals.ts';

const REPLY = { body: '{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}' };
const LONGEST = 'l'.repeat(255);

/** The label as sent, and as recorded; null: none is recorded. 400: the request is refused. */
const CASES: readonly (readonly [what: string, label: string | null, recorded: string | null | 400])[] = [
  ['none', null, null],
  ['an empty one', '', null],
  ['a short one', 'run-7', 'run-7'],
  ['the longest that is kept', LONGEST, LONGEST],
  ['a longer one', `${LONGEST}l`, 400],
  ['a much longer one', 'l'.repeat(3_000), 400],
];

describe('X-Client-Request-Id', () => {
  let upstream: FakeUpstream;
  let plane: PlaneInProcess;

  before(async () => {
    upstream = await startFakeUpstream(() => REPLY);
    plane = await PlaneInProcess.start({
      providerUrl: upstream.url,
      principals: new Map([['key', principalOf('acme')]]),
      models: [modelServedBy('m', providerAt(upstream.url))],
    });
    expectDocumentedAnswers(plane.url);
  });
  after(async () => {
    await plane?.stop();
    await upstream?.close();
  });

  for (const [what, label, recorded] of CASES) {
    test(`${what}: ${recorded === 400 ? 'is refused' : 'is recorded as it is'}`, async () => {
      const [calls, refusals] = [upstream.requests.length, plane.refused.length];
      const answer = await httpCall(`${plane.url}/v1/chat/completions`, {
        headers: {
          authorization: 'Bearer key',
          'content-type': 'application/json',
          ...(label === null ? {} : { 'x-client-request-id': label }),
        },
        body: '{"model":"m","messages":[]}',
      });
      const text = answer.body.toString();
      if (recorded === 400) {
        assert.equal(answer.status, 400);
        assert.match(text, /X-Client-Request-Id/);
        assert.equal(upstream.requests.length, calls);
        assert.equal(plane.refused.length, refusals + 1);
      } else {
        assert.equal(answer.status, 200, text);
        assert.equal(plane.ends.at(-1)?.clientRequestId, recorded);
      }
    });
  }
});
