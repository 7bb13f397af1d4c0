// What requests say of their own limits, per dialect, and what of it is refused.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { chatCompletions } from '../../src/generation/dialects/chat-completions.ts';
import { countTokens } from '../../src/generation/dialects/count-tokens.ts';
import type { Dialect } from '../../src/generation/dialects/dialect.ts';
import { messages } from '../../src/generation/dialects/messages.ts';
import { responses } from '../../src/generation/dialects/responses.ts';
import { RequestScanner } from '../../src/generation/request/scan/request-scanner.ts';

const scanner = new RequestScanner();

function boundsOf(dialect: Dialect, request: object | string) {
  const body = Buffer.from(typeof request === 'string' ? request : JSON.stringify(request));
  return dialect.readBounds(scanner.scan(body), body);
}

const NOTHING_SAVED = { background: false, store: null, previousResponseId: null, conversationId: null };

describe('bounds', () => {
  test('of chat completions', () => {
    assert.deepEqual(boundsOf(chatCompletions, {}), { streamed: false, outputTokensMax: null, answers: 1 });
    assert.deepEqual(boundsOf(chatCompletions, { stream: true, max_tokens: 5, max_completion_tokens: 9, n: 3 }), {
      streamed: true,
      outputTokensMax: 9,
      outputLimits: { max_tokens: 5, max_completion_tokens: 9 },
      answers: 3,
    });
    assert.deepEqual(boundsOf(chatCompletions, { stream: null, max_tokens: null, n: 0 }), {
      streamed: false,
      outputTokensMax: null,
      answers: 1,
    });
  });

  test('of responses', () => {
    assert.deepEqual(boundsOf(responses, { input: 'x' }), {
      streamed: false,
      outputTokensMax: null,
      answers: 1,
      saved: NOTHING_SAVED,
    });
    const request = {
      stream: true,
      max_output_tokens: 16,
      background: true,
      store: false,
      previous_response_id: 'resp_"1',
      conversation: 'conv_1',
    };
    const saved = { background: true, store: false, previousResponseId: 'resp_"1', conversationId: 'conv_1' };
    assert.deepEqual(boundsOf(responses, request), { streamed: true, outputTokensMax: 16, answers: 1, saved });
  });

  test('of responses: the limits of other dialects are none here', () => {
    assert.deepEqual(boundsOf(responses, { max_tokens: 5, n: 4 }), {
      streamed: false,
      outputTokensMax: null,
      answers: 1,
      saved: NOTHING_SAVED,
    });
  });

  test('of responses: what ties it to others is read, not judged', () => {
    const savedOf = (request: object) => {
      const bounds = boundsOf(responses, request);
      return 'saved' in bounds ? bounds.saved : null;
    };
    assert.deepEqual(savedOf({ conversation: { id: 'conv_2' } }), { ...NOTHING_SAVED, conversationId: 'conv_2' });
    assert.deepEqual(savedOf({ conversation: { id: 5 }, previous_response_id: null, store: true }), {
      ...NOTHING_SAVED,
      store: true,
    });
    assert.deepEqual(
      savedOf({
        conversation: { id: 'c', pad: 'x'.repeat(2000) },
        previous_response_id: 7,
        background: 'yes',
        store: 1,
      }),
      NOTHING_SAVED,
    );
  });

  test('of messages', () => {
    assert.deepEqual(boundsOf(messages, { max_tokens: 32_000, stream: true }), {
      streamed: true,
      outputTokensMax: 32_000,
      answers: 1,
    });
    // Required by the dialect; the provider refuses where nothing here has to.
    assert.deepEqual(boundsOf(messages, {}), { streamed: false, outputTokensMax: null, answers: 1 });
  });

  test('of a counting request', () => {
    assert.deepEqual(boundsOf(countTokens, { max_tokens: 'x', stream: true }), {
      streamed: false,
      outputTokensMax: 0,
      answers: 1,
    });
  });
});

describe('refused', () => {
  const cases: readonly (readonly [dialect: Dialect, request: string, field: string])[] = [
    [chatCompletions, '{"stream":"true"}', 'stream'],
    [chatCompletions, '{"max_tokens":1.5}', 'max_tokens'],
    [chatCompletions, '{"max_completion_tokens":-1}', 'max_completion_tokens'],
    [chatCompletions, '{"n":"2"}', 'n'],
    [responses, '{"stream":1}', 'stream'],
    [responses, '{"max_output_tokens":1e3}', 'max_output_tokens'],
    [messages, '{"stream":[]}', 'stream'],
    [messages, '{"max_tokens":99999999999999999999}', 'max_tokens'],
  ];
  for (const [dialect, request, field] of cases) {
    test(`${dialect.api} ${request}`, () => {
      const refusal = boundsOf(dialect, request);
      assert.ok(
        'kind' in refusal && refusal.kind === 'invalid_field' && refusal.field === field,
        JSON.stringify(refusal),
      );
    });
  }
});
