// A fault of ours in the middle of a request is answered once, and what the request held comes back: its credit, its
// limits and its memory.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import { callRoute } from '../support/generation-routes.ts';
import { PlaneInProcess, principalOf } from '../support/plane-in-process.ts';

describe('a fault between admission and its record', () => {
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

  const ask = () =>
    callRoute(`${plane.url}/v1/chat/completions`, {
      key: 'key-acme',
      body: JSON.stringify({ model: 'sim/small', max_tokens: 10, messages: [{ role: 'user', content: 'hello' }] }),
    });

  test('is 500 with nothing sent, and nothing stays held', async () => {
    assert.equal((await ask()).status, 200);
    const calls = upstream.requests.length;
    const fault = new Error('no id for it');
    plane.idFault = fault;
    for (let round = 0; round < 3; round += 1) assert.equal((await ask()).status, 500);
    assert.deepEqual(plane.faults.splice(0), [fault, fault, fault]);
    assert.deepEqual(plane.underWay, { inflight: 0, relays: 0, buffers: 0, held: 0 });
    assert.equal(upstream.requests.length, calls);
    plane.idFault = null;
    assert.equal((await ask()).status, 200);
  });
});
