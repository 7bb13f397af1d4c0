// The counters of the data plane: what small requests cost adds up.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { picoUsd } from '../../src/domain/money/pico-usd.ts';
import { GenerationMetrics } from '../../src/generation/execution/generation-metrics.ts';
import { NO_USAGE, type ObservedEnd } from '../../src/generation/execution/observed-end.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';

test('charges and suspense are counted in dollars, also those of less than a micro-dollar', () => {
  const registry = new MetricsRegistry();
  const metrics = new GenerationMetrics(registry);
  const ending: ObservedEnd = {
    outcome: 'completed',
    status: 200,
    errorCode: null,
    measured: NO_USAGE,
    responseBytes: 1,
    responseId: null,
  };
  const settlement = {
    billingStatus: 'final',
    ratedCost: picoUsd(500_000n),
    charge: picoUsd(500_000n),
    suspense: picoUsd(250_000n),
  } as const;
  for (let request = 0; request < 3; request++) metrics.ended('chat_completions', ending, settlement, 5, null);
  const text = MetricsRegistry.render(registry.snapshot());
  assert.match(text, /^tollgate_charged_usd_total 0\.0000015$/m);
  assert.match(text, /^tollgate_suspense_usd_total 7\.5e-7$/m);
});
