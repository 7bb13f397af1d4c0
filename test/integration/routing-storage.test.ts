// Routing in the databases: turns that are claimed once and remembered, records with exact baseline costs, facts that
// say the same as the ledger.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, beforeEach, describe, test } from 'node:test';
import type { RouteDecision } from '../../src/domain/routing/decide-route.ts';
import type { ModelRoute } from '../../src/domain/routing/model-route.ts';
import { NO_COUNTS } from '../../src/domain/usage/usage.ts';
import { firstExecutionIdAt } from '../../src/platform/execution-id.ts';
import type { TerminalRecord } from '../../src/records/execution-record.ts';
import { selectRows } from '../../src/storage/clickhouse/clickhouse.ts';
import { factOf, insertFacts } from '../../src/storage/clickhouse/facts.ts';
import { readEndedExecutions } from '../../src/storage/postgres/ledger/generation-facts.ts';
import { postExecutions } from '../../src/storage/postgres/ledger/post-executions.ts';
import { registerEpoch } from '../../src/storage/postgres/ledger/wallets.ts';
import { createPostgres, type Postgres } from '../../src/storage/postgres/pool.ts';
import { readRoutedRequests } from '../../src/storage/postgres/routing/routed-requests.ts';
import {
  claimTurn,
  decideTurn,
  findTurn,
  forgetTurns,
  releaseTurn,
  type TurnClaim,
} from '../../src/storage/postgres/routing/turns.ts';
import { openTestClickHouse, type TestClickHouse } from '../support/clickhouse.ts';
import { executionStart, terminalRecord } from '../support/execution-records.ts';
import { silentLog, startTestPostgres, type TestPostgres } from '../support/postgres.ts';

let server: TestPostgres;
let clickhouse: TestClickHouse;
let postgres: Postgres;
before(async () => {
  server = await startTestPostgres();
  clickhouse = await openTestClickHouse();
  postgres = createPostgres({ url: await server.createDatabase(), log: silentLog });
});
beforeEach(() => clickhouse.clear());
after(async () => {
  await postgres?.close();
  await clickhouse?.close();
  await server?.stop();
});

const ORGANIZATION = randomUUID();

function turnOf(conversation: string, position: number | string, changes: Partial<TurnClaim> = {}): TurnClaim {
  const plain = { previousTurns: [], offersTools: true, instructions: 'main', organizationId: ORGANIZATION };
  return { conversation, turn: `${conversation}-${position}`, ...plain, ...changes };
}

function decision(model: string): RouteDecision {
  return { model, tier: 'light', reason: 'classified', confidence: 0.9 } as RouteDecision;
}

describe('turns', () => {
  test('a claim that is given up is the next one’s; a decided turn stays', async () => {
    const turn = turnOf('released', 1);
    assert.equal((await claimTurn(postgres, turn)).claimed, true);
    await releaseTurn(postgres, turn);
    assert.deepEqual(await findTurn(postgres, turn), { decision: null, claimedAgoMs: null, previous: null });
    assert.equal((await claimTurn(postgres, turn)).claimed, true);
    await decideTurn(postgres, turn, decision('model-1'));
    await releaseTurn(postgres, turn);
    assert.deepEqual((await findTurn(postgres, turn)).decision, decision('model-1'));
  });

  test('one of many that claim it has it; a decision is written once', async () => {
    const turn = turnOf('race', 1);
    const claims = await Promise.all(Array.from({ length: 20 }, () => claimTurn(postgres, turn)));
    assert.equal(claims.filter(({ claimed }) => claimed).length, 1);
    assert.ok(claims.every((claim) => claim.decision === null));
    const written = await Promise.all(
      Array.from({ length: 10 }, (_, index) => decideTurn(postgres, turn, decision(`model-${index}`))),
    );
    const winner = written.findIndex((earlier) => earlier === null);
    assert.deepEqual(
      written.filter((_, index) => index !== winner),
      Array.from({ length: 9 }, () => decision(`model-${winner}`)),
    );
    const found = await claimTurn(postgres, turn);
    assert.deepEqual([found.claimed, found.decision], [false, decision(`model-${winner}`)]);
    assert.ok((found.claimedAgoMs ?? -1) >= 0);
  });

  test('the previous one is what the history shows, else the latest of its kind that was decided', async () => {
    const side = { offersTools: false, instructions: 'title' };
    const subagent = { instructions: 'search' };
    const made: readonly [string, string | null, Partial<TurnClaim>][] = [
      ['1', 'first', {}],
      ['2', 'second', {}],
      ['undecided', null, {}],
      ['side', 'of the side request', side],
      ['sub', 'of the subagent', subagent],
    ];
    for (const [position, model, changes] of made) {
      await claimTurn(postgres, turnOf('order', position, changes));
      if (model !== null) await decideTurn(postgres, turnOf('order', position), decision(model));
    }
    const previousOf = async (changes: Partial<TurnClaim>, position = 'new') =>
      (await findTurn(postgres, turnOf('order', position, changes))).previous?.decision.model;
    const rows: readonly [string, Promise<string | undefined>, string | undefined][] = [
      ['nothing shown: the latest with the same prompt', previousOf({}), 'second'],
      ['another prompt: the latest with tools', previousOf({ instructions: 'new' }), 'of the subagent'],
      ['no tools', previousOf({ offersTools: false }), 'of the side request'],
      ['shown', previousOf({ previousTurns: ['order-1'] }), 'first'],
      ['the likelier name first', previousOf({ previousTurns: ['order-1', 'order-2'] }), 'first'],
      ['shown, unlike as it is', previousOf({ previousTurns: ['none', 'order-side'] }), 'of the side request'],
      ['shown, but not known', previousOf({ previousTurns: ['none'] }), 'second'],
      ['of an earlier turn itself', previousOf({}, '2'), 'first'],
      ['of the first', previousOf({}, '1'), undefined],
    ];
    for (const [title, found, expected] of rows) assert.equal(await found, expected, title);
    assert.equal((await findTurn(postgres, turnOf('other', 9))).previous, null);
  });

  test('are forgotten by age', async () => {
    await claimTurn(postgres, turnOf('old', 1));
    await postgres.query(`UPDATE routing_turns SET claimed_at = now() - interval '40 days' WHERE conversation = 'old'`);
    assert.equal(await forgetTurns(postgres, new Date(Date.now() - 30 * 86_400_000)), 1);
  });
});

