// The rows of the route table that report what was used and how it was routed (spec 4.4, 4.10): one set of reports for
// each audience.

import type { RouteAccess } from '../control-plane/openapi/described-route.ts';
import {
  MINE,
  ORGANIZATION,
  ORGANIZATION_FOR_MEMBERS,
  ofTeam,
  PLATFORM,
  reportOperation,
} from '../control-plane/reports/reports.ts';
import type { Report } from '../domain/reports/report-delegation.ts';
import { type ControlPlaneRow, ORGANIZATION_ADMIN, PLATFORM_ADMIN, row } from './control-plane-row.ts';
import type { RouteParts } from './route-parts.ts';

type ReportAudience = Parameters<typeof reportOperation>[1];

export function reportRows({ reports, identity }: RouteParts): ControlPlaneRow[] {
  const rowsOf = (
    access: RouteAccess,
    audience: ReportAudience,
    paths: Readonly<Partial<Record<Report, string>>>,
  ): ControlPlaneRow[] =>
    Object.entries(paths).map(([report, path]) =>
      row('GET', path, access, reportOperation(report as Report, audience, reports)),
    );
  return [
    ...rowsOf({ permission: 'usage.read', scope: 'organization' }, MINE, pathsBelow('/v1/usage/me')),
    ...rowsOf(
      { permission: 'team.usage.read', scope: 'team' },
      ofTeam(identity),
      pathsBelow('/v1/usage/teams/:teamId'),
    ),
    ...rowsOf(
      { permission: 'org.usage.read', scope: 'organization' },
      ORGANIZATION_FOR_MEMBERS,
      summingUp('/v1/usage/active-org'),
    ),
    // Members see only sums. The single requests of others are not for them, and neither is recent_corrections (spec
    // 2.5).
    ...rowsOf(ORGANIZATION_ADMIN, ORGANIZATION_FOR_MEMBERS, listing('/v1/usage/active-org')),
    ...rowsOf(ORGANIZATION_ADMIN, ORGANIZATION, {
      ...pathsBelow('/v1/admin/active-org/usage'),
      focus: '/v1/admin/active-org/usage/export/focus',
      guardrails: '/v1/admin/active-org/guardrails/report',
    }),
    ...rowsOf(PLATFORM_ADMIN, PLATFORM, {
      ...pathsBelow('/v1/admin/usage'),
      routing: '/v1/admin/analytics/routing',
      series: '/v1/admin/analytics/series',
      focus: '/v1/admin/usage/export/focus',
      guardrails: '/v1/admin/guardrails/report',
    }),
  ];
}

function pathsBelow(path: string) {
  return { ...summingUp(path), ...listing(path) };
}

function listing(path: string) {
  return { requests: `${path}/requests`, request: `${path}/requests/:requestId` };
}

function summingUp(path: string) {
  return {
    usage: path,
    daily: `${path}/daily`,
    routing: `${path}/analytics/routing`,
    series: `${path}/analytics/series`,
  };
}
