// The reports of whoever's numbers are chosen. The path depends on the audience, the shape does not.

import type { AnswerOf, Query } from '../api.ts';
import { addressOf, commandOf, send } from '../api.ts';
import { type Load, useLoad } from './load.ts';
import { audience, windowQuery } from './view.ts';

export type Usage = AnswerOf<'/v1/admin/active-org/usage'>['data'];
export type Requests = AnswerOf<'/v1/admin/active-org/usage/requests'>;
export type RequestRow = Requests['data'][number];
export type Routing = AnswerOf<'/v1/admin/active-org/usage/analytics/routing'>;

export interface Figures {
  readonly requests: number;
  readonly errors: number;
  readonly tokens_prompt: number;
  readonly tokens_completion: number;
  readonly cost: string;
  readonly p50_latency_ms: number | null;
  readonly p95_latency_ms: number | null;
  readonly p50_ttft_ms: number | null;
  readonly p95_ttft_ms: number | null;
}

export interface FigureSeries extends Figures {
  readonly series: readonly ({ readonly bucket: string } & Figures)[];
}

/** The names of a group: one of them is there, null for requests that have none. */
export interface GroupNames {
  readonly model?: string;
  readonly provider?: string;
  readonly tag?: string | null;
  readonly status?: number | null;
  readonly organization_id?: string | null;
  readonly organization?: string | null;
  readonly team_id?: string | null;
  readonly team?: string | null;
  readonly user_id?: string | null;
  readonly user?: string | null;
  readonly api_key_id?: string | null;
  readonly api_key?: string | null;
}

export interface UsageSeries {
  readonly granularity: 'hour' | 'day';
  readonly time_zone: string;
  readonly buckets: readonly string[];
  readonly totals: FigureSeries;
  readonly groups: readonly (GroupNames & FigureSeries)[];
  readonly remainder: ({ readonly groups: number } & FigureSeries) | null;
}

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

/** What may be asked for the whole of an audience. */
export function reportPermission(): string {
  const { id } = audience.value;
  if (id === 'platform') return 'platform.admin';
  if (id.startsWith('team:')) return 'team.usage.read';
  return id === 'organization' ? 'org.usage.read' : 'usage.read';
}
