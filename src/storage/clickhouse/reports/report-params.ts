// The parameters of every report and listing (whose requests, which of them, in which stretch of time) and the SQL
// conditions that they become.

import { STATUS_FILTER } from '../../../domain/reports/status-filter.ts';
import { IS_ERROR, IS_NOT_REFUSED } from './metrics.ts';

/** Whose requests the report is about. The caller has checked that they may be read. */
export interface ReportScope {
  /** null: the requests of all organizations. */
  readonly organizationId: string | null;
  readonly teamId?: string;
  readonly userId?: string;
  readonly apiKeyId?: string;
}

/** Which of those requests; an absent filter lets all pass. The caller has checked that ids are UUIDs. */
export interface ReportFilters {
  /** Public id of the model that served. */
  readonly model?: string;
  readonly provider?: string;
  readonly apiKeyId?: string;
  readonly userId?: string;
  readonly teamId?: string;
  readonly organizationId?: string;
  readonly tag?: string;
  /** A text that matches `STATUS_FILTER`. */
  readonly status?: string;
  readonly routed?: boolean;
  readonly routeTier?: string;
  readonly routeReason?: string;
  readonly credentialSource?: 'service' | 'own';
  readonly credentialId?: string;
}

/** The window that contains the instant of admission. */
export interface ReportWindow {
  readonly fromMs: number;
  /** Exclusive. */
  readonly untilMs: number;
  readonly granularity: 'hour' | 'day';
  /** An IANA name. */
  readonly timeZone: string;
}

export interface ReportParams {
  readonly scope: ReportScope;
  readonly filters: ReportFilters;
  readonly window: ReportWindow;
  /** Listings show refused requests too. */
  readonly showsRefused?: true;
  /** The part of the window that is read from the cells of sealed days; absent: none. Not every report can do this. */
  readonly sealed?: SealedCover;
}

/** The sealed days of a window (sealed-days.ts), and the stretches of the window that they do not cover. */
export interface SealedCover {
  /** The id of the organization whose cells are read; `ALL_ORGANIZATIONS`: the cells of all organizations together. */
  readonly cellsOf: string;
  /** The seal ids of the days. */
  readonly seals: readonly string[];
  /** Dates in UTC. */
  readonly firstDay: string;
  readonly lastDay: string;
  /** The stretches that are read from facts, in order; empty: the sealed days cover the whole window. */
  readonly open: readonly { readonly fromMs: number; readonly untilMs: number }[];
}

export const ALL_ORGANIZATIONS = '00000000-0000-0000-0000-000000000000';

/** A condition on facts, and the values of the parameters in it. */
interface Condition {
  readonly sql: string;
  readonly parameters: ConditionParameters;
}

type ConditionParameters = Readonly<Record<string, string | number | readonly string[]>>;

/** Whose key the provider was called with; NULL where the request was refused before a call. */
export const CREDENTIAL_SOURCE = `multiIf(credential_id IS NOT NULL, 'own', provider = '', NULL, 'service')`;

const IN_WINDOW =
  "admitted_at >= fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC') AND admitted_at < " +
  "fromUnixTimestamp64Milli({until_ms:Int64}, 'UTC')";

/** The SQL text of the conditions. It consists of constants from this file; values are parameters. */
export function checkedConditions(params: ReportParams): string {
  return conditionsOf(params)
    .map(({ sql }) => `(${sql})`)
    .join(' AND ');
}

export function conditionParameters(params: ReportParams): ConditionParameters {
  return Object.assign({}, ...conditionsOf(params).map(({ parameters }) => parameters)) as ConditionParameters;
}

