// Presets vertex and vertex-anthropic against a double of Google's: a token is obtained with the service account, and
// the clients' own SDKs reach the models through it. Where there is no token the next deployment serves, or it is 502.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { type Front, startFront } from '../support/front.ts';
import { httpCall } from '../support/http-call.ts';
import { KEYS } from '../support/test-configuration.ts';
import { startVertexDouble, type VertexDouble } from '../support/vertex-double.ts';
import { waitFor } from '../support/waiting.ts';

const CLAUDE = 'claude-opus-5@20260701';
const QUESTION = { max_tokens: 16, messages: [{ role: 'user' as const, content: 'Hello?' }] };

for (const client of ['own', 'undici'] as const) {
  describe(`Vertex AI over the client ${client}`, () => {
    let double: VertexDouble;
    let tollgate: Front;
    let anthropic: Anthropic;

    before(async () => {
      double = await startVertexDouble();
      const token = { kind: 'google', credentials: double.credentials };
      const without = { ...token, credentials: double.credentials.replace('/token', '/no-token') };
      const vertex = { with: { project: 'acme-1' }, token };
      const price = { input: '1', output: '5' };
      const served = (id: string, apis: readonly string[], ...by: readonly (readonly [string, string])[]) => ({
        id,
        context_length: 1_000_000,
        max_completion_tokens_cap: 4_096,
        served_by: by.map(([provider, model]) => ({ provider, model, apis, price })),
      });
      tollgate = await startFront({
        env: { UPSTREAM_CLIENT: client },
        configurationYaml: JSON.stringify({
          providers: [
            { id: 'gemini', preset: 'vertex', ...vertex, base_url: double.baseUrls.vertex },
            { id: 'claude', preset: 'vertex-anthropic', ...vertex, base_url: double.baseUrls.anthropic },
            { id: 'bare', preset: 'vertex-anthropic', ...vertex, token: without, base_url: double.baseUrls.anthropic },
          ],
          models: [
            served('google/gemini', ['chat_completions'], ['gemini', 'google/gemini-4-pro']),
            served('anthropic/claude', ['messages', 'count_tokens'], ['claude', CLAUDE]),
            served('test/second', ['messages'], ['bare', CLAUDE], ['claude', CLAUDE]),
            served('test/none', ['messages'], ['bare', CLAUDE]),
          ],
          organizations: [
            { slug: 'acme', billing: 'prepaid', opening_credit: '10', keys: [{ name: 'k', secret: KEYS.acme }] },
          ],
        }),
      });
      anthropic = new Anthropic({ baseURL: tollgate.url, apiKey: KEYS.acme, maxRetries: 0 });
      const ask = () =>
        anthropic.messages.create({ model: 'anthropic/claude', ...QUESTION }).then(Boolean, () => false);
      await waitFor('a token', ask, Boolean);
    });
    after(async () => {
      await tollgate?.stop();
      await double?.upstream.close();
    });

    test('messages, as one reply and as a stream', async () => {
      const message = await anthropic.messages.create({ model: 'anthropic/claude', ...QUESTION });
      assert.deepEqual([message.content[0], message.usage.output_tokens], [{ type: 'text', text: 'Hello.' }, 2]);
      const streamed = await anthropic.messages.stream({ model: 'anthropic/claude', ...QUESTION }).finalMessage();
      assert.deepEqual([streamed.content[0], streamed.stop_reason], [{ type: 'text', text: 'Hello.' }, 'end_turn']);
    });

    test('a count of tokens', async () => {
      const { max_tokens: _, ...counted } = QUESTION;
      const count = await anthropic.messages.countTokens({ model: 'anthropic/claude', ...counted });
      assert.deepEqual(count, { input_tokens: 7 });
    });

    test('chat completions of Gemini', async () => {
      const openai = new OpenAI({ baseURL: `${tollgate.url}/v1`, apiKey: KEYS.acme, maxRetries: 0 });
      await waitFor(
        'its token',
        () => openai.chat.completions.create({ model: 'google/gemini', messages: QUESTION.messages }).catch(() => null),
        (completion) => completion?.choices[0]?.message.content === 'Hello.',
      );
    });

    test('one token for each account and provider, and nothing on the wire is wrong', () => {
      assert.equal(double.tokens.length, 2);
      assert.deepEqual(double.upstream.violations, []);
    });

    test('without a token the next deployment serves; where there is none it is 502, and nobody is called', async () => {
      await anthropic.messages.create({ model: 'test/second', ...QUESTION });
      const calls = double.upstream.requests.filter(({ path }) => path.includes('/models/')).length;
      const answer = await httpCall(`${tollgate.url}/v1/messages`, {
        headers: { authorization: `Bearer ${KEYS.acme}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'test/none', ...QUESTION }),
      });
      assert.equal(answer.status, 502, answer.body.toString());
      assert.equal(double.upstream.requests.filter(({ path }) => path.includes('/models/')).length, calls);
    });
  });
}
