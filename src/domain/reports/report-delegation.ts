// A report that a gateway has authorized and that the jobs process answers: which report, for which audience, about
// whose requests.

import { z } from 'zod';

export const REPORTS = ['usage', 'daily', 'requests', 'request', 'routing', 'series', 'focus', 'guardrails'] as const;
export type Report = (typeof REPORTS)[number];

/**
 * `me`: the caller's own requests. `member` and `organization`: the active organization as a member and as an
 * administrator sees it.
 */
export const AUDIENCES = ['me', 'team', 'member', 'organization', 'platform'] as const;
export type Audience = (typeof AUDIENCES)[number];

const id = z.uuid();

export const reportDelegationSchema = z.strictObject({
  report: z.enum(REPORTS),
  audience: z.enum(AUDIENCES),
  /** Whose requests the report is about. Filters can only narrow it. */
  scope: z.strictObject({
    /** null: all organizations. */
    organizationId: id.nullable(),
    teamId: id.exactOptional(),
    userId: id.exactOptional(),
    /** Set when a key without a user asks about itself. */
    apiKeyId: id.exactOptional(),
  }),
  /** The id of the request, for the report `request`. */
  requestId: id.exactOptional(),
});

export type ReportDelegation = Readonly<z.infer<typeof reportDelegationSchema>>;
export type DelegatedScope = ReportDelegation['scope'];
