// The summary and the days of usage as CSV: the rows of their listings, in the listings' own names.

import { csvLine } from '../../src/storage/clickhouse/reports/csv.ts';
import type { UsageDay, UsageSummary } from '../../src/storage/clickhouse/reports/usage.ts';

/** By model. */
export function summaryCsv({ by_model, currency }: UsageSummary): string {
  const lines = by_model.map(({ model, requests, tokens_prompt, tokens_completion, cost }) =>
    csvLine([model, requests, tokens_prompt, tokens_completion, cost, currency]),
  );
  return csvLine(['model', 'requests', 'tokens_prompt', 'tokens_completion', 'cost', 'currency']) + lines.join('');
}

export function daysCsv(days: readonly UsageDay[]): string {
  const lines = days.map(({ date, requests, errors, tokens_prompt, tokens_completion, cost }) =>
    csvLine([date, requests, errors, tokens_prompt, tokens_completion, cost]),
  );
  return csvLine(['date', 'requests', 'errors', 'tokens_prompt', 'tokens_completion', 'cost']) + lines.join('');
}
