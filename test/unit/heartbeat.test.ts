// The beats of a process: when each counts, that nothing is counted twice, and a database that is away.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { LoopDelay } from '../../src/platform/event-loop/loop-delay.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import type { Postgres } from '../../src/storage/postgres/pool.ts';
import { Heartbeat } from '../../src/storage/postgres/processes/heartbeat.ts';
import { silentLog } from '../support/silent-log.ts';

const START_MS = Date.parse('2026-11-26T12:00:02Z');

function heart(query: (values: readonly unknown[]) => Promise<never[]>) {
  const metrics = new MetricsRegistry();
  const requests = metrics.counter('tollgate_requests_total', 'x', ['api', 'status_class']).labels('chat', '2xx');
  let nowMs = START_MS;
  const warnings: string[] = [];
  const log = { ...silentLog, warn: (_: object, text: string) => void warnings.push(text) } as typeof silentLog;
  const postgres = {
    query: async (_: unknown, values: readonly unknown[] = []) => ({ rows: await query(values), rowCount: 0 }),
  } as Partial<Postgres> as Postgres;
  const clock = { nowMs: () => nowMs, monotonicMs: () => nowMs };
  const parts = {
    postgres,
    kind: 'gateway',
    epoch: 7,
    metrics,
    loopDelay: new LoopDelay('gateway'),
    clock,
    log,
  } as const;
  return { heartbeat: new Heartbeat(parts), requests, warnings, pass: (ms: number) => (nowMs += ms) };
}

describe('a heartbeat', () => {
  test('writes at once what was counted, and at the end what was counted since, as the next beat', async () => {
    const beats: { at: string; counts: unknown; isLast: unknown }[] = [];
    const { heartbeat, requests, pass } = heart(async (values) => {
      const [atMs, counts, isLast] = [values[0] as number, values[7], values[9]];
      beats.push({ at: new Date(atMs).toISOString().slice(11, 19), counts, isLast });
      return [];
    });
    requests.increment(3);
    heartbeat.start();
    requests.increment();
    pass(400);
    await heartbeat.stop();
    assert.deepEqual(beats, [
      { at: '12:00:00', counts: { '["requests","2xx"]': 3 }, isLast: false },
      { at: '12:00:05', counts: { '["requests","2xx"]': 1 }, isLast: true },
    ]);
  });

  test('a database that is away is said once, and holds up no end', async () => {
    const away = heart(async () => {
      throw new Error('nobody there');
    });
    away.heartbeat.start();
    await new Promise(setImmediate);
    await away.heartbeat.stop();
    assert.deepEqual(away.warnings, ['the beat of this process could not be written']);
    const frozen = heart(() => new Promise(() => undefined));
    frozen.heartbeat.start();
    await frozen.heartbeat.stop();
    assert.deepEqual(frozen.warnings, []);
  });
});
