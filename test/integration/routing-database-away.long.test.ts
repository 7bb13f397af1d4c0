// Postgres is away for a while (spec 4.11): a turn that this process knows keeps its model, a new one goes to the
// fallback tier without a question, and nothing waits for long. With Postgres back all is as before, and the records of
// what happened meanwhile are posted.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/storage/postgres/embedded/embedded-postgres.ts';
import { silentLog } from '../support/postgres.ts';
import { removeInstallation } from '../support/remove-installation.ts';
import {
  ROUTING_KEYS,
  type RoutedAnswer,
  type RoutingInstallation,
  startRoutingInstallation,
} from '../support/routing-installation.ts';
import { waitFor } from '../support/waiting.ts';

/** Long after every time limit of a connection to the database: what takes longer hangs. */
const HANG_MS = 60_000;
const LIGHT = '[[sim/systemone: tier=light:0.95 kind=prose correction=0]]';
const STRONG = '[[sim/systemone: tier=strong:0.95 kind=prose correction=0]]';
const user = (text: string): object => ({ role: 'user', content: text });
const TOOL_LOOP: readonly object[] = [
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'c', type: 'function', function: { name: 'run', arguments: '{}' } }],
  },
  { role: 'tool', tool_call_id: 'c', content: 'done' },
];

describe('while Postgres is away', { timeout: 4 * HANG_MS }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-test-'));
  let postgres: EmbeddedPostgres;
  let routing: RoutingInstallation;
  /** Billed from a lease, and not billed at all. */
  const conversations = ([ROUTING_KEYS.acme, ROUTING_KEYS.free] as const).map((key) => ({
    key,
    headers: { 'x-session-id': randomUUID() },
  }));
  const first = [user(`Please write a small program. ${LIGHT}`)];
  const next = [
    ...first,
    ...TOOL_LOOP,
    { role: 'assistant', content: 'Here it is.' },
    user(`Make it smaller. ${LIGHT}`),
  ];
  const meanwhile: RoutedAnswer[] = [];

  before(async () => {
    postgres = await startEmbeddedPostgres({ dataDir: directory, log: silentLog });
    routing = await startRoutingInstallation({ databaseUrl: postgres.url, clickhouse: 'away' });
    for (const { key, headers } of conversations) assert.equal((await ask(key, headers, first)).model, 'sim/small');
    process.kill(postgres.pid, 'SIGQUIT');
    await postgres.exited;
  });
  after(async () => {
    await routing?.stop();
    await postgres?.stop();
    removeInstallation(directory);
  });

  async function ask(
    key: string,
    headers: Readonly<Record<string, string>>,
    messages: readonly object[],
  ): Promise<RoutedAnswer> {
    const answer = await routing.ask({ key, headers, body: { messages, max_tokens: 20 } });
    assert.equal(answer.status, 200, answer.body);
    return answer;
  }

  test('a known turn keeps its model', { timeout: HANG_MS }, async () => {
    const asked = routing.judged().length;
    for (const { key, headers } of conversations) {
      for (const messages of [first, [...first, ...TOOL_LOOP]]) {
        const answer = await ask(key, headers, messages);
        assert.equal(answer.model, 'sim/small');
        meanwhile.push(answer);
      }
    }
    assert.equal(routing.judged().length, asked);
  });

  test('a new one goes to the fallback tier, stays there, and nobody is asked', { timeout: HANG_MS }, async () => {
    const asked = routing.judged().length;
    for (const { key, headers } of conversations) {
      for (const messages of [next, [...next, ...TOOL_LOOP]]) {
        const answer = await ask(key, headers, messages);
        assert.equal(answer.model, 'sim/large');
        meanwhile.push(answer);
      }
    }
    assert.equal(routing.judged().length, asked);
  });

  test('a request that belongs to no conversation is classified as ever', { timeout: HANG_MS }, async () => {
    const asked = routing.judged().length;
    // Too short to tell conversations apart.
    assert.equal((await ask(ROUTING_KEYS.free, {}, [user('Hm?')])).status, 200);
    assert.equal(routing.judged().length, asked + 1);
  });

  test('what would continue a response that nobody here knows is 503', { timeout: HANG_MS }, async () => {
    const body = { input: `Go on. ${STRONG}`, previous_response_id: 'resp_of_another_process' };
    assert.equal((await routing.ask({ api: 'responses', key: ROUTING_KEYS.free, body })).status, 503);
  });

  test('with Postgres back, new turns are classified, and the records tell what happened', {
    timeout: 2 * HANG_MS,
  }, async () => {
    postgres = await startEmbeddedPostgres({ dataDir: directory, log: silentLog });
    await waitFor(
      'a new conversation to be classified',
      async () => (await ask(ROUTING_KEYS.free, { 'x-session-id': randomUUID() }, first)).model,
      (model) => model === 'sim/small',
      HANG_MS,
    );
    const records = await Promise.all(meanwhile.map(({ executionId }) => routing.routeOf(executionId)));
    const known = ['classified', 'light', true];
    const fallback = (cached: boolean) => ['classifier_failed', 'strong', cached];
    assert.deepEqual(
      records.map(({ reason, tier, cached }) => [reason, tier, cached]),
      [known, known, known, known, fallback(false), fallback(true), fallback(false), fallback(true)],
    );
    // The turn before is remembered by the process itself.
    assert.equal(records[4]?.previous_model, 'sim/small');
  });
});
