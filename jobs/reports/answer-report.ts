// Answers one delegated report: reads its query, asks ClickHouse within the delegated scope, and renders JSON or CSV.

import { readQuery } from '../../src/domain/refusals/read-query.ts';
import type { Refusal } from '../../src/domain/refusals/refusal.ts';
import { type FindOwnerNames, isDimension, type NameRows, namingRows } from '../../src/domain/reports/owners.ts';
import type { DelegatedScope, ReportDelegation } from '../../src/domain/reports/report-delegation.ts';
import { type ReportQuery, reportQuerySchema, SERIES_GROUPS_DEFAULT } from '../../src/domain/reports/report-query.ts';
import { writeJson } from '../../src/platform/write-json.ts';
import type { ClickHouseReader } from '../../src/storage/clickhouse/clickhouse.ts';
import { exportFocus } from '../../src/storage/clickhouse/reports/export-focus.ts';
import { exportRequestsCsv } from '../../src/storage/clickhouse/reports/export-requests.ts';
import { guardrailReport } from '../../src/storage/clickhouse/reports/guardrails.ts';
import { findRequest, listRequests } from '../../src/storage/clickhouse/reports/list-requests.ts';
import type { ReportFilters, ReportParams, ReportScope } from '../../src/storage/clickhouse/reports/report-params.ts';
import { routingReport } from '../../src/storage/clickhouse/reports/routing-report.ts';
import { GROUPS_MAX, usageDaily, usageSummary } from '../../src/storage/clickhouse/reports/usage.ts';
import { usageSeries } from '../../src/storage/clickhouse/reports/usage-series.ts';
import type { SealedDays } from '../../src/storage/clickhouse/sealed-days.ts';
import { openCursor, signCursor } from './page-cursor.ts';
import { type AskedWindow, readWindow } from './read-window.ts';
import { type FindEndedExecution, requestDetails } from './request-details.ts';
import { daysCsv, groupsCsv, seriesCsv } from './usage-csv.ts';

const PAGE_ENTRIES_DEFAULT = 50;

/** Runs a statement when the semaphore has room. */
interface StatementRunner {
  run<T>(work: () => Promise<T>): Promise<T>;
}

export interface ReportSource {
  readonly client: ClickHouseReader;
  /** null: reports read the facts alone. */
  readonly sealedDays: SealedDays | null;
  readonly semaphore: StatementRunner;
  /** Signs cursors. */
  readonly delegationKey: Buffer;
  /** The invoice issuer that cost exports name. */
  readonly issuer: string;
  readonly ownerNames: FindOwnerNames;
  readonly endedExecution: FindEndedExecution;
}

export interface ReportRequest {
  readonly delegation: ReportDelegation;
  readonly query: string;
  /** The client's `accept` header. */
  readonly accept: string;
  readonly nowMs: number;
}

export interface ReportAnswer {
  readonly contentType: 'application/json' | 'text/csv; charset=utf-8';
  /** null: the answer is shown, not saved as a file. */
  readonly fileName: string | null;
  /** In pieces if it can be long. */
  readonly body: string | AsyncIterable<string>;
}

/** A report request, read and checked. */
interface CheckedRequest {
  readonly query: ReportQuery;
  readonly params: ReportParams;
  readonly asked: AskedWindow;
  readonly scope: DelegatedScope;
  /** Adds the names of owners to rows. Owners of another organization get no name. */
  readonly nameRows: NameRows;
}

