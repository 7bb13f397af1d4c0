// The details of one request beyond its row in a listing, from its record in Postgres. The details leave out what only
// the operator may know: the model's name at the provider, suspense and wallets.

import { formatUsdString } from '../../src/domain/money/format.ts';
import { picoUsd } from '../../src/domain/money/pico-usd.ts';
import type { ModelRoute } from '../../src/domain/routing/model-route.ts';
import type { TerminalRecord } from '../../src/records/execution-record.ts';
import { USAGE_PROBLEM } from '../../src/records/fields.ts';
import { knownCharge } from '../../src/records/generation.ts';

/** null: the record is no longer kept, or Postgres cannot be read at the moment. */
export type FindEndedExecution = (wanted: {
  readonly id: string;
  readonly organizationId: string;
}) => Promise<TerminalRecord | null>;

export function requestDetails(record: TerminalRecord) {
  const { usage } = record;
  return {
    ended_at: new Date(record.endedAtMs).toISOString(),
    outcome: record.outcome,
    truncated: record.truncated ?? false,
    usage_source: record.usageSource,
    usage_problem: record.errorCode !== null && USAGE_PROBLEM.test(record.errorCode) ? record.errorCode : null,
    usage_details: record.usageDetails ?? null,
    tokens_cache_write: usage?.cacheWriteTokens ?? null,
    tokens_reasoning: usage?.reasoningTokens ?? null,
    images: usage?.images ?? null,
    price_version: record.priceVersion,
    authorized_amount: dollarsOf(record.authorizedAmount),
    rated_cost: dollarsOf(record.ratedCost),
    total_cost: dollarsOf(knownCharge(record)),
    fee: dollarsOf(record.fee ?? null),
    request_bytes: record.requestBytes,
    response_bytes: record.responseBytes,
    route: record.route == null ? null : routeDetails(record.route),
    attempts: record.attempts ?? [],
    guardrail: record.screening ?? null,
    own_failures: record.ownFailures ?? [],
  };
}

/** Members that do not apply are undefined, and so are left out of the JSON, as in the record. */
function routeDetails(route: ModelRoute) {
  const { policy, policy_version, tier_rank, escalated, distribution, correction_probability } = route;
  const { classifier, rejected, safety } = route;
  const calls = { distribution, correction_probability, classifier };
  return { policy, policy_version, tier_rank, escalated, ...calls, rejected, safety };
}

function dollarsOf(pico: string | null): string | null {
  return pico === null ? null : formatUsdString(picoUsd(BigInt(pico)));
}
