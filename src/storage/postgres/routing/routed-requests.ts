// Reads routed requests in the order of their admission, for trying a draft policy on them.

import type { RoutedApi } from '../../../domain/models/apis.ts';
import { parseUsd } from '../../../domain/money/parse-usd.ts';
import { type PicoUsd, picoUsd } from '../../../domain/money/pico-usd.ts';
import type { ModelRoute } from '../../../domain/routing/model-route.ts';
import type { RoutedRequest } from '../../../domain/routing/replay-policy.ts';
import { firstExecutionIdAt } from '../../../platform/execution-id.ts';
import type { PostgresClient } from '../pool.ts';

interface Row {
  readonly id: string;
  /** The request has ended and was not refused. A refused request was neither served nor used any tokens. */
  readonly was_served: boolean;
  readonly organization_id: string;
  readonly wallet_id: string | null;
  readonly api: string;
  readonly model: string;
  readonly request_bytes: string;
  readonly input_tokens: string | null;
  readonly cached_input_tokens: string | null;
  readonly cache_write_tokens: string | null;
  readonly output_tokens: string | null;
  readonly reasoning_tokens: string | null;
  readonly rated_cost: string | null;
  readonly model_route: ModelRoute | null;
}

/** Pages through all executions by the primary key, so no statement takes long however few were routed. */
const PAGE = `
  SELECT id, coalesce(outcome <> 'refused', false) AS was_served, organization_id, wallet_id, api, model, request_bytes,
    input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, rated_cost, model_route
    FROM generations WHERE id > $1 ORDER BY id LIMIT $2`;

interface ReplayStart {
  /** The id before the first execution. */
  readonly after: string;
  /** All executions since the wanted time come after `after`. */
  readonly isWhole: boolean;
}

/** Finds where to begin, so that at most the last `executionsMax` executions since a time are read. */
export async function findReplayStart(
  postgres: PostgresClient,
  { sinceMs, executionsMax }: { readonly sinceMs: number; readonly executionsMax: number },
): Promise<ReplayStart> {
  const { rows } = await postgres.query<{ id: string }>(
    'SELECT id FROM generations WHERE id > $1 ORDER BY id DESC OFFSET $2 LIMIT 1',
    [firstExecutionIdAt(sinceMs), executionsMax],
  );
  return { after: rows[0]?.id ?? firstExecutionIdAt(sinceMs), isWhole: rows[0] === undefined };
}

interface Wanted {
  /** The id before the first execution. */
  readonly after: string;
  /** null: all organizations. */
  readonly organizationId: string | null;
  /** How many executions one statement reads. They are also decided without a break of the event loop. */
  readonly pageSize: number;
}

/** Yields the routed requests that were served, oldest first. */
export async function* readRoutedRequests(
  postgres: PostgresClient,
  { after: first, organizationId, pageSize }: Wanted,
): AsyncGenerator<RoutedRequest> {
  let after = first;
  for (;;) {
    const { rows } = await postgres.query<Row>(PAGE, [after, pageSize]);
    for (const row of rows) {
      if (row.was_served && row.model_route !== null && isOf(row, organizationId))
        yield toRequest(row, row.model_route);
    }
    const last = rows.at(-1);
    // A page that is not full is the last. Under load, there would always be one more new request to read.
    if (last === undefined || rows.length < pageSize) return;
    after = last.id;
  }
}

function isOf({ organization_id }: Row, organizationId: string | null): boolean {
  return organizationId === null || organization_id === organizationId;
}

function toRequest(row: Row, route: ModelRoute): RoutedRequest {
  return {
    organizationId: row.organization_id,
    isBilled: row.wallet_id !== null,
    api: row.api as RoutedApi,
    model: row.model,
    route,
    requestBytes: Number(row.request_bytes),
    usage:
      row.input_tokens === null && row.output_tokens === null
        ? null
        : {
            inputTokens: toCount(row.input_tokens),
            cachedInputTokens: toCount(row.cached_input_tokens),
            cacheWriteTokens: toCount(row.cache_write_tokens),
            outputTokens: toCount(row.output_tokens),
            reasoningTokens: toCount(row.reasoning_tokens),
            images: null,
          },
    ratedCost: row.rated_cost === null ? null : picoUsd(BigInt(row.rated_cost)),
    baselineCost: baselineIn(route),
  };
}

function baselineIn({ baseline_cost_usd: cost }: ModelRoute): PicoUsd | null {
  return cost === undefined ? null : parseUsd(cost);
}

function toCount(text: string | null): number | null {
  return text === null ? null : Number(text);
}
