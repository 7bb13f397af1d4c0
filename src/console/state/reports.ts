// Loads usage reports for the chosen scope. The path depends on the scope, the shape of the answer does not.

import { type AnswerOf, addressOf, curlCommand, type Query, send } from '../api.ts';
import { tollgateOf } from '../logic/command.ts';
import { type Load, useLoad } from './load.ts';
import { may, me } from './session.ts';
import { reportScope, windowQuery } from './view.ts';

export type Usage = AnswerOf<'/v1/admin/active-org/usage'>['data'];
export type Requests = AnswerOf<'/v1/admin/active-org/usage/requests'>;
export type RequestRow = Requests['data'][number];
export type Routing = AnswerOf<'/v1/admin/active-org/usage/analytics/routing'>;

export type UsageSeries = AnswerOf<'/v1/admin/active-org/usage/analytics/series'>['data'];
export type FigureSeries = UsageSeries['totals'];
export type Figures = Omit<FigureSeries, 'series'>;
/** The fields that name a group. A group has one of them; its value is null for requests without a name. */
export type GroupNames = Omit<UsageSeries['groups'][number], keyof FigureSeries>;

interface Reports {
  readonly usage: { readonly data: Usage };
  readonly requests: Requests;
  readonly routing: Routing;
  readonly series: { readonly data: UsageSeries };
}

export function pathOf(report: keyof Reports): string {
  const { path, analytics, requests } = reportScope.value;
  if (report === 'usage') return path;
  return report === 'requests' ? requests : `${analytics}/${report}`;
}

/** Loads a report for the chosen window and time zone, unless `query` names others. */
export function useReport<R extends keyof Reports>(report: R, query: Query = {}): Load<Reports[R]> {
  const address = addressOf(pathOf(report), { query: { ...windowQuery.value, ...query } });
  return useLoad(address, (signal) => send<Reports[R]>({ method: 'get', address }, signal));
}

export function reportCurlCommand(report: keyof Reports, query: Query = {}): string {
  return curlCommand(pathOf(report), { query: { ...windowQuery.value, ...query } });
}

/**
 * The same report as a `tollgate` command. It is offered to administrators of the platform only, because the command
 * runs beside a gateway. It exists for the platform and for an organization.
 */
export function reportTollgateCommands(report: keyof Reports, query: Query = {}): readonly string[] {
  const { id } = reportScope.value;
  const slug = me()?.organization?.slug;
  if (!may('platform.admin') || (id !== 'platform' && (id !== 'organization' || slug === undefined))) return [];
  const whose = id === 'platform' ? [] : ['--organization', slug ?? ''];
  const parameters = Object.entries({ ...windowQuery.value, ...query }).flatMap(([name, value]) =>
    value === null || value === undefined || value === '' ? [] : [`${name}=${value}`],
  );
  return [tollgateOf(['report', report, ...whose, ...parameters])];
}

/** The permission that the reports of the chosen scope need. */
export function reportPermission(): string {
  const { id } = reportScope.value;
  if (id === 'platform') return 'platform.admin';
  if (id.startsWith('team:')) return 'team.usage.read';
  return id === 'organization' ? 'org.usage.read' : 'usage.read';
}
