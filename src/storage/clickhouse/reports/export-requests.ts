// Every request of a listing as CSV, the latest first, a page at a time: an export holds no more in memory than a page.

import type { ClickHouseReader } from '../clickhouse.ts';
import { type CsvValue, csvLine } from './csv.ts';
import { listRequests, readRequestCursor } from './list-requests.ts';
import type { ReportParams } from './report-params.ts';
import type { RequestEntry } from './request-entry.ts';

const PAGE_ENTRIES = 5_000;

const COLUMNS: Readonly<Record<string, (entry: RequestEntry) => CsvValue>> = {
  id: (entry) => entry.id,
  created_at: (entry) => entry.created_at,
  model: (entry) => entry.model,
  requested_model: (entry) => entry.requested_model,
  provider: (entry) => entry.provider,
  api: (entry) => entry.api,
  streamed: (entry) => entry.streamed,
  status: (entry) => entry.status,
  error: (entry) => entry.error,
  tokens_prompt: (entry) => entry.tokens_prompt,
  tokens_completion: (entry) => entry.tokens_completion,
  tokens_cached: (entry) => entry.tokens_cached,
  cost: (entry) => entry.cost,
  currency: (entry) => entry.currency,
  billing_status: (entry) => entry.billing_status,
  latency_ms: (entry) => entry.latency_ms,
  ttft_ms: (entry) => entry.ttft_ms,
  // No tag holds a space (spec 8).
  tags: (entry) => entry.tags.join(' '),
  client_request_id: (entry) => entry.client_request_id,
  api_key_id: (entry) => entry.api_key_id,
  routed: (entry) => entry.model_route !== null,
  route_tier: ({ model_route }) => model_route?.tier ?? null,
  route_classified_tier: ({ model_route }) => model_route?.classified_tier ?? null,
  route_reason: ({ model_route }) => model_route?.reason ?? null,
  route_confidence: ({ model_route }) => model_route?.confidence ?? null,
  route_cached: ({ model_route }) => model_route?.cached ?? null,
  route_task: ({ model_route }) => model_route?.task ?? null,
  route_picked_by: ({ model_route }) => model_route?.picked_by ?? null,
  route_correction: ({ model_route }) => model_route?.correction ?? null,
  route_previous_model: ({ model_route }) => model_route?.previous_model ?? null,
  route_previous_tier: ({ model_route }) => model_route?.previous_tier ?? null,
  route_sticky: ({ model_route }) => model_route?.sticky ?? null,
  route_baseline_model: ({ model_route }) => model_route?.baseline_model ?? null,
  route_baseline_cost_usd: ({ model_route }) => model_route?.baseline_cost_usd ?? null,
};

export async function* exportRequestsCsv(client: ClickHouseReader, params: ReportParams): AsyncGenerator<string> {
  yield csvLine(Object.keys(COLUMNS));
  const values = Object.values(COLUMNS);
  let after: string | null = null;
  do {
    const page = await listRequests(client, {
      ...params,
      limit: PAGE_ENTRIES,
      cursor: after === null ? null : readRequestCursor(after),
    });
    if (page.data.length > 0) yield page.data.map((entry) => csvLine(values.map((value) => value(entry)))).join('');
    after = page.nextCursor;
  } while (after !== null);
}
