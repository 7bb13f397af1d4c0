// The two ways in which the routing report keeps what its quantiles are of give the same figures, those of the nearest
// rank, for every number of requests.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { QuantileStates } from '../../src/storage/clickhouse/reports/metrics.ts';
import type { ReportParams } from '../../src/storage/clickhouse/reports/report-params.ts';
import { type RoutingGroups, selectRoutingGroups } from '../../src/storage/clickhouse/reports/routing-groups.ts';
import { openTestClickHouse, type TestClickHouse } from '../support/clickhouse.ts';

/** A group of each size up to this, so that levels meet ranks exactly and do not. */
const GROUPS = 140;
const FROM_MS = Date.UTC(2026, 9, 1);
const QUESTION: ReportParams = {
  scope: { organizationId: null },
  filters: {},
  window: { fromMs: FROM_MS, untilMs: FROM_MS + 86_400_000, granularity: 'day', timeZone: 'UTC' },
};

/** Some come several times, and some are not known. */
function latencyOf(group: number, index: number): number | null {
  const value = (index * 7_919 + group * 104_729) % 257;
  return value % 11 === 0 ? null : value;
}

let clickhouse: TestClickHouse;
before(async () => {
  clickhouse = await openTestClickHouse();
  const rows = Array.from({ length: GROUPS }, (_, group) =>
    Array.from({ length: group + 1 }, (_, index) => ({
      id: `00000000-0000-4000-8000-${String(group * 1_000 + index).padStart(12, '0')}`,
      version: 2,
      organization_id: '00000000-0000-4000-9000-000000000000',
      api_key_id: '00000000-0000-4000-a000-000000000000',
      model: `maker/model-${group % 3}`,
      admitted_at: FROM_MS + index,
      latency_ms: latencyOf(group, index),
      ttft_ms: index,
      routed: true,
      route_task: `task-${group}`,
      // Many cells to a group.
      route_tier: `tier-${index % 5}`,
    })),
  ).flat();
  await clickhouse.client.insert({ table: 'request_facts', values: rows, format: 'JSONEachRow' });
});
after(() => clickhouse.close());

/** By the group's name. */
function quantilesOf(groups: RoutingGroups): Map<string, object> {
  const all = [...groups.totals, ...groups.tiers, ...groups.models, ...groups.tasks, ...groups.taskModels];
  return new Map(
    all.map((row) => [
      `${row.grouped_by} ${row.tier} ${row.ranked_model} ${row.task} ${row.served}`,
      [row.m_latency, row.m_latency_known, row.m_ttft],
    ]),
  );
}

function nearestRank(values: readonly (number | null)[], level: number): number | undefined {
  const known = values.filter((value) => value !== null).toSorted((a, b) => a - b);
  return known[Math.ceil(known.length * level) - 1];
}

for (const states of ['every value', 'different values'] as const satisfies readonly QuantileStates[]) {
  test(`${states}: the nearest rank of each group`, async () => {
    const { tasks } = await selectRoutingGroups(clickhouse.client, QUESTION, states);
    assert.equal(tasks.length, GROUPS);
    for (const row of tasks) {
      const group = Number(row.task.replace('task-', ''));
      const latencies = Array.from({ length: group + 1 }, (_, index) => latencyOf(group, index));
      const ttfts = latencies.map((_, index) => index);
      assert.equal(row.m_requests, group + 1);
      assert.equal(row.m_latency_known, latencies.filter((value) => value !== null).length);
      if (row.m_latency_known > 0)
        assert.deepEqual(row.m_latency, [nearestRank(latencies, 0.5), nearestRank(latencies, 0.95)], row.task);
      assert.deepEqual(row.m_ttft, [nearestRank(ttfts, 0.5), nearestRank(ttfts, 0.95)], row.task);
    }
  });
}

test('both are the same in every group', async () => {
  const every = quantilesOf(await selectRoutingGroups(clickhouse.client, QUESTION, 'every value'));
  const different = quantilesOf(await selectRoutingGroups(clickhouse.client, QUESTION, 'different values'));
  assert.deepEqual(every, different);
  assert.ok(every.size > 2 * GROUPS);
});