/** Throws ReportStoreUnavailable or SemaphoreFull. A body in pieces can also throw them while it is read. */
export async function answerReport(
  source: ReportSource,
  { delegation, query: text, accept, nowMs }: ReportRequest,
): Promise<ReportAnswer | Refusal> {
  const { report, audience, scope } = delegation;
  const read = readQuery(reportQuerySchema(report, audience), text);
  if ('kind' in read) return read;
  if (report === 'request') return answerRequest(source, delegation);
  const query = read.value as ReportQuery;
  const asked = readWindow(query, nowMs);
  if ('kind' in asked) return asked;
  const params = { scope: scopeOf(scope), filters: filtersOf(query), window: asked.window };
  const format = query.format ?? (/^\s*text\/csv\b/i.test(accept) ? 'csv' : 'json');
  const nameRows = namingRows(source.ownerNames, scope.organizationId);
  const whole = { query, params, asked, scope, nameRows };
  switch (report) {
    case 'usage':
      return answerUsage(source, whole, format);
    case 'daily':
      return answerDaily(source, whole, format);
    case 'requests':
      return format === 'csv' ? exportRequests(source, whole) : answerRequests(source, whole);
    case 'routing': {
      const recentCorrections = audience === 'me' || audience === 'organization';
      const read = (found: ReportParams) => routingReport(source.client, { ...found, recentCorrections });
      const found = await source.semaphore.run(() => source.sealedDays?.reading(params, read) ?? read(params));
      return json({ ...windowShown(asked), ...found });
    }
    case 'series':
      return answerSeries(source, whole, format);
    case 'guardrails': {
      const { rows, ...found } = await source.semaphore.run(() => guardrailReport(source.client, params));
      return json({ data: { ...windowShown(asked), ...found, rows: await nameRows(rows) } });
    }
    case 'focus':
      return csv(
        'focus',
        asked,
        throughSemaphore(source.semaphore, exportFocus(source.client, { ...params, issuer: source.issuer }, nameRows)),
      );
  }
}

const TOO_MANY_GROUPS: Refusal = {
  kind: 'invalid_field',
  field: 'group_by',
  reason: `it makes more than ${GROUPS_MAX} groups here; filter, or ask for fewer days`,
};

async function answerUsage(
  { client, semaphore }: ReportSource,
  { query, params, asked, scope, nameRows }: CheckedRequest,
  format: 'json' | 'csv',
): Promise<ReportAnswer | Refusal> {
  const groupBy = (query.group_by ?? []).filter(isDimension);
  const found = await semaphore.run(() => usageSummary(client, { ...params, groupBy }));
  if (found === null) return TOO_MANY_GROUPS;
  const { currency, groups: unnamed, ...usage } = found;
  const groups = unnamed === undefined ? undefined : await nameRows(unnamed);
  if (format === 'csv') return csv('usage', asked, groupsCsv(groupBy, groups ?? usage.by_model, currency));
  const { startDate, endDate, window } = asked;
  const [of] = await nameRows([
    {
      organization_id: scope.organizationId,
      team_id: scope.teamId ?? null,
      user_id: scope.userId ?? null,
      api_key_id: scope.apiKeyId ?? null,
    },
  ]);
  return json({
    data: { currency, start_date: startDate, end_date: endDate, time_zone: window.timeZone, ...of, ...usage, groups },
  });
}

async function answerDaily(
  { client, semaphore }: ReportSource,
  { query, params, asked, nameRows }: CheckedRequest,
  format: 'json' | 'csv',
): Promise<ReportAnswer | Refusal> {
  const groupBy = (query.group_by ?? []).filter(isDimension);
  const days = await semaphore.run(() => usageDaily(client, { ...params, groupBy }));
  if (days === null) return TOO_MANY_GROUPS;
  const named = await nameRows(days);
  return format === 'csv' ? csv('daily', asked, daysCsv(groupBy, named)) : json({ data: named });
}

const TOO_MANY_POINTS: Refusal = {
  kind: 'invalid_field',
  field: 'granularity',
  reason: 'it makes too many buckets here; ask for days, for a shorter window or for a smaller top',
};

async function answerSeries(
  { client, semaphore }: ReportSource,
  { query, params, asked, nameRows }: CheckedRequest,
  format: 'json' | 'csv',
): Promise<ReportAnswer | Refusal> {
  const [groupBy = null] = query.group_by ?? [];
  const top = query.top ?? SERIES_GROUPS_DEFAULT;
  const found = await semaphore.run(() => usageSeries(client, { ...params, groupBy, top }));
  if (found === null) return TOO_MANY_POINTS;
  const named = { ...found, groups: await nameRows(found.groups) };
  if (format === 'csv') return csv('series', asked, seriesCsv(groupBy, named));
  return json({ data: { currency: 'USD', ...windowShown(asked), group_by: groupBy, ...named } });
}

