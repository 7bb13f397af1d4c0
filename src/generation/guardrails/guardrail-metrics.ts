// Counts what guardrails did. Labels are names from closed sets, never values.

import { isBuiltIn } from '../../domain/guardrails/entities.ts';
import {
  type FindingCount,
  isOthers,
  NOT_SCANNED,
  type ScreeningReport,
  type StageReport,
} from '../../domain/guardrails/screening-report.ts';
import type { MetricsRegistry } from '../../platform/metrics.ts';

export class GuardrailMetrics {
  private readonly requests;
  private readonly findings;
  private readonly notScanned;
  private readonly unrestored;

  constructor(registry: MetricsRegistry) {
    this.requests = registry.counter(
      'tollgate_guardrail_requests_total',
      'Requests and replies that guardrails screened, by stage and strongest action',
      ['stage', 'action'],
    );
    this.findings = registry.counter('tollgate_guardrail_findings_total', 'What guardrails found, by entity', [
      'entity',
    ]);
    this.notScanned = registry.counter(
      'tollgate_guardrail_not_scanned_total',
      'Requests and replies that guardrails could not screen completely, by reason',
      ['reason'],
    );
    // Every series begins at 0: a series that first appears as 1 has not risen for an alert.
    for (const reason of NOT_SCANNED) this.notScanned.labels(reason);
    this.unrestored = registry.counter(
      'tollgate_guardrail_unrestored_total',
      'Texts in replies that look like placeholders but that the request had not made, by model',
      ['model'],
    );
  }

  /** Counts the report of a request that is over. */
  ended({ input, output }: ScreeningReport, model: string): void {
    if (input !== undefined) this.count('input', input);
    if (output !== undefined) this.count('output', output);
    const unrestored = output?.unrestored ?? 0;
    if (unrestored > 0) this.unrestored.labels(model).increment(unrestored);
  }

  private count(stage: string, { action, findings = [], not_scanned: missed = [] }: StageReport): void {
    this.requests.labels(stage, action).increment();
    for (const found of findings) this.findings.labels(labelOf(found)).increment(found.count);
    for (const reason of missed) this.notScanned.labels(reason).increment();
  }
}

/** External detectors choose their own names, each of which would become a series. */
function labelOf(found: FindingCount): string {
  if (isOthers(found)) return found.entity;
  return isBuiltIn(found.entity) ? found.entity : 'external';
}
