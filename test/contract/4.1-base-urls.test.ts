// Where a provider is called, by its base_url: one that ends in /v1 means what it says, and no other is changed.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Provider } from '../../src/domain/models/provider.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import { HeaderLines } from '../../src/upstream/http1/request-head.ts';
import { ProviderCalls } from '../../src/upstream/providers.ts';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';

/** The path behind the provider's origin, and what is on the wire for POST /v1/chat/completions. */
const CASES: Readonly<Record<string, string>> = {
  '': '/v1/chat/completions',
  '/': '/v1/chat/completions',
  '/v1': '/v1/chat/completions',
  '/v1/': '/v1/chat/completions',
  '/openai/v1': '/openai/v1/chat/completions',
  '/openai/v1/': '/openai/v1/chat/completions',
  '/openai': '/openai/v1/chat/completions',
  '/v1beta/openai/': '/v1beta/openai/v1/chat/completions',
  '/api/v2': '/api/v2/v1/chat/completions',
};

let upstream: FakeUpstream;
let calls: ProviderCalls;
before(async () => {
  upstream = await startFakeUpstream(() => ({ body: '{}' }));
  calls = new ProviderCalls(new MetricsRegistry(), systemClock);
});
after(async () => {
  await calls.close();
  await upstream.close();
});

for (const [path, expected] of Object.entries(CASES)) {
  test(`base_url ...${path === '' ? ' without a path' : path}: ${expected}`, async () => {
    const before = upstream.requests.length;
    const provider: Provider = {
      id: 'p',
      baseUrl: upstream.url + path,
      apiKey: '',
      auth: 'none',
      onDisconnect: 'cancel',
    };
    const ended = Promise.withResolvers<void>();
    calls.call(
      provider,
      {
        method: 'POST',
        api: 'chat_completions',
        path: '/v1/chat/completions',
        query: '',
        providerModel: 'm',
        streamed: false,
        credential: new HeaderLines([]),
        headers: [],
        body: null,
      },
      {
        onReplyStart: () => undefined,
        onReplyData: () => undefined,
        onReplyPause: () => undefined,
        onReplyEnd: ended.resolve,
        onKeyRefused: () => ended.reject(new Error('the key is refused')),
        onReplyFault: (fault) => ended.reject(new Error(fault)),
      },
    );
    await ended.promise;
    assert.equal(upstream.requests.length, before + 1);
    assert.equal(upstream.requests.at(-1)?.path, expected);
  });
}
