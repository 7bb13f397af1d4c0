// What a gateway has jobs answer in its name: which report, for which audience, of whose requests. The caller was let
// in by the route table before.

import { z } from 'zod';

export const REPORTS = ['usage', 'daily', 'requests', 'routing', 'focus'] as const;
export type Report = (typeof REPORTS)[number];

/**
 * me: the caller's own. member, organization: the active organization as its members and as its administrators see it.
 */
export const AUDIENCES = ['me', 'team', 'member', 'organization', 'platform'] as const;
export type Audience = (typeof AUDIENCES)[number];

const id = z.uuid();

export const reportDelegationSchema = z.strictObject({
  report: z.enum(REPORTS),
  audience: z.enum(AUDIENCES),
  /** Whose requests; no filter widens it. */
  scope: z.strictObject({
    /** null: of all organizations. */
    organizationId: id.nullable(),
    teamId: id.exactOptional(),
    userId: id.exactOptional(),
    /** Of a key of nobody in particular. */
    apiKeyId: id.exactOptional(),
  }),
});

export type ReportDelegation = Readonly<z.infer<typeof reportDelegationSchema>>;
export type DelegatedScope = ReportDelegation['scope'];
