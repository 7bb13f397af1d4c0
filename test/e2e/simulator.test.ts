// The simulated provider by itself: what the other tests take for granted about it.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { encode } from 'gpt-tokenizer/encoding/o200k_base';
import OpenAI from 'openai';
import { httpCall } from '../support/http-call.ts';
import { type SimulatedProvider, startSimulatedProvider } from '../support/simulated-provider.ts';
import { waitFor } from '../support/waiting.ts';

describe('the simulated provider', () => {
  let provider: SimulatedProvider;

  before(async () => {
    provider = await startSimulatedProvider();
  });

  after(() => provider?.stop());

  const ask = (content: string, fields: Record<string, unknown> = {}) =>
    httpCall(`${provider.url}/v1/chat/completions`, {
      headers: { authorization: 'Bearer any', 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'sim-small', messages: [{ role: 'user', content }], ...fields }),
    });
  const text = (body: Buffer): string =>
    (JSON.parse(body.toString('utf8')) as OpenAI.ChatCompletion).choices[0]?.message.content ?? '';

  test('gives the same text for the same bytes, and ids of their own', async () => {
    const [first, second, other] = [await ask('Same.'), await ask('Same.'), await ask('Other.')];
    assert.equal(text(first.body), text(second.body));
    assert.notEqual(text(first.body), text(other.body));
    assert.notEqual(JSON.parse(first.body.toString('utf8')).id, JSON.parse(second.body.toString('utf8')).id);
  });

  test('says as many tokens as it reports, by the tokenizer too', async () => {
    for (const tokens of [1, 2, 500]) {
      const answer = JSON.parse(
        (await ask(`Count ${tokens}. [[sim: tokens=${tokens}]]`)).body.toString('utf8'),
      ) as OpenAI.ChatCompletion;
      assert.equal(answer.usage?.completion_tokens, tokens);
      assert.equal(encode(answer.choices[0]?.message.content ?? '').length, tokens);
    }
  });

  test('keeps to output limits and counts the prompt by its written rule', async () => {
    const answer = JSON.parse((await ask('12345', { max_tokens: 3 })).body.toString('utf8')) as OpenAI.ChatCompletion;
    assert.deepEqual(
      [answer.usage?.prompt_tokens, answer.usage?.completion_tokens, answer.choices[0]?.finish_reason],
      [2, 3, 'length'],
    );
  });

  test('streams what the real client reads', async () => {
    const client = new OpenAI({ baseURL: `${provider.url}/v1`, apiKey: 'any' });
    const create = (content: string, usage: boolean) =>
      client.chat.completions.create({
        model: 'sim-small',
        messages: [{ role: 'user', content }],
        stream: true,
        ...(usage ? { stream_options: { include_usage: true } } : {}),
      });
    for (const directives of ['', '[[sim: split_utf8 tokens=40]]']) {
      const usages: unknown[] = [];
      let said = '';
      for await (const chunk of await create(`Stream. ${directives}`, true)) {
        usages.push(chunk.usage);
        said += chunk.choices[0]?.delta.content ?? '';
      }
      assert.ok(said.length > 0 && !said.includes('\ufffd'));
      assert.deepEqual(new Set(usages.slice(0, -1)), new Set([null]));
      assert.ok(usages.at(-1) !== null);
    }
    for await (const chunk of await create('Quiet.', false)) assert.ok(!('usage' in chunk));
  });

  test('answers errors as they are asked for', async () => {
    const limited = await ask('[[sim: status=429 retry_after=3]]');
    assert.deepEqual([limited.status, limited.headers['retry-after']], [429, '3']);
    assert.equal((await ask('[[sim: status=503]]')).status, 503);
    assert.equal((await ask('x', { model: 'unknown-model' })).status, 404);
    assert.equal((await httpCall(`${provider.url}/v1/models`)).status, 401, 'without a credential');
  });

  test('cuts, resets and forgets as it is asked', async () => {
    const stream = { stream: true };
    const cut = await ask('[[sim: cut_after=3]]', stream);
    assert.equal(cut.complete, false);
    assert.ok(cut.body.length > 0);
    assert.equal((await ask('[[sim: cut_after=30]]')).complete, false);
    await assert.rejects(ask('[[sim: reset_before_reply]]'));
    await assert.rejects(ask('[[sim: close_before_reply]]'));
    const ended = await ask('[[sim: end_after=3]]', stream);
    assert.deepEqual([ended.complete, ended.body.includes('[DONE]')], [true, false]);
    const unsaid = await ask('[[sim: no_usage]]');
    assert.ok(!unsaid.body.includes('usage'));
    const wrong = await ask('[[sim: usage=negative]]');
    assert.ok(wrong.body.includes('"prompt_tokens": -1000'));
    const [first, second] = [
      await ask('Twice. [[sim: status=500 times=1]]'),
      await ask('Twice. [[sim: status=500 times=1]]'),
    ];
    assert.deepEqual([first.status, second.status], [500, 200]);
  });

  test('logs a start and an end for every call', async () => {
    await provider.lastEnd();
    const before = provider.ends().length;
    const answer = JSON.parse(
      (await ask('Log this. [[sim: tokens=9 cached=2]]')).body.toString('utf8'),
    ) as OpenAI.ChatCompletion;
    const [end] = await waitFor(
      'the end to be logged',
      () => provider.ends().slice(before),
      (ends) => ends.length === 1,
    );
    assert.deepEqual([end?.id, end?.completed, end?.completionTokens, end?.cachedTokens], [answer.id, true, 9, 2]);
    assert.equal(provider.starts().length, provider.ends().length);
  });
});
