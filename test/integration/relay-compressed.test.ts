// A reply that is compressed although no compression was asked for: it reaches the client as it is, nothing of it can
// be read, and so it is not charged and an alarm.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { type FakeUpstream, type Script, startFakeUpstream } from '../support/fake-upstream.ts';
import { httpCall } from '../support/http-call.ts';
import { modelServedBy, PlaneInProcess, providerAt } from '../support/plane-in-process.ts';
import { principalOf } from '../support/principals.ts';
import { waitFor } from '../support/waiting.ts';

const REPLY = JSON.stringify({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } });
const EVENTS = `data: {"choices":[{"delta":{"content":"hi"}}]}\n\ndata: [DONE]\n\n`;

const CASES: Readonly<
  Record<string, readonly [type: string, encoding: string | null, body: Buffer, error: RegExp | null]>
> = {
  'one reply': ['application/json', 'gzip', gzipSync(REPLY), /^usage_unreadable: .*\(gzip\)$/],
  'a stream': ['text/event-stream', 'gzip', gzipSync(EVENTS), /^usage_unreadable: .*\(gzip\)$/],
  'an encoding that is none': ['application/json', 'a "b" c', Buffer.from(REPLY), /^usage_unreadable: .*\(unknown\)$/],
  'identity, which is none': ['application/json', 'identity', Buffer.from(REPLY), null],
};

for (const client of ['own', 'undici'] as const) {
  describe(`a compressed reply over the client ${client}`, () => {
    let script: Script;
    let upstream: FakeUpstream;
    let plane: PlaneInProcess;

    before(async () => {
      upstream = await startFakeUpstream(() => script);
      plane = await PlaneInProcess.start({
        providerUrl: upstream.url,
        principals: new Map([['key', principalOf('acme', { billed: true })]]),
        models: [modelServedBy('m', providerAt(upstream.url))],
        client,
      });
    });
    after(async () => {
      await plane?.stop();
      await upstream?.close();
    });

    for (const [what, [type, encoding, body, error]] of Object.entries(CASES)) {
      test(what, async () => {
        script = {
          headers: [['content-type', type], ...(encoding === null ? [] : [['content-encoding', encoding] as const])],
          body,
        };
        const ended = plane.ends.length;
        const answer = await httpCall(`${plane.url}/v1/chat/completions`, {
          headers: { authorization: 'Bearer key', 'content-type': 'application/json', 'accept-encoding': 'gzip' },
          body: JSON.stringify({ model: 'm', messages: [], stream: type !== 'application/json' }),
        });
        assert.equal(answer.status, 200);
        assert.deepEqual(answer.body, body);
        assert.equal(upstream.requests.at(-1)?.header('accept-encoding'), 'identity');
        const [end] = await waitFor(
          'the end',
          () => plane.ends.slice(ended),
          (found) => found.length > 0,
        );
        assert.equal(end?.outcome, 'completed');
        if (error === null) {
          assert.deepEqual([end.errorCode, end.usage?.inputTokens], [null, 3]);
          return;
        }
        assert.match(end.errorCode ?? '', error);
        assert.deepEqual([end.usage, end.ratedCost, end.charge, end.billingStatus], [null, null, '0', 'final']);
      });
    }
  });
}
