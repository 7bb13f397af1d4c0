// Reports through a whole installation: requests sent, facts shipped, and every report equals the simulated provider's
// own log at the price list. Then ClickHouse stops: reports are 503, generation goes on, and afterwards the reports are
// the ledger's.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { CallEnd } from '../../src/simulator/call-log.ts';
import { selectRows } from '../../src/storage/clickhouse/clickhouse.ts';
import { openTestClickHouse, type TestClickHouse } from '../support/clickhouse.ts';
import { type ClickHouseServer, startClickHouseServer } from '../support/clickhouse-server.ts';
import { type HttpAnswer, httpCall } from '../support/http-call.ts';
import { ask as askApi, organizationIdOf } from '../support/identity-world.ts';
import {
  ROUTING_ADMIN_TOKEN,
  ROUTING_KEYS,
  ROUTING_PRICES,
  type RoutedAnswer,
  type RoutingInstallation,
  startRoutingInstallation,
} from '../support/routing-installation.ts';
import { decimalOfPico } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

type Json = Readonly<Record<string, unknown>>;
type Reader = { readonly token: string };

/** The provider's names and ours, and what a million tokens of each cost. */
const MODELS: Readonly<
  Record<string, { readonly id: string; readonly price: { readonly input: bigint; readonly output: bigint } }>
> = {
  'small-1': { id: 'sim/small', price: ROUTING_PRICES.small },
  'claude-1': { id: 'sim/claude', price: ROUTING_PRICES.small },
  'coder-1': { id: 'sim/coder', price: ROUTING_PRICES.small },
  'large-1': { id: 'sim/large', price: ROUTING_PRICES.large },
};

/** What the provider says it served, as a summary would. */
function expectedUsage(calls: readonly CallEnd[]): Json {
  const usageOf = (of: readonly CallEnd[]) => ({
    requests: of.length,
    tokens_prompt: sum(of, ({ promptTokens }) => promptTokens),
    tokens_completion: sum(of, ({ completionTokens }) => completionTokens),
    cost: decimalOfPico(of.reduce((total, call) => total + costOf(call), 0n)),
  });
  const models = [...new Set(calls.map(({ model }) => modelOf(model).id))];
  const byModel = models.map((model) => ({
    model,
    ...usageOf(calls.filter((call) => modelOf(call.model).id === model)),
  }));
  return {
    ...usageOf(calls),
    by_model: byModel.toSorted((a, b) => b.requests - a.requests || (a.model < b.model ? -1 : 1)),
  };
}

/** Whose usage a person reads: that of the organization's owner. */
const OF_OWNER = {
  organization: 'acme',
  team: null,
  team_id: null,
  user: 'o@acme.test',
  api_key: null,
  api_key_id: null,
};

function modelOf(name: string | null) {
  return MODELS[name ?? ''] ?? assert.fail(`the provider served ${name}`);
}

function costOf({ model, promptTokens, completionTokens }: CallEnd): bigint {
  const { input, output } = modelOf(model).price;
  return BigInt(promptTokens) * input + BigInt(completionTokens) * output;
}

function sum(calls: readonly CallEnd[], read: (call: CallEnd) => number): number {
  return calls.reduce((total, call) => total + read(call), 0);
}

