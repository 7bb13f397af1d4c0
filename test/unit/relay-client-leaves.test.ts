// A client that leaves while the rest of a reply waits for it, whose end is recorded: nothing of its request stays
// behind.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { chatCompletions } from '../../src/generation/dialects/chat-completions.ts';
import { RelayInHand } from '../support/relay-in-hand.ts';

const END = 'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}\n\ndata: [DONE]\n\n';

describe('a client leaves while the rest waits for it', () => {
  for (const [name, isWhole] of [
    ['the provider has ended', true],
    ['its last event has come', false],
  ] as const) {
    test(name, async () => {
      const inHand = new RelayInHand(chatCompletions);
      await inHand.receive(Buffer.from('data: {"choices":[]}\n\n'));
      inHand.clientIsFull = true;
      await inHand.receive(Buffer.from(END));
      if (isWhole) await inHand.end();
      assert.equal(inHand.open.size, 1);
      inHand.record();
      assert.equal(inHand.open.size, 1, 'it waits for room');
      inHand.clientLeaves();
      assert.equal(inHand.open.size, 0);
    });
  }

  for (const [name, before] of [
    ['in the tick that brought the end of the reply: it was whole before', 'data: {"choices":[]}\n\n'],
    ['in the tick that brought all of a reply, before a byte of it was written', ''],
  ] as const) {
    test(name, async () => {
      const inHand = new RelayInHand(chatCompletions);
      if (before !== '') await inHand.receive(Buffer.from(before));
      inHand.provider.onReplyData(Buffer.from(END));
      inHand.provider.onReplyEnd();
      inHand.clientLeaves();
      await new Promise((resolve) => setImmediate(resolve));
      assert.deepEqual([inHand.ending?.outcome, inHand.ending?.status], ['completed', 200]);
      inHand.record();
      assert.equal(inHand.open.size, 0);
    });
  }

  test('while its end is being recorded: after that', async () => {
    const inHand = new RelayInHand(chatCompletions);
    await inHand.receive(Buffer.from(END));
    inHand.clientLeaves();
    assert.equal(inHand.open.size, 1);
    inHand.record();
    assert.equal(inHand.open.size, 0);
  });
});

test('a client that has left before the relay begins costs no call, and its end is recorded', () => {
  const inHand = new RelayInHand(chatCompletions, false, true);
  assert.equal(inHand.calls, 0);
  assert.deepEqual([inHand.ending?.outcome, inHand.ending?.status], ['aborted_before_first_byte', null]);
  assert.equal(inHand.open.size, 1);
  inHand.record();
  assert.deepEqual([inHand.open.size, inHand.calls], [0, 0]);
});
