// Metrics: the text format to the letter, exact bucket edges, merging over processes.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MetricsRegistry, type MetricsSnapshot } from '../../src/platform/metrics.ts';

describe('rendering', () => {
  test('is Prometheus text format 0.0.4', () => {
    const registry = new MetricsRegistry();
    const requests = registry.counter('tollgate_requests_total', 'Requests.', ['api', 'status_class']);
    const chat = requests.labels('chat_completions', '2xx');
    chat.increment();
    chat.increment(2);
    requests.labels('chat_completions', '4xx').increment();
    registry.gauge('tollgate_open', 'Open\nnow \\ here.').set(-1.5);
    registry.gauge('tollgate_heap_bytes', 'Heap.', { read: () => 12345 });
    const latency = registry.histogram('tollgate_seconds', 'Latency.', [0.1, 1], ['api']).labels('a"b\\c\nd');
    for (const value of [0.1, 0.100001, 1, 50, 0]) latency.observe(value);
    assert.equal(
      registry.render(),
      [
        '# HELP tollgate_requests_total Requests.',
        '# TYPE tollgate_requests_total counter',
        'tollgate_requests_total{api="chat_completions",status_class="2xx"} 3',
        'tollgate_requests_total{api="chat_completions",status_class="4xx"} 1',
        '# HELP tollgate_open Open\\nnow \\\\ here.',
        '# TYPE tollgate_open gauge',
        'tollgate_open -1.5',
        '# HELP tollgate_heap_bytes Heap.',
        '# TYPE tollgate_heap_bytes gauge',
        'tollgate_heap_bytes 12345',
        '# HELP tollgate_seconds Latency.',
        '# TYPE tollgate_seconds histogram',
        'tollgate_seconds_bucket{api="a\\"b\\\\c\\nd",le="0.1"} 2',
        'tollgate_seconds_bucket{api="a\\"b\\\\c\\nd",le="1"} 4',
        'tollgate_seconds_bucket{api="a\\"b\\\\c\\nd",le="+Inf"} 5',
        'tollgate_seconds_sum{api="a\\"b\\\\c\\nd"} 51.200001',
        'tollgate_seconds_count{api="a\\"b\\\\c\\nd"} 5',
        '',
      ].join('\n'),
    );
  });

  test('a metric without labels is shown before anything happened', () => {
    const registry = new MetricsRegistry();
    registry.counter('a_total', 'A.');
    registry.counter('b_total', 'B.', ['x']);
    assert.match(registry.render(), /^a_total 0$/m);
    assert.doesNotMatch(registry.render(), /^b_total/m);
  });
});

describe('labels', () => {
  test('give the same cell for the same values', () => {
    const counter = new MetricsRegistry().counter('a_total', 'A.', ['x', 'y']);
    assert.equal(counter.labels('1', '2'), counter.labels('1', '2'));
    assert.notEqual(counter.labels('1', '2'), counter.labels('12', ''));
  });

  test('have no name that a scrape gives to the labels of its target', () => {
    for (const name of ['job', 'instance', 'namespace', 'pod', 'container', 'endpoint', 'service'])
      assert.throws(() => new MetricsRegistry().gauge('a', 'A.', { labelNames: [name] }), /label name \w+ of a is not/);
  });

  test('of an open set end up together', () => {
    const registry = new MetricsRegistry();
    const counter = registry.counter('a_total', 'A.', ['x']);
    for (let value = 0; value < 5000; value++) counter.labels(String(value)).increment();
    const [family] = registry.snapshot();
    assert.equal(family?.series.length, 2001);
    assert.equal(counter.labels('other').value, 3000);
  });

  test('and names that are not legal, or taken, are refused at start', () => {
    const registry = new MetricsRegistry();
    registry.counter('a_total', 'A.');
    assert.throws(() => registry.gauge('a_total', 'A.'), { name: 'AssertionFault' });
    assert.throws(() => registry.counter('a-b', 'A.'), { name: 'AssertionFault' });
    assert.throws(() => registry.counter('b_total', 'B.', ['le']), { name: 'AssertionFault' });
    assert.throws(() => registry.histogram('c', 'C.', [1, 1]), { name: 'AssertionFault' });
  });
});

describe('merging', () => {
  const snapshotOf = (fill: (registry: MetricsRegistry) => void): MetricsSnapshot => {
    const registry = new MetricsRegistry();
    fill(registry);
    // As it arrives over a process channel.
    return JSON.parse(JSON.stringify(registry.snapshot())) as MetricsSnapshot;
  };

  test('adds counters, histograms and gauges, and takes the worst where a gauge says so', () => {
    const processOf = (scale: number) => (registry: MetricsRegistry) => {
      registry.counter('a_total', 'A.', ['x']).labels('same').increment(scale);
      registry.counter('b_total', 'B.', ['x']).labels(`only ${scale}`).increment(scale);
      registry.gauge('open', 'Open.').set(scale);
      registry.gauge('lag_seconds', 'Lag.', { merge: 'max', read: () => scale });
      registry.histogram('h_seconds', 'H.', [1]).observe(scale);
    };
    const text = MetricsRegistry.render(MetricsRegistry.merge([snapshotOf(processOf(1)), snapshotOf(processOf(20))]));
    const values = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    assert.deepEqual(values, [
      'a_total{x="same"} 21',
      'b_total{x="only 1"} 1',
      'b_total{x="only 20"} 20',
      'open 21',
      'lag_seconds 20',
      'h_seconds_bucket{le="1"} 1',
      'h_seconds_bucket{le="+Inf"} 2',
      'h_seconds_sum 21',
      'h_seconds_count 2',
    ]);
    assert.equal(text.match(/# TYPE a_total/g)?.length, 1);
  });

  test('does not add a metric to another of the same name and a different shape', () => {
    const older = snapshotOf((registry) => registry.histogram('h_seconds', 'H.', [1]).observe(1));
    const newer = snapshotOf((registry) => registry.histogram('h_seconds', 'H.', [1, 2]).observe(1));
    assert.match(MetricsRegistry.render(MetricsRegistry.merge([older, newer])), /h_seconds_count 1\n/);
  });

  test('leaves its sources alone', () => {
    const one = snapshotOf((registry) => registry.counter('a_total', 'A.').increment(1));
    MetricsRegistry.merge([one, one]);
    assert.equal(one[0]?.series[0]?.values[0], 1);
  });
});
