// The simulated provider takes what real clients and coding agents were recorded sending to real providers, where the
// recordings are there.

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { httpCall } from '../support/http-call.ts';
import { sharedAssets } from '../support/shared-assets.ts';
import { type SimulatedProvider, startSimulatedProvider } from '../support/simulated-provider.ts';

const PATHS: Readonly<Record<string, string>> = {
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
  messages: '/v1/messages',
  count_tokens: '/v1/messages/count_tokens',
};

describe('the simulated provider', () => {
  let provider: SimulatedProvider;
  const assets = sharedAssets();

  before(async () => {
    provider = await startSimulatedProvider();
  });

  after(() => provider?.stop());

  async function post(path: string, body: string): Promise<{ status: number; text: string }> {
    const headers = {
      authorization: 'Bearer any',
      'anthropic-version': '2023-06-01',
      'content-type': 'application/json',
    };
    const answer = await httpCall(`${provider.url}${path}`, { headers, body });
    return { status: answer.status, text: answer.body.toString('utf8') };
  }

  test('serves every recorded request', { skip: assets === null && 'no recordings here' }, async () => {
    const problems: string[] = [];
    let served = 0;
    for (const directory of readdirSync(assets ?? '.').map((name) => join(assets ?? '.', name))) {
      const index = join(directory, 'index.jsonl');
      const lines = existsSync(index) ? readFileSync(index, 'utf8').split('\n').filter(Boolean) : [];
      for (const line of lines) {
        const { id, api, req: file } = JSON.parse(line) as { id: string; api: string; req: string | null };
        const path = PATHS[api];
        if (path === undefined || file === null) continue;
        const { status, text } = await post(path, readFileSync(join(directory, file), 'utf8'));
        served += 1;
        // A response that is stored elsewhere is refused, as it should be.
        if (status !== 200 && !text.includes('previous_response_not_found'))
          problems.push(`${id}: ${status} ${text.slice(0, 200)}`);
      }
    }
    assert.deepEqual(problems, []);
    assert.ok(served > 0);
  });

  test('streams to every recorded agent', { skip: assets === null && 'no recordings here' }, async () => {
    const directory = join(assets ?? '.', 'agents');
    for (const file of readdirSync(directory).filter((name) => name.endsWith('.json'))) {
      const { method, url, body } = JSON.parse(readFileSync(join(directory, file), 'utf8')) as {
        method?: string;
        url?: string;
        body?: unknown;
      };
      if (method !== 'POST' || url === undefined) continue;
      const { status, text } = await post(url, JSON.stringify(body));
      assert.deepEqual([file, status, /^(event|data): /.test(text)], [file, 200, true]);
    }
  });
});
