// Choices that hold for every screen: the time zone, the window, whose usage is shown, light or dark colours.

import { computed, effect, signal } from '@preact/signals';
import { isTimeZone, periodOf } from '../logic/period.ts';
import { params } from './address.ts';
import { now } from './clock.ts';
import { may, me, organizationId } from './session.ts';

export const OWN_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

export const zone = computed(() => {
  const asked = params.value['zone'];
  return asked !== undefined && isTimeZone(asked) ? asked : 'UTC';
});

export const period = computed(() => periodOf(params.value, now.value, zone.value));

/** The query parameters that every report takes. */
export const windowQuery = computed(() => ({
  start_date: period.value.start,
  end_date: period.value.end,
  time_zone: zone.value,
}));

export interface ReportScope {
  readonly id: string;
  readonly name: string;
  /** The usage report; `/daily` below it is the report by day. */
  readonly path: string;
  /** The prefix of `/routing` and `/series`. */
  readonly analytics: string;
  /** The listing of single requests. */
  readonly requests: string;
}

/** Whose usage this person may see. The first is the default: the organization's, if it is among them. */
export function reportScopes(): readonly ReportScope[] {
  const all: ReportScope[] = [];
  const below = (
    id: string,
    name: string,
    path: string,
    analytics = `${path}/analytics`,
    requests = `${path}/requests`,
  ) => all.push({ id, name, path, analytics, requests });
  if (may('org.admin')) below('organization', 'Organization', '/v1/admin/active-org/usage');
  else if (may('org.usage.read'))
    below('organization', 'Organization', '/v1/usage/active-org', undefined, '/v1/usage/me/requests');
  for (const { team_id: team, role } of me()?.teams ?? [])
    if (role !== 'member') below(`team:${team}`, `Team ${team.slice(0, 8)}`, `/v1/usage/teams/${team}`);
  if (may('usage.read') && organizationId() !== null) below('me', 'Mine', '/v1/usage/me');
  if (may('platform.admin')) below('platform', 'Platform', '/v1/admin/usage', '/v1/admin/analytics');
  return all;
}

const NOBODY: ReportScope = {
  id: 'me',
  name: 'Mine',
  path: '/v1/usage/me',
  analytics: '/v1/usage/me/analytics',
  requests: '/v1/usage/me/requests',
};

export const reportScope = computed((): ReportScope => {
  const all = reportScopes();
  return all.find(({ id }) => id === params.value['whose']) ?? all[0] ?? NOBODY;
});

export type Theme = 'system' | 'light' | 'dark';
export const theme = signal<Theme>(readTheme());

function readTheme(): Theme {
  const kept = localStorage.getItem('tollgate-theme');
  return kept === 'light' || kept === 'dark' ? kept : 'system';
}

effect(() => {
  document.documentElement.dataset['theme'] = theme.value;
  localStorage.setItem('tollgate-theme', theme.value);
});
