// The counters of guardrails: what an alert watches the rise of is there before it happens.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NOT_SCANNED } from '../../src/domain/guardrails/screening-report.ts';
import { GuardrailMetrics } from '../../src/generation/guardrails/guardrail-metrics.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';

test('every reason for which not all was seen is 0 from the start, so that its first time is a rise', () => {
  const registry = new MetricsRegistry();
  const metrics = new GuardrailMetrics(registry);
  const counts = (): readonly (readonly [string | undefined, number | undefined])[] =>
    (registry.snapshot().find(({ name }) => name === 'tollgate_guardrail_not_scanned_total')?.series ?? []).map(
      ({ labelValues, values }) => [labelValues[0], values[0]],
    );
  assert.deepEqual(
    counts(),
    NOT_SCANNED.map((reason) => [reason, 0]),
  );
  metrics.ended({ input: { action: 'none', not_scanned: ['timeout'] } }, 'sim/small');
  assert.deepEqual(
    counts(),
    NOT_SCANNED.map((reason) => [reason, reason === 'timeout' ? 1 : 0]),
  );
});
