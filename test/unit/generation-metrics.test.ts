// The counters of the data plane: what small requests cost adds up.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { picoUsd } from '../../src/domain/money/pico-usd.ts';
import { GenerationMetrics } from '../../src/generation/execution/generation-metrics.ts';
import { NO_USAGE, type ObservedEnd } from '../../src/generation/execution/observed-end.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';

const ENDING: ObservedEnd = {
  outcome: 'completed',
  status: 200,
  errorCode: null,
  measured: NO_USAGE,
  responseBytes: 1,
  responseId: null,
};
const FREE = { billingStatus: 'final', ratedCost: picoUsd(0n), charge: picoUsd(0n), suspense: picoUsd(0n) } as const;

test('a client that leaves before it was answered is no failure; what failed while it left, is one', () => {
  const registry = new MetricsRegistry();
  const metrics = new GenerationMetrics(registry);
  const outcomes = ['aborted_before_first_byte', 'completed', 'no_reply', 'provider_failed', 'process_killed'] as const;
  for (const outcome of outcomes) {
    metrics.ended('chat_completions', { ...ENDING, outcome, status: null }, FREE, 5, null);
    metrics.endedWithKeys(true, { ...ENDING, outcome, status: null }, []);
  }
  metrics.ended('chat_completions', { ...ENDING, outcome: 'no_reply', status: 502 }, FREE, 5, null);
  const text = MetricsRegistry.render(registry.snapshot());
  for (const [statusClass, count] of [
    ['left', 2],
    ['none', 3],
  ] as const) {
    assert.match(text, new RegExp(`^tollgate_requests_total\\{.*status_class="${statusClass}"\\} ${count}$`, 'm'));
    assert.match(
      text,
      new RegExp(`^tollgate_own_key_requests_total\\{status_class="${statusClass}"\\} ${count}$`, 'm'),
    );
  }
  assert.match(text, /^tollgate_requests_total\{.*status_class="5xx"\} 1$/m);
});

test('requests of own keys are counted from zero: the alert on errors subtracts a rate, which begins there', () => {
  const registry = new MetricsRegistry();
  new GenerationMetrics(registry);
  const text = MetricsRegistry.render(registry.snapshot());
  for (const statusClass of ['2xx', '5xx', 'none', 'left'])
    assert.match(text, new RegExp(`^tollgate_own_key_requests_total\\{status_class="${statusClass}"\\} 0$`, 'm'));
});

test('charges and suspense are counted in dollars, also those of less than a micro-dollar', () => {
  const registry = new MetricsRegistry();
  const metrics = new GenerationMetrics(registry);
  const settlement = {
    billingStatus: 'final',
    ratedCost: picoUsd(500_000n),
    charge: picoUsd(500_000n),
    suspense: picoUsd(250_000n),
  } as const;
  for (let request = 0; request < 3; request++) metrics.ended('chat_completions', ENDING, settlement, 5, null);
  const text = MetricsRegistry.render(registry.snapshot());
  assert.match(text, /^tollgate_charged_usd_total 0\.0000015$/m);
  assert.match(text, /^tollgate_suspense_usd_total 7\.5e-7$/m);
});
