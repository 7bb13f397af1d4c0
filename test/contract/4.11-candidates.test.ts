// Spec 4.11, 3.2: what is too large for every candidate, a tier that access policy took away, and a continuation in the
// report.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { callRoute } from '../support/generation-routes.ts';
import {
  ROUTING_ADMIN_TOKEN,
  ROUTING_KEYS,
  type RoutedCall,
  type RoutingInstallation,
  startRoutingInstallation,
} from '../support/routing-installation.ts';
import { waitFor } from '../support/waiting.ts';

const user = (text: string): object => ({ role: 'user', content: text });
const judged = (words: string): string => `[[sim/systemone: ${words}]]`;
const LIGHT = judged('tier=light:0.95 kind=prose');
const STRONG = judged('tier=strong:0.95 kind=prose');
/** The candidates read 200,000 tokens each. */
const TOO_LONG = 'words and words '.repeat(60_000);
const LOOP = [
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'c', type: 'function', function: { name: 'run', arguments: '{}' } }],
  },
  { role: 'tool', tool_call_id: 'c', content: TOO_LONG },
];

let routing: RoutingInstallation;
before(async () => {
  routing = await startRoutingInstallation();
  // Access is judged by what the credential is known for, so it is set before its first use.
  await routing.postgres.query(`UPDATE organizations SET platform_allowed_models = '{sim/large}' WHERE slug = 'local'`);
});
after(() => routing?.stop());

const session = (): Record<string, string> => ({ 'x-session-id': randomUUID() });

describe('a conversation that is too long for every candidate', () => {
  const refused: readonly [NonNullable<RoutedCall['api']>, object][] = [
    ['chat_completions', { messages: [user(TOO_LONG)] }],
    ['responses', { input: TOO_LONG }],
    ['messages', { messages: [user(TOO_LONG)] }],
    ['chat_completions', { messages: [{ role: 'system', content: TOO_LONG }] }],
  ];
  for (const [api, body] of refused) {
    test(`${api}: 503 that says so, and nobody is asked`, async () => {
      const before = routing.upstream.requests.length;
      const answer = await routing.ask({ api, headers: session(), body });
      assert.equal(answer.status, 503, answer.body);
      assert.match(answer.body, /too long for every model that auto routing chooses from/);
      assert.deepEqual([answer.headers['x-should-retry'], answer.headers['retry-after']], ['false', undefined]);
      assert.equal(routing.upstream.requests.length, before);
    });
  }

  const served: readonly [string, RoutedCall][] = [
    ['a token count tells how long it is', { api: 'count_tokens', body: { messages: [user(TOO_LONG)] } }],
    [
      'an encoded attachment is no text',
      {
        body: {
          messages: [
            {
              role: 'user',
              content: [
                { type: 'text', text: 'What is it?' },
                { type: 'image_url', image_url: { url: `data:image/png;base64,${'iVBORw0K'.repeat(120_000)}` } },
              ],
            },
          ],
        },
      },
    ],
  ];
  for (const [title, call] of served) {
    test(title, async () => {
      const answer = await routing.ask({ key: ROUTING_KEYS.free, headers: session(), ...call });
      assert.equal(answer.status, 200, answer.body.slice(0, 300));
    });
  }

  test('a turn that has a model keeps it, and the next one is refused', async () => {
    const headers = session();
    const ask = (messages: readonly object[]) => routing.ask({ key: ROUTING_KEYS.free, headers, body: { messages } });
    const first = user(`Read the book. ${LIGHT}`);
    assert.equal((await ask([first])).model, 'sim/small');
    const grown = await ask([first, ...LOOP]);
    assert.deepEqual([grown.status, grown.model], [200, 'sim/small']);
    const next = await ask([first, ...LOOP, { role: 'assistant', content: 'Read.' }, user('And now?')]);
    assert.equal(next.status, 503, next.body.slice(0, 300));
  });
});

test('a tier that access policy took away says so', async () => {
  const key = ROUTING_KEYS.local;
  const routeOf = async (words: string) => {
    const answer = await routing.ask({
      key,
      headers: session(),
      body: { messages: [user(`Tell me a joke. ${words}`)] },
    });
    assert.equal(answer.model, 'sim/large', answer.body);
    return routing.routeOf(answer.executionId);
  };
  const taken = await routeOf(LIGHT);
  assert.deepEqual([taken.reason, taken.classified_tier, taken.tier], ['tier_not_permitted', 'light', 'strong']);
  assert.deepEqual(
    new Set(taken.rejected.map(({ tier, reason }) => `${tier} ${reason}`)),
    new Set(['light not_permitted']),
  );
  assert.equal((await routeOf(STRONG)).reason, 'classified');
});

test('a continuation that a person wrote counts as a follow-up, once', async () => {
  const key = ROUTING_KEYS.acme;
  const ask = async (body: object) => {
    const answer = await routing.ask({ api: 'responses', key, body });
    assert.equal(answer.status, 200, answer.body);
    return JSON.parse(answer.body) as { id: string };
  };
  const first = await ask({ input: `Think about the sea. ${STRONG}` });
  const second = await ask({ input: 'And now the lakes.', previous_response_id: first.id });
  const result = [{ type: 'function_call_output', call_id: 'call_1', output: 'done' }];
  await ask({ input: result, previous_response_id: second.id });
  const read = async () => {
    const answer = await callRoute(`${routing.tollgate.url}/v1/admin/analytics/routing`, {
      method: 'GET',
      key: ROUTING_ADMIN_TOKEN,
    });
    assert.equal(answer.status, 200, answer.body);
    return JSON.parse(answer.body) as {
      reasons: { reason: string; requests: number }[];
      totals: { sessions: { follow_ups: number } };
      by_previous_tier: { previous_tier: string; follow_ups: number }[];
    };
  };
  const report = await waitFor('the report to have them', read, ({ reasons }) =>
    reasons.some(({ reason, requests }) => reason === 'continuation' && requests === 2),
  );
  assert.equal(report.totals.sessions.follow_ups, 1);
  assert.deepEqual(
    report.by_previous_tier.map(({ previous_tier, follow_ups }) => [previous_tier, follow_ups]),
    [['strong', 1]],
  );
});
