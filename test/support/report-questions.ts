// Generates parameters for tests of reports: whose requests, filters, time window and time zone.

import fc from 'fast-check';
import type { ReportFilters, ReportParams, ReportScope } from '../../src/storage/clickhouse/reports/report-params.ts';
import type { FactPools } from './fact-generator.ts';

const HOUR_MS = 3_600_000;

const TIME_ZONES = [
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  'Asia/Kathmandu',
  'Australia/Lord_Howe',
  'Pacific/Chatham',
  'America/St_Johns',
  'Pacific/Kiritimati',
];

function oneOf(values: readonly string[]): fc.Arbitrary<string> {
  return fc.constantFrom(...values);
}

function scopes(pools: FactPools): fc.Arbitrary<ReportScope> {
  const organizationId = oneOf(pools.organizations);
  return fc.oneof(
    { weight: 3, arbitrary: fc.constant({ organizationId: null }) },
    { weight: 4, arbitrary: fc.record({ organizationId }) },
    { weight: 1, arbitrary: fc.record({ organizationId, teamId: oneOf(pools.teams) }) },
    { weight: 1, arbitrary: fc.record({ organizationId: fc.constant(null), userId: oneOf(pools.users) }) },
  );
}

export function singleFilters(pools: FactPools): ReportFilters[] {
  const each = <Value>(values: readonly Value[], filterOf: (value: Value) => ReportFilters): ReportFilters[] =>
    values.map(filterOf);
  return [
    ...each([...pools.models.slice(0, 6), 'no/such'], (model) => ({ model })),
    ...each(['provider-0', 'provider-3'], (provider) => ({ provider })),
    ...each(pools.apiKeys.slice(0, 6), (apiKeyId) => ({ apiKeyId })),
    ...each(pools.users.slice(0, 5), (userId) => ({ userId })),
    ...each(pools.teams.slice(0, 4), (teamId) => ({ teamId })),
    ...each(pools.organizations, (organizationId) => ({ organizationId })),
    ...each([...pools.tags, "it's"], (tag) => ({ tag })),
    ...each(['error', 'success', '2xx', '4xx', '5xx', '429', '200'], (status) => ({ status })),
    ...each([true, false], (routed) => ({ routed })),
    ...each(['light', 'medium', 'strong', ''], (routeTier) => ({ routeTier })),
    ...each(['classified', 'continuation', 'correction_escalated', 'classifier_failed'], (routeReason) => ({
      routeReason,
    })),
    ...each(['own', 'service'] as const, (credentialSource) => ({ credentialSource })),
    ...each(pools.credentials.slice(0, 3), (credentialId) => ({ credentialId })),
  ];
}

/** Mostly no filter or one: with many filters no request is left. */
function filters(pools: FactPools): fc.Arbitrary<ReportFilters> {
  const one = fc.constantFrom(...singleFilters(pools));
  return fc.oneof(
    { weight: 3, arbitrary: fc.constant({}) },
    { weight: 4, arbitrary: one },
    { weight: 1, arbitrary: fc.tuple(one, one).map(([a, b]) => ({ ...a, ...b })) },
  );
}

/** Generates random scopes, filters, windows and time zones, around a period of time. */
export function reportQuestions(
  pools: FactPools,
  { fromMs: firstMs, untilMs: lastMs }: { readonly fromMs: number; readonly untilMs: number },
): fc.Arbitrary<ReportParams> {
  const span = fc.oneof(
    fc.constant(lastMs - firstMs),
    fc.integer({ min: 1, max: 90 * 24 * HOUR_MS }),
    fc.integer({ min: 1, max: 72 * HOUR_MS }),
  );
  return fc
    .record({
      scope: scopes(pools),
      filters: filters(pools),
      fromMs: fc.integer({ min: firstMs - 24 * HOUR_MS, max: lastMs }),
      span,
      granularity: fc.constantFrom('hour' as const, 'day' as const),
      timeZone: oneOf(TIME_ZONES),
    })
    .map(({ scope, filters: chosen, fromMs, span: spanMs, granularity, timeZone }) => ({
      scope,
      filters: chosen,
      window: { fromMs, untilMs: fromMs + spanMs, granularity, timeZone },
    }));
}
