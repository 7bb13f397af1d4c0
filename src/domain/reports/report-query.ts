// The query parameters of reports and listings (spec 4.4, 4.10) by report and audience: the jobs process reads them,
// the gateway describes them in its OpenAPI document.

import { z } from 'zod';
import { modelNameSchema, slugSchema } from '../configuration/schema/name-schemas.ts';
import { ROUTE_REASONS } from '../routing/decide-route.ts';
import { DIMENSIONS, type Dimension, SERIES_DIMENSIONS, type SeriesDimension } from './owners.ts';
import type { Audience, Report } from './report-delegation.ts';
import { STATUS_FILTER } from './status-filter.ts';

/** The longest window, in calendar days (spec 8). */
export const WINDOW_DAYS_MAX = 92;
/** Windows of up to this many days get hourly buckets in the routing report by default. */
export const HOURLY_DAYS_MAX = 3;
export const WINDOW_DAYS_DEFAULT = 30;
const PAGE_ENTRIES_MAX = 100;
/** Groups of a series that are shown one by one; the rest is summed up. */
export const SERIES_GROUPS_MAX = 25;
export const SERIES_GROUPS_DEFAULT = 10;
/** Entries of the routing report's `by_model`; the rest is summed up (spec 2.5). */
export const REPORTED_MODELS_MAX = 25;
/** Entries of the routing report's `recent_corrections` (spec 2.5). */
export const REPORTED_CORRECTIONS_MAX = 20;

const MOMENT = 'must be a date, such as 2026-01-31, or a date and time with a time zone, such as 2026-01-31T12:00:00Z';
const moment = z.union([z.iso.date(), z.iso.datetime({ offset: true })], MOMENT);
const wholeNumber = z.coerce.number('must be a whole number').int('must be a whole number');
const id = z.uuid('must be a UUID').toLowerCase();
const routeReason = z.enum(
  ROUTE_REASONS,
  'must be one of the reasons of auto routing, such as classified or classifier_failed',
);

const windowFields = {
  start_date: moment
    .optional()
    .meta({ description: 'A date begins with its day. Without it: as many days before the end as make 30.' }),
  end_date: moment.optional().meta({
    description: 'A date includes its day, a moment is exclusive. Without it: now. The window is at most 92 days long.',
  }),
};

export const timeZoneField = {
  time_zone: z
    .string()
    .regex(/^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/, 'must be the name of a time zone, such as Europe/Berlin')
    .refine(isTimeZone, 'must be the name of a time zone, such as Europe/Berlin')
    .default('UTC')
    .meta({ description: 'Whose days and hours; an IANA name.' }),
};

const granularityField = {
  granularity: z
    .enum(['hour', 'day'], 'must be hour or day')
    .optional()
    .meta({ description: 'Width of the buckets in `series`; hour up to three days, else day.' }),
};

const commonFilters = {
  model: modelNameSchema.optional().meta({ description: 'Public id of the model that served.' }),
  provider: slugSchema.optional(),
  api_key_id: id.optional(),
};

const listingFilters = {
  tag: z
    .string()
    .toLowerCase()
    .regex(/^[a-z0-9][a-z0-9._:/@-]{0,63}$/, 'must be a tag: 1 to 64 letters, digits or any of ._:/@-')
    .optional(),
  status: z
    .string()
    .regex(STATUS_FILTER, 'must be an HTTP status such as 429, a class such as 4xx, error or success')
    .optional(),
  routed: z
    .enum(['true', 'false'], 'must be true or false')
    .transform((value) => value === 'true')
    .optional()
    .meta({ description: 'Whether the request named the virtual model.' }),
  route_tier: slugSchema.optional(),
  route_reason: routeReason.optional(),
  credential_source: z
    .enum(['service', 'own'], 'must be service or own')
    .optional()
    .meta({ description: 'Whose provider key was called with last.' }),
  credential_id: id.optional().meta({ description: 'The own provider key that was called with last.' }),
};

const ofTeam = { user_id: id.optional() };
const ofOrganization = { ...ofTeam, team_id: id.optional() };
const ofPlatform = { ...ofOrganization, organization_id: id.optional() };
/** The filters that narrow an audience's own scope. */
const AUDIENCE_FILTERS = {
  me: {},
  team: ofTeam,
  member: ofOrganization,
  organization: ofOrganization,
  platform: ofPlatform,
} as const;