function conditionsOf({ scope, filters, window, sealed, showsRefused }: ReportParams): Condition[] {
  const conditions: Condition[] = [
    { sql: IN_WINDOW, parameters: { from_ms: window.fromMs, until_ms: window.untilMs } },
  ];
  if (sealed !== undefined) conditions.push(openCondition(sealed));
  const require = (sql: string, parameters: Condition['parameters'] = {}): void => {
    conditions.push({ sql, parameters });
  };
  if (showsRefused !== true) conditions.push({ sql: IS_NOT_REFUSED, parameters: {} });
  if (scope.organizationId !== null)
    require('organization_id = {scope_organization:UUID}', { scope_organization: scope.organizationId });
  if (scope.teamId !== undefined) require('team_id = {scope_team:UUID}', { scope_team: scope.teamId });
  if (scope.userId !== undefined) require('user_id = {scope_user:UUID}', { scope_user: scope.userId });
  if (scope.apiKeyId !== undefined) require('api_key_id = {scope_key:UUID}', { scope_key: scope.apiKeyId });
  if (filters.organizationId !== undefined)
    require('organization_id = {organization:UUID}', { organization: filters.organizationId });
  if (filters.teamId !== undefined) require('team_id = {team:UUID}', { team: filters.teamId });
  if (filters.userId !== undefined) require('user_id = {user:UUID}', { user: filters.userId });
  if (filters.apiKeyId !== undefined) require('api_key_id = {api_key:UUID}', { api_key: filters.apiKeyId });
  if (filters.model !== undefined) require('model = {model:String}', { model: filters.model });
  if (filters.provider !== undefined) require('provider = {provider:String}', { provider: filters.provider });
  if (filters.tag !== undefined) require('has(tags, {tag:String})', { tag: filters.tag });
  if (filters.routed !== undefined) require(filters.routed ? 'routed' : 'NOT routed');
  if (filters.routeTier !== undefined)
    require('routed AND route_tier = {route_tier:String}', { route_tier: filters.routeTier });
  if (filters.routeReason !== undefined)
    require('routed AND route_reason = {route_reason:String}', { route_reason: filters.routeReason });
  if (filters.credentialSource !== undefined)
    require(`${CREDENTIAL_SOURCE} = {credential_source:String}`, { credential_source: filters.credentialSource });
  if (filters.credentialId !== undefined)
    require('credential_id = {credential:UUID}', { credential: filters.credentialId });
  if (filters.status !== undefined) conditions.push(statusCondition(filters.status, STATUS_OF_FACTS));
  return conditions;
}

/** Limits facts to the stretches that no seal covers. The parameters include those of the SQL for cells (cells.ts). */
function openCondition({ cellsOf, seals, firstDay, lastDay, open }: SealedCover): Condition {
  const bounds = open.flatMap(({ fromMs, untilMs }, index) => [
    [`open_from_${index}`, fromMs] as const,
    [`open_until_${index}`, untilMs] as const,
  ]);
  const stretches = open.map(
    (_, index) => `(admitted_at >= fromUnixTimestamp64Milli({open_from_${index}:Int64}, 'UTC')
      AND admitted_at < fromUnixTimestamp64Milli({open_until_${index}:Int64}, 'UTC'))`,
  );
  return {
    sql: stretches.length === 0 ? 'false' : stretches.join(' OR '),
    parameters: {
      ...Object.fromEntries(bounds),
      cells_of: cellsOf,
      seals,
      first_sealed: firstDay,
      last_sealed: lastDay,
    },
  };
}

/** The condition on the cells of sealed days: the filter by status, which is the only one that cells support. */
export function checkedCellConditions({ filters }: ReportParams): string {
  return filters.status === undefined ? 'true' : `(${statusCondition(filters.status, STATUS_OF_CELLS).sql})`;
}

interface StatusSql {
  readonly isError: string;
  readonly status: string;
}

const STATUS_OF_FACTS: StatusSql = { isError: IS_ERROR, status: 'status' };
/** Columns of all cells (cells.ts). */
const STATUS_OF_CELLS: StatusSql = { isError: 'of_error', status: 'of_status' };

function statusCondition(status: string, of: StatusSql): Condition {
  if (!STATUS_FILTER.test(status)) throw new Error(`not a status filter: ${status}`);
  if (status === 'error') return { sql: of.isError, parameters: {} };
  if (status === 'success') return { sql: `NOT (${of.isError})`, parameters: {} };
  if (status.endsWith('xx'))
    return { sql: `intDiv(${of.status}, 100) = {status_class:UInt8}`, parameters: { status_class: Number(status[0]) } };
  return { sql: `${of.status} = {status:UInt16}`, parameters: { status: Number(status) } };
}