const ROUTE: ModelRoute = {
  requested: 'service/auto',
  tier: 'light',
  classified_tier: 'light',
  reason: 'low_confidence_escalated',
  confidence: 0.55,
  cached: false,
  task: 'code',
  picked_by: 'strength',
  correction: true,
  previous_model: 'a',
  previous_tier: 'strong',
  sticky: true,
  baseline_model: 'large',
  policy: 'default',
  policy_version: 7,
  tier_rank: 1,
  escalated: true,
  rejected: [
    { model: 'x', tier: 'light', reason: 'not_permitted' },
    { model: 'y', tier: 'strong', reason: 'context_too_small' },
  ],
  distribution: { light: 0.55, strong: 0.45 },
  correction_probability: 0.83,
  classifier: { model: 'judge', input_tokens: 431, cost_usd: '0.000018102', latency_ms: 211 },
  session: 'session-hash',
  conversation: 'sizes',
  turn: 'sizes-1',
  safety: 'signed_reasoning',
};

async function post(...terminals: TerminalRecord[]): Promise<void> {
  const epoch = await registerEpoch(postgres, { machine: 'test', pid: 1, kind: 'gateway' });
  await postgres.transaction((client) =>
    postExecutions(client, { epoch, segment: 1, fromOffset: 0, toOffset: 1, records: terminals }),
  );
}

