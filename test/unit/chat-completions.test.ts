// The chat dialect: usage found in the end of a reply, the end of a stream, and what is kept of a long reply.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { chatCompletions } from '../../src/generation/dialects/chat-completions.ts';
import { CaptureBuffer } from '../../src/generation/reply/capture-buffer.ts';
import { keptReply } from '../support/kept-replies.ts';

const usageOf = (text: string) => chatCompletions.readUsage(keptReply(text));

describe('usage of a chat reply', () => {
  test('tokens, cached and reasoning', () => {
    const usage = usageOf(
      '{"id":"x","usage":{"prompt_tokens":11,"completion_tokens":5,"total_tokens":16,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":2}},"system_fingerprint":"f"}',
    );
    assert.deepEqual(usage, {
      inputTokens: 11,
      cachedInputTokens: 3,
      cacheWriteTokens: null,
      outputTokens: 5,
      reasoningTokens: 2,
      images: null,
    });
  });

  test('the last one that is not null', () => {
    const usage = usageOf(
      'data: {"usage":{"prompt_tokens":1,"completion_tokens":1}}\n\ndata: {"usage":null}\n\ndata: {"usage" : { "prompt_tokens":7,"completion_tokens":2 } }\n\ndata: {"usage":null}\n\n',
    );
    assert.equal(usage?.inputTokens, 7);
  });

  test('not from text that speaks of usage', () => {
    assert.equal(
      usageOf(JSON.stringify({ choices: [{ message: { content: 'say {"usage":{"prompt_tokens":1}}' } }] })),
      null,
    );
    assert.equal(usageOf('{"kind":"usage"}'), null);
    assert.equal(usageOf('{"usage":{"prompt_tokens":1'), null);
  });

  test('a count that is no number is not taken for an absent one', () => {
    assert.ok(Number.isNaN(usageOf('{"usage":{"prompt_tokens":"9","completion_tokens":1}}')?.inputTokens));
  });
});

describe('end of a chat stream', () => {
  const ends = (text: string) => chatCompletions.watchStreamEnd().feed(Buffer.from(text)) === 'ended';
  for (const text of [
    'data: [DONE]\n\n',
    'data: [DONE]',
    'data:[DONE]\r\n\r\n',
    'data: {"a":1}\n\ndata: [DONE]\n\n: bye\n\n',
  ]) {
    test(`${JSON.stringify(text)} is one`, () => assert.equal(ends(text), true));
  }
  for (const text of [
    '',
    '\n\n',
    'data: {"a":[1]}\n\n',
    'data: [DON',
    ': keep-alive\n\n',
    'data: {"content":"[DONE]"}\n\n',
    ']',
  ]) {
    test(`${JSON.stringify(text)} is none`, () => assert.equal(ends(text), false));
  }
});

describe('what is kept of a reply', () => {
  test('all of a short one, in chunks of any size', () => {
    const whole = Buffer.from(Array.from({ length: 9_000 }, (_, index) => index % 251));
    for (const size of [1, 7, 1_000, 8_999, 9_000]) {
      const kept = new CaptureBuffer();
      for (let offset = 0; offset < whole.length; offset += size) kept.append(whole.subarray(offset, offset + size));
      assert.ok(kept.end().equals(whole), `chunks of ${size}`);
      assert.ok(kept.beginning().equals(whole));
    }
  });

  test('the beginning and the end of a long one', () => {
    const whole = Buffer.from(Array.from({ length: 1_000_000 }, (_, index) => index % 253));
    for (const size of [777, 65_536, 262_144, 300_000, 1_000_000]) {
      const kept = new CaptureBuffer();
      for (let offset = 0; offset < whole.length; offset += size) kept.append(whole.subarray(offset, offset + size));
      assert.equal(kept.totalBytes, whole.length);
      const end = kept.end();
      assert.ok(end.length >= 32_768, `chunks of ${size} keep ${end.length}`);
      assert.ok(end.equals(whole.subarray(whole.length - end.length)), `chunks of ${size}`);
      assert.ok(kept.beginning().equals(whole.subarray(0, 262_144)));
    }
  });
});