describe('reports through the real path', { timeout: 280_000 }, () => {
  let engine: TestClickHouse;
  let clickhouse: ClickHouseServer;
  let routing: RoutingInstallation;
  let owner: Reader;
  const key: Reader = { token: ROUTING_KEYS.acme };
  const platform: Reader = { token: ROUTING_ADMIN_TOKEN };
  const sent: RoutedAnswer[] = [];

  before(async () => {
    engine = await openTestClickHouse();
    clickhouse = await startClickHouseServer(engine.client);
    routing = await startRoutingInstallation({ gatewayProcesses: 2, clickhouseUrl: clickhouse.url });
    const acme = await organizationIdOf(routing.tollgate.url, platform.token, 'acme');
    const [first] = (await json(platform, `/v1/admin/organizations/${acme}/members`))['data'] as { user_id: string }[];
    const tokens = `/v1/admin/organizations/${acme}/members/${first?.user_id ?? ''}/tokens`;
    owner = {
      token: String(
        (await askApi(routing.tollgate.url, platform.token, 'POST', tokens, { name: 'test' }, 201))['secret'],
      ),
    };
  });
  after(async () => {
    await routing?.stop();
    await clickhouse?.close();
    await engine?.close();
  });

  function get({ token }: Reader, path: string): Promise<HttpAnswer> {
    return httpCall(`${routing.tollgate.url}${path}`, { headers: { authorization: `Bearer ${token}` } });
  }

  async function json(reader: Reader, path: string): Promise<Json> {
    const answer = await get(reader, path);
    assert.equal(answer.status, 200, `${path}: ${answer.body.toString()}`);
    return JSON.parse(answer.body.toString()) as Json;
  }

  async function linesOf(reader: Reader, path: string): Promise<string[]> {
    const answer = await get(reader, path);
    assert.deepEqual([answer.status, answer.complete], [200, true], `${path}: ${answer.body.toString()}`);
    return answer.body.toString().trimEnd().split('\r\n');
  }

  async function ask(call: Parameters<RoutingInstallation['ask']>[0]): Promise<void> {
    const answer = await routing.ask(call);
    assert.equal(answer.status, 200, answer.body);
    sent.push(answer);
  }

  /** Of every API, streamed and not, named and routed. */
  async function serve(rounds: number): Promise<void> {
    for (let round = 0; round < rounds; round += 1) {
      const content =
        `Question ${sent.length}: what is it? [[sim/text: tokens=${5 + round}]] [[sim/systemone: ` +
        `tier=${round % 2 === 0 ? 'light' : 'strong'} kind=prose]]`;
      const messages = [{ role: 'user', content }];
      const headers = { 'x-session-id': randomUUID(), 'x-service-tag': `round-${round % 3}` };
      // Every fourth round ends at its output limit.
      const limit = round % 4 === 0 ? 3 : 50;
      await Promise.all([
        ask({ body: { model: 'sim/small', messages, max_tokens: limit }, headers }),
        ask({
          body: {
            model: 'sim/large',
            messages,
            max_tokens: limit,
            stream: true,
            stream_options: { include_usage: true },
          },
        }),
        ask({ api: 'responses', body: { model: 'sim/small', input: content, max_output_tokens: limit } }),
        ask({ api: 'messages', body: { model: 'sim/claude', messages, max_tokens: limit, stream: true } }),
        ask({ body: { messages, max_tokens: limit }, headers }),
      ]);
    }
  }

  function served(): CallEnd[] {
    return routing.provider.ends().filter(({ api }) => api !== 'systemone');
  }

  const requestsAt = async (reader: Reader, path: string) => {
    const answer = await get(reader, path);
    return answer.status === 200
      ? ((JSON.parse(answer.body.toString()) as { data: Json }).data['requests'] as number)
      : answer.status;
  };
  const followed = () =>
    waitFor(
      'the facts to arrive',
      () => requestsAt(platform, '/v1/admin/usage'),
      (count) => count === sent.length,
      60_000,
    );

  test('the summary is what the provider served, at the price list', async () => {
    await serve(8);
    await followed();
    const {
      currency,
      start_date: _,
      end_date: __,
      time_zone: ___,
      organization_id: ____,
      user_id: _____,
      ...usage
    } = (await json(key, '/v1/usage/me'))['data'] as Json;
    assert.deepEqual([currency, usage], ['USD', { ...OF_OWNER, ...expectedUsage(served()) }]);
    for (const [reader, path] of [
      [owner, '/v1/usage/me'],
      [owner, '/v1/usage/active-org'],
      [owner, '/v1/admin/active-org/usage'],
      [platform, '/v1/admin/usage'],
    ] as const) {
      const { cost, requests } = (await json(reader, path))['data'] as Json;
      assert.deepEqual([cost, requests], [usage['cost'], usage['requests']], path);
    }
    const days = (await json(key, '/v1/usage/me/daily'))['data'] as Json[];
    assert.equal(
      days.reduce((total, day) => total + Number(day['requests']), 0),
      sent.length,
    );
  });

  test('the listing has every execution that was answered, and its tokens', async () => {
    const { data, next_cursor } = await json(owner, '/v1/admin/active-org/usage/requests?limit=100');
    const entries = data as Json[];
    assert.deepEqual([entries.length, next_cursor], [sent.length, null]);
    assert.deepEqual(new Set(entries.map(({ id }) => id)), new Set(sent.map(({ executionId }) => executionId)));
    const tokens = (read: (one: Json) => unknown[]) =>
      entries.map((entry) => JSON.stringify(read(entry))).toSorted(byText);
    assert.deepEqual(
      tokens(({ model, tokens_prompt, tokens_completion, streamed }) => [
        model,
        tokens_prompt,
        tokens_completion,
        streamed,
      ]),
      served()
        .map(({ model, promptTokens, completionTokens, stream }) =>
          JSON.stringify([modelOf(model).id, promptTokens, completionTokens, stream]),
        )
        .toSorted(byText),
    );
    const tagged = (await json(key, '/v1/usage/me/requests?tag=round-1&limit=100'))['data'] as Json[];
    assert.ok(
      tagged.length === 6 && tagged.every(({ tags }) => JSON.stringify(tags) === '["round-1"]'),
      `${tagged.length}`,
    );
  });

  test('what ended at its output limit is known, in the words of every API', async () => {
    const facts = await selectRows(
      engine.client,
      `SELECT api, streamed, toUInt32(count()) AS requests, toUInt32(countIf(truncated)) AS truncated
        FROM request_facts FINAL GROUP BY api, streamed ORDER BY api, streamed`,
    );
    assert.deepEqual(facts, [
      { api: 'chat_completions', streamed: false, requests: 16, truncated: 4 },
      { api: 'chat_completions', streamed: true, requests: 8, truncated: 2 },
      { api: 'messages', streamed: true, requests: 8, truncated: 2 },
      { api: 'responses', streamed: false, requests: 8, truncated: 2 },
    ]);
  });

  test('the routing report is what was routed, and the classifier’s calls the provider’s', async () => {
    const routed = sent.filter(({ model }) => model !== null);
    const judged = routing.provider.ends().filter(({ api }) => api === 'systemone');
    for (const [reader, path, showsCorrections] of [
      [key, '/v1/usage/me/analytics/routing', true],
      [owner, '/v1/usage/active-org/analytics/routing', false],
      [owner, '/v1/admin/active-org/usage/analytics/routing', true],
      [platform, '/v1/admin/analytics/routing', false],
    ] as const) {
      const report = await json(reader, path);
      const totals = report['totals'] as Record<string, Json>;
      assert.deepEqual([totals['requests'], totals['all_requests']], [routed.length, sent.length], path);
      assert.equal(totals['classifier']?.['calls'], judged.length);
      assert.equal(
        totals['classifier']?.['input_tokens'],
        sum(judged, ({ promptTokens }) => promptTokens),
      );
      const counts = Object.fromEntries((report['by_model'] as Json[]).map(({ model, requests }) => [model, requests]));
      assert.deepEqual(counts, countBy(routed.map(({ model }) => String(model))), path);
      assert.equal(report['recent_corrections'] !== null, showsCorrections, path);
      assert.deepEqual([totals['truncated'], totals['truncation_rate']], [2, 0.25], path);
    }
    const tiers = (await json(owner, '/v1/admin/active-org/usage/analytics/routing'))['by_tier'] as Json[];
    assert.deepEqual(Object.fromEntries(tiers.map(({ tier, requests }) => [tier, requests])), { light: 4, strong: 4 });
    const light = (await json(key, '/v1/usage/me/requests?route_tier=light'))['data'] as Json[];
    assert.equal(light.length, 4);
  });

  test('the exports have the same', async () => {
    const csv = await linesOf(owner, '/v1/admin/active-org/usage/requests?format=csv');
    assert.equal(csv.length, sent.length + 1);
    const [head = '', ...costs] = await linesOf(platform, '/v1/admin/usage/export/focus');
    const column = head.split(',').indexOf('BilledCost');
    const billed = costs.reduce((total, line) => total + picoOf(line.split(',')[column] ?? ''), 0n);
    assert.equal(decimalOfPico(billed), expectedUsage(served())['cost']);
  });

  test(
    'while ClickHouse is stopped reports are 503 and generation goes on; afterwards the counts are the ' + 'ledger’s',
    async () => {
      await clickhouse.stopListening();
      await serve(3);
      for (const [reader, path] of [
        [key, '/v1/usage/me'],
        [key, '/v1/usage/me/requests'],
        [key, '/v1/usage/me/requests?format=csv'],
        [key, '/v1/usage/me/analytics/routing'],
        [owner, '/v1/admin/active-org/usage/daily'],
        [platform, '/v1/admin/usage/export/focus'],
      ] as const) {
        const answer = await get(reader, path);
        assert.equal(answer.status, 503, `${path}: ${answer.body.toString()}`);
        const { request_id: requestId, ...said } = JSON.parse(answer.body.toString()) as Json;
        assert.deepEqual(Object.keys(said), ['code', 'error', 'message']);
        assert.equal(requestId, answer.headers['x-request-id']);
        assert.ok(Number(answer.headers['retry-after']) > 0);
      }
      await clickhouse.listenAgain();
      await followed();
      const { rows } = await routing.postgres.query<{ requests: string; charge: string }>(
        'SELECT count(*)::text AS requests, sum(charge)::text AS charge FROM generations',
      );
      const { requests, cost } = (await json(platform, '/v1/admin/usage'))['data'] as Json;
      assert.deepEqual([String(requests), cost], [rows[0]?.requests, decimalOfPico(BigInt(rows[0]?.charge ?? 0))]);
      assert.equal(cost, expectedUsage(served())['cost']);
    },
  );

  test('while jobs is dead reports are 503, and are there again with its successor', async () => {
    const pid = routing.processes?.jobsPid();
    assert.ok(pid !== undefined);
    process.kill(pid, 'SIGSTOP');
    await serve(1);
    process.kill(pid, 'SIGKILL');
    const answer = await waitFor(
      'the report to be refused',
      () => get(key, '/v1/usage/me'),
      ({ status }) => status !== 200,
    );
    assert.equal(answer.status, 503, answer.body.toString());
    await followed();
    assert.notEqual(routing.processes?.jobsPid(), pid);
  });
});

function byText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function countBy(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

function picoOf(dollars: string): bigint {
  const [whole = '0', fraction = ''] = dollars.split('.');
  return BigInt(whole) * 10n ** 12n + BigInt(fraction.padEnd(12, '0'));
}
