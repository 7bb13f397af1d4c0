// The reports of whoever's numbers are chosen. The path depends on the audience, the shape does not.

import type { AnswerOf, Query } from '../api.ts';
import { addressOf, commandOf, send } from '../api.ts';
import { tollgateOf } from '../logic/command.ts';
import { type Load, useLoad } from './load.ts';
import { may, me } from './session.ts';
import { audience, windowQuery } from './view.ts';

export type Usage = AnswerOf<'/v1/admin/active-org/usage'>['data'];
export type Requests = AnswerOf<'/v1/admin/active-org/usage/requests'>;
export type RequestRow = Requests['data'][number];
export type Routing = AnswerOf<'/v1/admin/active-org/usage/analytics/routing'>;

export type UsageSeries = AnswerOf<'/v1/admin/active-org/usage/analytics/series'>['data'];
export type FigureSeries = UsageSeries['totals'];
export type Figures = Omit<FigureSeries, 'series'>;
/** The names of a group: one of them is there, null for requests that have none. */
export type GroupNames = Omit<UsageSeries['groups'][number], keyof FigureSeries>;

interface Reports {
  readonly usage: { readonly data: Usage };
  readonly requests: Requests;
  readonly routing: Routing;
  readonly series: { readonly data: UsageSeries };
}

export function pathOf(report: keyof Reports): string {
  const { path, analytics, requests } = audience.value;
  if (report === 'usage') return path;
  return report === 'requests' ? requests : `${analytics}/${report}`;
}

/** In the chosen window and zone, unless the query has others. */
export function useReport<R extends keyof Reports>(report: R, query: Query = {}): Load<Reports[R]> {
  const address = addressOf(pathOf(report), { query: { ...windowQuery.value, ...query } });
  return useLoad(address, (signal) => send<Reports[R]>({ method: 'get', address }, signal));
}

export function reportCommand(report: keyof Reports, query: Query = {}): string {
  return commandOf(pathOf(report), { query: { ...windowQuery.value, ...query } });
}

/** The same by the `tollgate` command, for who administers the installation: it runs beside a gateway. */
export function reportLines(report: keyof Reports, query: Query = {}): readonly string[] {
  const { id } = audience.value;
  const slug = me()?.organization?.slug;
  if (!may('platform.admin') || (id !== 'platform' && (id !== 'organization' || slug === undefined))) return [];
  const whose = id === 'platform' ? [] : ['--organization', slug ?? ''];
  const parameters = Object.entries({ ...windowQuery.value, ...query }).flatMap(([name, value]) =>
    value === null || value === undefined || value === '' ? [] : [`${name}=${value}`],
  );
  return [tollgateOf(['report', report, ...whose, ...parameters])];
}

/** What may be asked for the whole of an audience. */
export function reportPermission(): string {
  const { id } = audience.value;
  if (id === 'platform') return 'platform.admin';
  if (id.startsWith('team:')) return 'team.usage.read';
  return id === 'organization' ? 'org.usage.read' : 'usage.read';
}