describe('records', () => {
  test(
    'a route goes through the ledger and back, and to the facts, with its baseline exact to the ' + 'pico-dollar',
    async () => {
      const start = executionStart({ route: ROUTE, requestedModel: 'service/auto' });
      const plain = terminalRecord(executionStart());
      const routed = terminalRecord(start, { baselineCost: '12345678901234567890123', truncated: true });
      await post(plain, routed, terminalRecord(executionStart({ route: { ...ROUTE, rejected: [] } })));
      const { rows } = await postgres.query<{ model_route: object | null }>(
        'SELECT model_route FROM generations WHERE id = ANY ($1) ORDER BY model_route IS NULL',
        [[plain.id, routed.id]],
      );
      assert.deepEqual(
        rows.map(({ model_route }) => model_route),
        [{ ...ROUTE, baseline_cost_usd: '12345678901.234567890123' }, null],
      );
      const window = {
        fromMs: routed.admittedAtMs - 60_000,
        untilMs: routed.admittedAtMs + 60_000,
        endedBeforeMs: routed.endedAtMs + 60_000,
      };
      const read = await readEndedExecutions(postgres, window);
      const found = read.find(({ id }) => id === routed.id);
      assert.deepEqual([found?.route, found?.baselineCost], [ROUTE, '12345678901234567890123']);
      assert.equal(read.find(({ id }) => id === plain.id)?.route ?? null, null);
      assert.deepEqual(
        [plain, routed].map(({ id }) => read.find((record) => record.id === id)?.truncated ?? false),
        [false, true],
      );

      // From the spool or from the ledger: the fact is the same.
      for (const [batch, records] of [
        ['1:1:0-1', [plain, routed]],
        ['1:1:1-2', read.filter(({ id }) => id === plain.id || id === routed.id)],
      ] as const) {
        await clickhouse.clear();
        await insertFacts(clickhouse.client, records.map(factOf), batch);
        const facts = await selectRows<Record<string, unknown>>(
          clickhouse.client,
          `SELECT routed, truncated, route_tier, route_tier_rank, route_classified_tier, route_reason, route_confidence,
          route_cached, route_task, route_picked_by,
                route_escalated, route_correction, route_correction_probability, route_previous_model,
                  route_previous_tier, route_sticky, route_safety,
                route_baseline_model, toString(route_baseline_cost) AS route_baseline_cost, route_policy,
                  route_policy_version, route_session, route_turn,
                route_rejected_models, route_rejected_tiers, route_rejected_reasons, route_distribution,
                classifier_model, toString(classifier_input_tokens) AS classifier_input_tokens,
                  toString(classifier_cost) AS classifier_cost, classifier_latency_ms
           FROM request_facts FINAL ORDER BY routed DESC`,
        );
        assert.deepEqual(facts[0], {
          routed: true,
          truncated: true,
          route_tier: 'light',
          route_tier_rank: 1,
          route_classified_tier: 'light',
          route_reason: 'low_confidence_escalated',
          route_confidence: 0.55,
          route_cached: false,
          route_task: 'code',
          route_picked_by: 'strength',
          route_escalated: true,
          route_correction: true,
          route_correction_probability: 0.83,
          route_previous_model: 'a',
          route_previous_tier: 'strong',
          route_sticky: true,
          route_safety: 'signed_reasoning',
          route_baseline_model: 'large',
          route_baseline_cost: '12345678901.234567890123',
          route_policy: 'default',
          route_policy_version: 7,
          route_session: 'session-hash',
          route_turn: 'sizes-1',
          route_rejected_models: ['x', 'y'],
          route_rejected_tiers: ['light', 'strong'],
          route_rejected_reasons: ['not_permitted', 'context_too_small'],
          route_distribution: { light: 0.55, strong: 0.45 },
          classifier_model: 'judge',
          classifier_input_tokens: '431',
          classifier_cost: '0.000018102',
          classifier_latency_ms: 211,
        });
        const {
          routed: isRouted,
          truncated,
          route_tier: tier,
          route_baseline_cost: baseline,
          route_rejected_models: rejected,
          classifier_cost: cost,
        } = facts[1] ?? {};
        assert.deepEqual([isRouted, truncated, tier, baseline, rejected, cost], [false, false, '', null, [], null]);
      }
    },
  );

  test('an execution whose process died keeps its route', async () => {
    const start = executionStart({ route: ROUTE });
    const epoch = await registerEpoch(postgres, { machine: 'test', pid: 1, kind: 'gateway' });
    await postgres.transaction((client) =>
      postExecutions(client, {
        epoch,
        segment: 1,
        fromOffset: 0,
        toOffset: 1,
        records: [{ type: 'admitted', ...start }],
      }),
    );
    const { rows } = await postgres.query('SELECT model_route FROM generations WHERE id = $1', [start.id]);
    assert.deepEqual(rows, [{ model_route: ROUTE }]);
  });

  test('one that was refused behind its route is not replayed: it was served by nothing', async () => {
    const [served, refused] = ['sim/served', 'sim/refused'].map((model) => executionStart({ route: ROUTE, model }));
    assert.ok(served !== undefined && refused !== undefined);
    await post(terminalRecord(served), terminalRecord(refused, { outcome: 'refused', billingStatus: 'not_billed' }));
    const replayed: string[] = [];
    const all = { after: firstExecutionIdAt(0), organizationId: null, pageSize: 100 };
    for await (const { model } of readRoutedRequests(postgres, all)) replayed.push(model);
    assert.deepEqual(
      ['sim/served', 'sim/refused'].map((model) => replayed.includes(model)),
      [true, false],
    );
  });

  test('the size of a conversation is what its largest request reported', async () => {
    const turn = turnOf('sizes', 1);
    await claimTurn(postgres, turn);
    await decideTurn(postgres, turn, decision('a'));
    const sized = (requestBytes: number, inputTokens: number, changes: Partial<TerminalRecord> = {}) =>
      terminalRecord(executionStart({ route: ROUTE, requestBytes }), {
        usage: { ...NO_COUNTS, inputTokens, outputTokens: 5 },
        ...changes,
      });
    const remembered = async () => {
      const { previous } = await findTurn(postgres, turnOf('sizes', 2));
      return [previous?.inputTokens, previous?.requestBytes];
    };
    assert.deepEqual(await remembered(), [null, null]);
    await post(sized(4_000, 1_000), sized(9_000, 2_200), sized(6_000, 1_500));
    assert.deepEqual(await remembered(), [2_200, 9_000]);
    await post(
      sized(8_000, 9),
      sized(20_000, 0, { api: 'count_tokens' }),
      sized(30_000, 7, { usageSource: 'counted' }),
    );
    assert.deepEqual(await remembered(), [2_200, 9_000]);
  });
});