/** The member view sums up an organization and does not compare its people. */
const MEMBER_DIMENSIONS: readonly Dimension[] = ['model', 'organization', 'team'];

function groupField(dimensions: readonly Dimension[]) {
  const isOne = (name: string): name is Dimension => dimensions.some((dimension) => dimension === name);
  return {
    group_by: z
      .string()
      .refine(
        (text) => text.split(',').every(isOne),
        `must be one or more of ${dimensions.join(', ')}, with commas between them`,
      )
      .transform((text) => [...new Set(text.split(',').filter(isOne))])
      .optional()
      .meta({
        description: `One or more of ${dimensions.join(', ')}, with commas between them: also sums up each group.`,
      }),
  };
}
const GROUPED: Readonly<Partial<Record<Report, true>>> = { usage: true, daily: true };

/** A tag can name a person, so the member view does not compare tags either. */
const MEMBER_SERIES_DIMENSIONS: readonly SeriesDimension[] = [...MEMBER_DIMENSIONS, 'provider', 'status'];

function seriesGroupField(dimensions: readonly SeriesDimension[]) {
  return {
    group_by: z
      .enum(dimensions, `must be one of ${dimensions.join(', ')}`)
      .transform((dimension): SeriesDimension[] => [dimension])
      .optional()
      .meta({ description: 'Also a series of each group; a request with several tags is in the group of each.' }),
  };
}

const topField = {
  top: wholeNumber
    .min(1, 'must be at least 1')
    .max(SERIES_GROUPS_MAX, `must be at most ${SERIES_GROUPS_MAX}`)
    .optional()
    .meta({
      description: `Groups by cost that are shown one by one, not summed up. Default: ${SERIES_GROUPS_DEFAULT}.`,
    }),
};

const pageFields = {
  limit: wholeNumber
    .min(1, 'must be at least 1')
    .max(PAGE_ENTRIES_MAX, `must be at most ${PAGE_ENTRIES_MAX}`)
    .optional()
    .meta({ description: 'Default: 50.' }),
  cursor: z
    .string()
    .regex(/^[\x21-\x7e]{1,200}$/, 'must be the next_cursor of an earlier page')
    .optional(),
};

const formatField = {
  format: z
    .enum(['json', 'csv'], 'must be json or csv')
    .optional()
    .meta({ description: 'csv: the whole of it, not a page.' }),
};

const FIELDS = {
  usage: { ...windowFields, ...timeZoneField, ...commonFilters, ...listingFilters, ...formatField },
  daily: { ...windowFields, ...timeZoneField, ...commonFilters, ...listingFilters, ...formatField },
  requests: { ...windowFields, ...timeZoneField, ...commonFilters, ...listingFilters, ...pageFields, ...formatField },
  request: {},
  routing: {
    ...windowFields,
    ...timeZoneField,
    ...granularityField,
    ...commonFilters,
    status: listingFilters.status,
  },
  series: {
    ...windowFields,
    ...timeZoneField,
    ...granularityField,
    ...commonFilters,
    ...listingFilters,
    ...topField,
    ...formatField,
  },
  guardrails: { ...windowFields, ...timeZoneField, ...commonFilters },
  // FOCUS exports have UTC days.
  focus: { ...windowFields, ...commonFilters },
} as const satisfies Readonly<Record<Report, z.ZodRawShape>>;

/** The query after parsing; a parameter that the report or audience does not have is absent. */
export type ReportQuery = Partial<
  z.output<
    z.ZodObject<typeof FIELDS.requests & typeof FIELDS.series & typeof ofPlatform & ReturnType<typeof seriesGroupField>>
  >
>;

export function reportQuerySchema(report: Report, audience: Audience): z.ZodObject {
  if (report === 'request') return z.object(FIELDS.request);
  return z.object({ ...FIELDS[report], ...AUDIENCE_FILTERS[audience], ...groupFieldOf(report, audience === 'member') });
}

function groupFieldOf(report: Report, isMemberView: boolean) {
  if (report === 'series') return seriesGroupField(isMemberView ? MEMBER_SERIES_DIMENSIONS : SERIES_DIMENSIONS);
  return GROUPED[report] ? groupField(isMemberView ? MEMBER_DIMENSIONS : DIMENSIONS) : {};
}

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en-US', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}
