// Measures small functions that every request, or every refused request, pays for: ids, counting, rating, rendering.
// Nanoseconds, median of rounds.

import { formatUsdJsonNumber } from '../../src/domain/money/format.ts';
import { picoUsd } from '../../src/domain/money/pico-usd.ts';
import { renderRefusal } from '../../src/domain/refusals/render.ts';
import { settle } from '../../src/domain/settlement/settle.ts';
import { checkUsage, NO_USAGE_BOUNDS } from '../../src/domain/usage/check-usage.ts';
import { cutLongRuns } from '../../src/domain/usage/long-runs.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { createExecutionIdSource } from '../../src/platform/execution-id.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import { measureNs } from './measure-ns.ts';

const makeExecutionId = createExecutionIdSource(systemClock);
const registry = new MetricsRegistry();
const counter = registry.counter('bench_total', 'A.', ['api', 'status_class']).labels('chat_completions', '2xx');
const latency = registry
  .histogram('bench_seconds', 'B.', [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30], ['api'])
  .labels('chat_completions');
const context = { requestId: 'req-1', publicUrl: 'http://127.0.0.1:8080' };
const price = {
  version: '1',
  input: picoUsd(1_250_000n),
  cachedInput: picoUsd(125_000n),
  cacheWrite: null,
  output: picoUsd(10_000_000n),
  image: null,
};
const raw = { inputTokens: 1234, cachedInputTokens: 1000, outputTokens: 567, reasoningTokens: 100 };
const checked = checkUsage(raw, NO_USAGE_BOUNDS);
if (!checked.ok) throw new Error('the sample usage is good');
const text64k = 'The quick brown fox jumps over 13 lazy dogs, again and again.\n'.repeat(1024);

measureNs('loop and an empty call (floor)', () => 0);
measureNs('execution id', makeExecutionId);
measureNs('counter increment', () => counter.increment());
measureNs('histogram observe, 12 buckets', () => latency.observe(0.02));
measureNs('check usage', () => checkUsage(raw, NO_USAGE_BOUNDS));
measureNs('settle', () =>
  settle({
    outcome: 'completed',
    usage: checked.usage,
    usageSource: 'reported',
    price,
    billed: true,
    authorizedAmount: picoUsd(10n ** 12n),
  }),
);
measureNs('format money', () => formatUsdJsonNumber(18_750_000n));
measureNs('render refusal: unauthorized', () => renderRefusal({ kind: 'unauthorized' }, 'openai', context).body);
measureNs(
  'render refusal: unknown model',
  () => renderRefusal({ kind: 'unknown_model', model: 'no/such-model' }, 'openai', context).body,
);
measureNs(
  'render refusal: insufficient credit, flat',
  () => renderRefusal({ kind: 'insufficient_credit' }, 'openai', context).body,
);
measureNs(
  'render refusal: rate limit, dialect',
  () =>
    renderRefusal({ kind: 'rate_limit', retryAfterMs: 1500 }, 'openai', { ...context, admissionForm: 'dialect' }).body,
);
measureNs('cut long runs, 64 KB of prose', () => cutLongRuns(text64k));
measureNs('metrics text of this registry', () => registry.render());
