// What processes counted, taken out of their metrics, added up over processes and beats, and made into percentiles.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isSilent, liveView } from '../../src/domain/processes/live-figures.ts';
import { countKey, countsBetween, gaugesOf, SAMPLED, totalsOf } from '../../src/domain/processes/process-sample.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';

const SECOND_MS = 1_000;

describe('a sample of a process', () => {
  test('has what grew since the last one, and of labels only those that are told apart', () => {
    const metrics = new MetricsRegistry();
    const requests = metrics.counter('tollgate_requests_total', 'x', ['api', 'status_class']);
    const latency = metrics.histogram('tollgate_request_duration_seconds', 'x', [0.1, 1], ['api']);
    requests.labels('chat', '2xx').increment(5);
    const before = totalsOf(metrics.snapshot(SAMPLED));
    requests.labels('chat', '2xx').increment(2);
    requests.labels('messages', '2xx').increment();
    latency.labels('chat').observe(0.5);
    latency.labels('messages').observe(7);
    assert.deepEqual(countsBetween(before, totalsOf(metrics.snapshot(SAMPLED))), {
      [countKey('requests', '2xx')]: 3,
      [countKey('latency', '0.1', '1')]: 1,
      [countKey('latency', '1', 'Infinity')]: 1,
    });
  });

  test('reads no other metric, and only the gauges that the process has', () => {
    const metrics = new MetricsRegistry();
    metrics.gauge('tollgate_event_loop_delay_max_seconds', 'x', { read: () => assert.fail('read for others') });
    metrics.gauge('tollgate_inflight', 'x', { read: () => 4 });
    metrics
      .gauge('tollgate_spool_lag_bytes', 'x', { labelNames: ['destination'] })
      .labels('clickhouse')
      .set(9);
    assert.deepEqual(gaugesOf(metrics.snapshot(SAMPLED)), { in_flight: 4, unreported_bytes: 9 });
  });
});

describe('live figures', () => {
  const NOW_MS = Date.parse('2026-11-26T12:00:09Z');
  const beat = (time: string, counts: Readonly<Record<string, number>>) => ({
    atMs: Date.parse(`2026-11-26T${time}Z`),
    counts: new Map(Object.entries(counts)),
  });

  test('the beat that is being written is left out, older ones are in the window alone', () => {
    const requests = countKey('requests', '2xx');
    const view = liveView(
      [
        beat('12:00:10', { [requests]: 1_000 }),
        beat('12:00:05', {
          [requests]: 10,
          [countKey('requests', '5xx')]: 2,
          [countKey('requests', 'none')]: 1,
          [countKey('requests', 'left')]: 4,
        }),
        beat('11:59:10', { [requests]: 47 }),
        beat('11:59:05', { [requests]: 100, [countKey('refusals', 'rate_limited')]: 6 }),
        beat('11:54:00', { [requests]: 10_000, [countKey('refusals', 'rate_limited')]: 1 }),
      ],
      NOW_MS,
    );
    assert.equal(new Date(view.atMs).toISOString(), '2026-11-26T12:00:05.000Z');
    assert.equal(view.points.length, 60);
    assert.deepEqual([view.minute.requests, view.minute.byStatus['left'], view.minute.errors], [64, 4, 3]);
    assert.equal(view.points.at(-1)?.requestsPerSecond, 3.4);
    assert.deepEqual(view.refusals, [{ code: 'rate_limited', count: 6 }]);
    assert.equal(view.minute.refusals, 0);
  });

  test('percentiles are spread within their bucket; above the last bound they are that bound', () => {
    const view = liveView(
      [beat('12:00:05', { [countKey('latency', '0.1', '0.3')]: 90, [countKey('latency', '60', 'Infinity')]: 10 })],
      NOW_MS,
    );
    const { p50Ms, p95Ms, p99Ms } = view.minute.latency;
    assert.deepEqual([Math.round(p50Ms ?? 0), p95Ms, p99Ms], [211, 60_000, 60_000]);
    assert.deepEqual(view.minute.firstByte, { p50Ms: null, p95Ms: null, p99Ms: null });
  });

  test('a process is silent when three of its beats are missing', () => {
    assert.equal(isSilent({ lastBeatAtMs: NOW_MS - 17 * SECOND_MS }, NOW_MS), false);
    assert.equal(isSilent({ lastBeatAtMs: NOW_MS - 19 * SECOND_MS }, NOW_MS), true);
  });
});
