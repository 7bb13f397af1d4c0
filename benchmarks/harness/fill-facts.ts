// Millions of request facts for measuring reports, made by the engine itself: 300 organizations over 92 days, most
// requests routed.

import type { ClickHouseClient } from '../../src/storage/clickhouse/clickhouse.ts';

const BATCH = 100_000;
const ORGANIZATIONS = 300;
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** The window of the facts, in whole days: the longest window of a report. */
export const FACTS_WINDOW = { fromMs: Date.UTC(2026, 7, 1), untilMs: Date.UTC(2026, 7, 1) + 92 * DAY_MS } as const;

/**
 * Facts in order of time, as they arrive. A fifth of them belong to one organization; the others' shares get ever
 * smaller.
 */
const INSERT_BATCH = `
  INSERT INTO request_facts (id, version, organization_id, team_id, user_id, api_key_id, wallet_id, api,
    requested_model, model, provider, provider_model, price_version,
    streamed, tags, admitted_at, ended_at, latency_ms, ttft_ms, request_bytes, response_bytes, outcome, status,
      error_code, tokens_prompt, tokens_cached, tokens_completion,
    usage_source, billing_status, authorized_amount, rated_cost, total_cost, suspense, routed, route_tier,
      route_tier_rank, route_classified_tier, route_reason,
    route_confidence, route_cached, route_task, route_picked_by, route_escalated, route_correction,
      route_correction_probability, route_previous_model,
    route_previous_tier, route_sticky, route_baseline_model, route_baseline_cost, route_policy, route_policy_version,
      route_session, route_turn,
    route_rejected_models, route_rejected_tiers, route_rejected_reasons, classifier_model, classifier_input_tokens,
      classifier_cost, classifier_latency_ms)
  WITH
    pow(randCanonical(1), 3.5) AS skew,
    toUInt32(floor(skew * ${ORGANIZATIONS})) AS organization,
    toUInt32(floor(pow(randCanonical(2), 2) * 30)) AS at_model,
    randCanonical(3) AS luck,
    randCanonical(4) < 0.7 AS is_routed,
    intDiv(number, 4) AS turn,
    number % 4 != 0 AS is_repeated,
    ['light', 'medium', 'strong'] AS tiers,
    toUInt64(20 + pow(randCanonical(5), 4) * 60000) AS prompt,
    toUInt64(pow(randCanonical(6), 2) * 3000) AS completion,
    toDecimal128(prompt + completion * 4, 12) * toDecimal128(0.000001, 12) AS cost
  SELECT generateUUIDv4(), 2, toUUID(concat('00000000-0000-4000-8000-', leftPad(toString(organization), 12, '0'))),
    if(organization % 3 = 0, NULL, toUUID(concat('00000000-0000-4000-9000-', leftPad(toString(number % 7), 12, '0')))),
    toUUID(concat('00000000-0000-4000-a000-', leftPad(toString(number % 50), 12, '0'))),
      toUUID(concat('00000000-0000-4000-b000-', leftPad(toString(number % 20), 12, '0'))),
    if(organization % 5 = 0, NULL, toUUID('00000000-0000-4000-c000-000000000000')), 'chat_completions', 'service/auto',
      concat('maker/model-', toString(at_model)),
    concat('provider-', toString(at_model % 4)), 'x', '1', number % 2, if(number % 9 = 0, ['ci'], []),
    fromUnixTimestamp64Milli(toInt64({from_ms:Int64} + (number - {first:UInt64}) * {step_us:UInt64} / 1000),
      'UTC') AS at, at, toUInt32(80 + pow(luck, 3) * 20000), toUInt32(40 + luck * 900),
    800, 3000, if(luck < 0.03, 'provider_failed', 'completed'), if(luck < 0.03, 500, 200), NULL, prompt, NULL,
      completion, 'reported', 'final', 1, cost, cost, 0,
    is_routed, if(is_routed, tiers[at_model % 3 + 1], ''), if(is_routed, at_model % 3, NULL),
      if(is_routed, tiers[turn % 3 + 1], ''),
    if(is_routed, ['classified', 'classified', 'classified', 'low_confidence_escalated', 'classifier_failed',
      'correction_escalated'][turn % 6 + 1], ''),
    if(is_routed, randCanonical(7), NULL), is_routed AND is_repeated,
      if(is_routed, ['code', 'prose', '', 'analysis'][turn % 4 + 1], ''),
    if(is_routed, ['', '', 'strength', 'native_api'][at_model % 4 + 1], ''), is_routed AND turn % 6 = 3,
      is_routed AND turn % 12 = 5,
    if(is_routed AND turn % 3 = 2, randCanonical(8), NULL),
      if(is_routed AND turn % 3 != 0, concat('maker/model-', toString(turn % 9)), ''),
    if(is_routed AND turn % 3 != 0, tiers[turn % 3 + 1], ''), is_routed AND turn % 10 = 1, 'maker/model-0',
      if(is_routed AND luck > 0.1, cost * 3, NULL), 'default',
    toUInt32(1 + (number - {first:UInt64}) * 0 + {version:UInt32}), if(is_routed, hex(sipHash64(turn, 1)), ''),
      if(is_routed, hex(sipHash64(turn, 2)), ''),
    if(is_routed AND luck > 0.95, ['maker/model-9'], []), if(is_routed AND luck > 0.95, ['strong'], []),
      if(is_routed AND luck > 0.95, ['unavailable'], []),
    if(is_routed AND NOT is_repeated, 'sim/judge', ''), if(is_routed AND NOT is_repeated, 500, NULL),
      if(is_routed AND NOT is_repeated, toDecimal128('0.00005', 12), NULL),
    if(is_routed AND NOT is_repeated, toUInt32(30 + luck * 300), NULL)
  FROM numbers({first:UInt64}, {count:UInt64})
  SETTINGS max_insert_threads = 1`;

/**
 * Adds facts of the day after the window, in the small parts in which facts arrive (here a minute's), so that the
 * engine merges them as usual.
 */
export async function fillPresentDay(client: ClickHouseClient, facts: number): Promise<void> {
  const minutes = DAY_MS / MINUTE_MS;
  const count = Math.max(1, Math.floor(facts / minutes));
  for (let minute = 0; minute < minutes; minute++) {
    await client.command({
      query: INSERT_BATCH,
      query_params: {
        first: 1_000_000_000 + minute * count,
        count,
        from_ms: FACTS_WINDOW.untilMs + minute * MINUTE_MS,
        step_us: Math.floor((MINUTE_MS * 1000) / count),
        version: 5,
      },
    });
  }
}

/** Adds facts evenly over the window. */
export async function fillFacts(client: ClickHouseClient, facts: number): Promise<void> {
  const { fromMs, untilMs } = FACTS_WINDOW;
  const stepUs = Math.floor(((untilMs - fromMs) * 1000) / facts);
  for (let first = 0; first < facts; first += BATCH) {
    await client.command({
      query: INSERT_BATCH,
      query_params: {
        first,
        count: BATCH,
        from_ms: fromMs + (first * stepUs) / 1000,
        step_us: stepUs,
        version: Math.floor((first / facts) * 5),
      },
    });
  }
}
