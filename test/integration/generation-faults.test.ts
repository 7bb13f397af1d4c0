// A fault of ours in the middle of a request is answered once, and what the request held comes back: its credit, its
// limits and its memory.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Execution } from '../../src/generation/execution/execution.ts';
import { Scan } from '../../src/generation/request/scan/request-scanner.ts';
import { ProviderCalls } from '../../src/upstream/providers.ts';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import { callRoute } from '../support/generation-routes.ts';
import { PlaneInProcess, VIRTUAL_MODEL } from '../support/plane-in-process.ts';
import { principalOf } from '../support/principals.ts';
import { refusalBody } from '../support/refusal-body.ts';

describe('a fault of ours before the relay', () => {
  let upstream: FakeUpstream;
  let plane: PlaneInProcess;

  before(async () => {
    upstream = await startFakeUpstream(() => ({
      headers: [['content-type', 'application/json']],
      body: '{"usage":{"prompt_tokens":1,"completion_tokens":1}}',
    }));
    plane = await PlaneInProcess.start({
      providerUrl: upstream.url,
      principals: new Map([['key-acme', principalOf('acme')]]),
    });
  });
  after(async () => {
    await plane?.stop();
    await upstream?.close();
  });

  const ask = (model = 'sim/small') =>
    callRoute(`${plane.url}/v1/chat/completions`, {
      key: 'key-acme',
      body: JSON.stringify({ model, max_tokens: 10, messages: [{ role: 'user', content: 'hello' }] }),
    });

  test('between admission and its record is 500 with nothing sent, and nothing stays held', async (context) => {
    assert.equal((await ask()).status, 200);
    const calls = upstream.requests.length;
    const fault = new Error('of ours');
    const { mock } = context.mock.method(Execution.prototype, 'begin', () => {
      throw fault;
    });
    const recorded = plane.refused.length;
    for (let round = 0; round < 3; round += 1) {
      const { status, headers, body } = await ask();
      assert.equal(status, 500);
      refusalBody(body, String(headers['x-service-execution-id']));
    }
    assert.equal(plane.refused.length, recorded + 3);
    assert.deepEqual(plane.faults.splice(0), [fault, fault, fault]);
    assert.deepEqual(plane.underWay, { inflight: 0, relays: 0, buffers: 0, held: 0 });
    assert.equal(upstream.requests.length, calls);
    mock.restore();
    assert.equal((await ask()).status, 200);
  });

  test('at the end of its body is 500, and neither the body nor its scan stays', async (context) => {
    const fault = new Error('of ours');
    const { mock } = context.mock.method(Scan.prototype, 'finish', () => {
      throw fault;
    });
    assert.equal((await ask()).status, 500);
    assert.deepEqual(plane.faults.splice(0), [fault]);
    assert.deepEqual(plane.underWay, { inflight: 0, relays: 0, buffers: 0, held: 0 });
    assert.equal(plane.scanner.active, 0);
    mock.restore();
    assert.equal((await ask()).status, 200);
  });

  test('while the classifier is asked: the turn is routed without its answer', async (context) => {
    const { mock } = context.mock.method(ProviderCalls.prototype, 'call', () => {
      mock.restore();
      throw new Error('of ours');
    });
    const answer = await ask(VIRTUAL_MODEL);
    assert.deepEqual([answer.status, answer.headers['x-service-routed-model']], [200, 'sim/large']);
    assert.deepEqual(plane.underWay, { inflight: 0, relays: 0, buffers: 0, held: 0 });
  });
});