async function answerRequests(
  { client, semaphore, delegationKey }: ReportSource,
  { query, params, scope, nameRows }: CheckedRequest,
): Promise<ReportAnswer | Refusal> {
  const { limit = PAGE_ENTRIES_DEFAULT, cursor: signed } = query;
  const cursor = signed === undefined ? null : openCursor(delegationKey, scope, signed);
  if (signed !== undefined && cursor === null)
    return { kind: 'invalid_field', field: 'cursor', reason: 'it must be the next_cursor of an earlier page' };
  const page = await semaphore.run(() => listRequests(client, { ...params, limit, cursor }));
  return json({
    data: await nameRows(page.data),
    next_cursor: page.nextCursor === null ? null : signCursor(delegationKey, scope, page.nextCursor),
  });
}

/** A request of another owner is `not_found`, just like one that does not exist. */
async function answerRequest(
  { client, semaphore, ownerNames, endedExecution }: ReportSource,
  { scope, requestId = '' }: ReportDelegation,
): Promise<ReportAnswer | Refusal> {
  const found = await semaphore.run(() => findRequest(client, scopeOf(scope), requestId));
  if (found === null) return { kind: 'not_found' };
  const [entry] = await namingRows(ownerNames, scope.organizationId)([found]);
  const record = await endedExecution({ id: found.id, organizationId: found.organization_id });
  return json({ data: { ...entry, details: record === null ? null : requestDetails(record) } });
}

function exportRequests(
  { client, semaphore }: ReportSource,
  { query, params, asked, nameRows }: CheckedRequest,
): ReportAnswer | Refusal {
  for (const field of ['limit', 'cursor'] as const) {
    if (query[field] !== undefined)
      return { kind: 'invalid_field', field, reason: 'CSV is the whole listing and has no pages' };
  }
  return csv('requests', asked, throughSemaphore(semaphore, exportRequestsCsv(client, params, nameRows)));
}

/** Takes the semaphore for each piece and not between them, so that a slow reader delays nobody. */
async function* throughSemaphore(semaphore: StatementRunner, pieces: AsyncGenerator<string>): AsyncGenerator<string> {
  try {
    for (;;) {
      const next = await semaphore.run(() => pieces.next());
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    await pieces.return(undefined);
  }
}

function windowShown({ startDate, endDate, window }: AskedWindow) {
  return { start_date: startDate, end_date: endDate, granularity: window.granularity, time_zone: window.timeZone };
}

function json(value: object): ReportAnswer {
  return { contentType: 'application/json', fileName: null, body: writeJson(value) };
}

function csv(name: string, { startDate, endDate }: AskedWindow, body: string | AsyncIterable<string>): ReportAnswer {
  const span = `${startDate}_${endDate}`.replaceAll(/[:.]/g, '');
  return { contentType: 'text/csv; charset=utf-8', fileName: `${name}-${span}.csv`, body };
}

function scopeOf({ organizationId, teamId, userId, apiKeyId }: DelegatedScope): ReportScope {
  return {
    organizationId,
    ...(teamId === undefined ? {} : { teamId }),
    ...(userId === undefined ? {} : { userId }),
    ...(apiKeyId === undefined ? {} : { apiKeyId }),
  };
}

const FILTERS = {
  model: 'model',
  provider: 'provider',
  api_key_id: 'apiKeyId',
  user_id: 'userId',
  team_id: 'teamId',
  organization_id: 'organizationId',
  tag: 'tag',
  status: 'status',
  routed: 'routed',
  route_tier: 'routeTier',
  route_reason: 'routeReason',
  credential_source: 'credentialSource',
  credential_id: 'credentialId',
} as const satisfies Readonly<Record<string, keyof ReportFilters>>;

function filtersOf(query: ReportQuery): ReportFilters {
  const names = Object.keys(FILTERS) as (keyof typeof FILTERS)[];
  return Object.fromEntries(
    names.filter((name) => query[name] !== undefined).map((name) => [FILTERS[name], query[name]]),
  );
}
