// The simulated provider's faults and tool calls and tool calls: what is the same for every API must be so on each.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type HttpAnswer, httpCall } from '../support/http-call.ts';
import { type SimulatedProvider, startSimulatedProvider } from '../support/simulated-provider.ts';
import { waitFor } from '../support/waiting.ts';

/** For each API a request that says `text`. */
const REQUESTS: Readonly<Record<string, { path: string; streams: boolean; body: (text: string) => object }>> = {
  chat_completions: {
    path: '/v1/chat/completions',
    streams: true,
    body: (content) => ({ messages: [{ role: 'user', content }] }),
  },
  responses: { path: '/v1/responses', streams: true, body: (input) => ({ input }) },
  messages: {
    path: '/v1/messages',
    streams: true,
    body: (content) => ({ max_tokens: 500, messages: [{ role: 'user', content }] }),
  },
  count_tokens: {
    path: '/v1/messages/count_tokens',
    streams: false,
    body: (content) => ({ messages: [{ role: 'user', content }] }),
  },
  image_generations: { path: '/v1/images/generations', streams: true, body: (prompt) => ({ prompt, n: 3 }) },
  image_edits: {
    path: '/v1/images/edits',
    streams: true,
    body: (prompt) => ({ prompt, n: 3, images: [{ file_id: 'file-1' }] }),
  },
  systemone: {
    path: '/v1/systemone',
    streams: false,
    body: (state) => ({ state, questions: { q: { type: 'noul' } } }),
  },
};

describe('every simulated API', () => {
  let provider: SimulatedProvider;

  before(async () => {
    provider = await startSimulatedProvider();
  });

  after(() => provider?.stop());

  /** A reset can overtake what was sent before it: then there is not even a status. */
  async function assertReset(api: string, directives: string, stream: boolean): Promise<void> {
    const answer = await ask(api, directives, stream).catch((error: NodeJS.ErrnoException) => error.code);
    assert.equal(
      typeof answer === 'object' ? answer.complete : answer,
      typeof answer === 'object' ? false : 'ECONNRESET',
    );
  }

  function ask(api: string, directives: string, stream = false): Promise<HttpAnswer> {
    const { path, body } = REQUESTS[api] ?? assert.fail(api);
    return httpCall(`${provider.url}${path}`, {
      headers: { authorization: 'Bearer any', 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
      body: JSON.stringify({ model: 'sim-x', ...body(`Fault. [[sim: ${directives}]]`), ...(stream ? { stream } : {}) }),
    });
  }

  test('a black hole takes the call and never answers; leaving it ends it', async () => {
    for (const api of Object.keys(REQUESTS)) {
      const { path, body } = REQUESTS[api] ?? assert.fail(api);
      const abort = new AbortController();
      const call = fetch(`${provider.url}${path}`, {
        method: 'POST',
        headers: { authorization: 'Bearer any', 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
        body: JSON.stringify({ model: 'sim-x', ...body('[[sim: blackhole]]') }),
        signal: abort.signal,
      });
      await waitFor(
        'the call to arrive',
        () => provider.starts().at(-1)?.api,
        (found) => found === api,
      );
      abort.abort();
      await assert.rejects(call);
      const { api: logged, status, completed } = await provider.lastEnd();
      assert.deepEqual([logged, status, completed], [api, null, false]);
    }
  });

  test('a header block of ten megabytes is sent when asked for', async () => {
    const asked = Object.keys(REQUESTS).map((api) =>
      assert.rejects(ask(api, 'headers_bytes=10000000'), { code: 'HPE_HEADER_OVERFLOW' }),
    );
    await Promise.all(asked);
  });

  for (const [api, { streams }] of Object.entries(REQUESTS)) {
    test(`${api}: whole answers`, async () => {
      const usual = await ask(api, '');
      assert.deepEqual([usual.status, usual.complete], [200, true]);
      const limited = await ask(api, 'status=429 retry_after=7');
      assert.deepEqual([limited.status, limited.headers['retry-after']], [429, '7']);
      assert.deepEqual(
        await ask(api, 'retry_after_on_200').then(({ status, headers }) => [status, headers['retry-after']]),
        [200, '30'],
      );
      assert.equal((await ask(api, 'headers_bytes=9000')).headers['x-padding']?.length, 9000);
      for (const directive of ['cut_after=5', 'cut_mid_event']) {
        const cut = await ask(api, directive);
        assert.deepEqual([directive, cut.status, cut.complete], [directive, 200, false]);
      }
      await assertReset(api, 'reset_after=5', false);
      await assert.rejects(ask(api, 'reset_before_reply'));
      await assert.rejects(ask(api, 'close_before_reply'));
      const split = (await ask(api, 'split_utf8')).body.toString('utf8');
      assert.ok(!split.includes('\ufffd'));
      JSON.parse(split);
      assert.ok((await ask(api, 'bytes=50000')).body.length > 50_000);
      const twice = [await ask(api, 'status=500 times=1'), await ask(api, 'status=500 times=1')];
      assert.deepEqual(
        twice.map(({ status }) => status),
        [500, 200],
      );
      const { api: logged, status, completed } = await provider.lastEnd();
      assert.deepEqual([logged, status, completed], [api, 200, true]);
      const invalid = await ask(api, 'invalid_utf8');
      assert.throws(() => new TextDecoder('utf-8', { fatal: true }).decode(invalid.body), TypeError);
    });

    if (!streams) continue;
    test(`${api}: streams`, async () => {
      const usual = await ask(api, '', true);
      assert.equal(usual.headers['content-type'], 'text/event-stream; charset=utf-8');
      assert.ok(usual.complete && usual.body.toString('utf8').endsWith('\n\n'));
      for (const directive of ['cut_after=2', 'cut_mid_event=1']) {
        const cut = await ask(api, directive, true);
        assert.deepEqual([directive, cut.status, cut.complete], [directive, 200, false]);
        assert.equal(cut.body.toString('utf8').endsWith('\n\n'), directive !== 'cut_mid_event=1', directive);
      }
      await assertReset(api, 'reset_after=2', true);
      const failed = await ask(api, 'error_event=2', true);
      assert.ok(failed.complete);
      assert.match(failed.body.toString('utf8'), /"error":\{/);
      const ended = await ask(api, 'end_after=1', true);
      assert.ok(ended.complete && ended.body.length < usual.body.length);
      assert.equal((await provider.lastEnd()).completed, false);
    });
  }
});
