// What a request that will be refused costs before it is: of one organization near its edge one exact count at a time
// runs in the workers, so that another organization's waits for no more than that.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import { callRoute } from '../support/generation-routes.ts';
import { PlaneInProcess } from '../support/plane-in-process.ts';
import { principalOf } from '../support/principals.ts';
import { waitFor } from '../support/waiting.ts';

/** Its text has some 400 tokens and 2,000 bytes. */
const BODY = JSON.stringify({
  model: 'sim/small',
  max_tokens: 10,
  messages: [{ role: 'user', content: 'word '.repeat(400) }],
});
/** Pays for a token each of the text, and not for one each of its bytes. */
const NEAR_THE_EDGE = 1_000_000n;

let upstream: FakeUpstream;
let plane: PlaneInProcess;

before(async () => {
  upstream = await startFakeUpstream(() => ({
    body: '{"id":"r","usage":{"prompt_tokens":400,"completion_tokens":2}}',
  }));
  plane = await PlaneInProcess.start({
    providerUrl: upstream.url,
    principals: new Map(['many', 'one'].map((name) => [name, principalOf(name)])),
    amounts: new Map(['wallet-of-many', 'wallet-of-one'].map((wallet) => [wallet, NEAR_THE_EDGE])),
    // They wait until this test has seen that they do, which takes as long as the machine takes for twenty requests.
    countWaitMsMax: 300_000,
  });
  await plane.loadTokenizer();
});
after(async () => {
  await plane?.stop();
  await upstream?.close();
});

test(
  'an organization’s requests near its edge are counted one at a time, few wait, and another’s is ' +
    'counted beside them',
  async () => {
    const gate = plane.gates.counting;
    gate.shut();
    const many = Array.from({ length: 20 }, () =>
      callRoute(`${plane.url}/v1/chat/completions`, { key: 'many', body: BODY }),
    );
    // Eight wait for the first, and what is beyond them is judged by its bytes.
    const refused = (): number => plane.refusals.filter((kind) => kind === 'insufficient_credit').length;
    await waitFor('the rest to be refused', refused, (count) => count === 11);
    assert.equal(gate.arrived, 1);
    const one = callRoute(`${plane.url}/v1/chat/completions`, { key: 'one', body: BODY });
    await waitFor(
      'the other to be counted',
      () => gate.arrived,
      (count) => count === 2,
    );
    gate.open();
    assert.equal((await one).status, 200);
    const statuses = (await Promise.all(many)).map(({ status }) => status);
    assert.ok(statuses.includes(200) && statuses.every((status) => status === 200 || status === 402), statuses.join());
  },
);
