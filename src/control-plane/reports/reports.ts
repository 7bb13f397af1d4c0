// The reports and listings of usage and routing (spec 4.4, 4.10) as operations. Access is decided here,
// everything else in jobs.

import { z } from 'zod';
import type { Principal } from '../../domain/identity/principal.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Audience, DelegatedScope, Report } from '../../domain/reports/report-delegation.ts';
import { reportQuerySchema } from '../../domain/reports/report-query.ts';
import { assert } from '../../platform/assert.ts';
import type { IdentityStore } from '../identity/identity-store.ts';
import { ACTIVE, idOf } from '../identity/tenancy.ts';
import { type Operation, readIds } from '../operation.ts';
import type { ReportForwarder } from './forward-report.ts';
import {
  dailyAnswer,
  guardrailAnswer,
  requestAnswer,
  requestsAnswer,
  routingAnswer,
  seriesAnswer,
  usageAnswer,
} from './report-answers.ts';

interface ReportWords {
  /** The beginning of the operationId. */
  readonly id: string;
  /** The summary; the audience's words follow it. */
  readonly summary: string;
  /** null: the answer is CSV. */
  readonly answer: z.ZodType | null;
}

const WORDS: Readonly<Record<Report, ReportWords>> = {
  usage: { id: 'getUsage', summary: 'Sums up the usage', answer: usageAnswer },
  daily: { id: 'getDailyUsage', summary: 'Sums up by day the usage', answer: dailyAnswer },
  requests: { id: 'listRequests', summary: 'Lists the recorded requests', answer: requestsAnswer },
  request: { id: 'getRequest', summary: 'Shows all that is known of one recorded request', answer: requestAnswer },
  routing: { id: 'getRoutingReport', summary: 'Reports on auto routing for the requests', answer: routingAnswer },
  series: { id: 'getUsageSeries', summary: 'Sums up by hour or day, and by group, the usage', answer: seriesAnswer },
  guardrails: { id: 'getGuardrailReport', summary: 'Reports what guardrails found', answer: guardrailAnswer },
  focus: { id: 'exportCosts', summary: 'Exports the costs by day as CSV in the columns of FOCUS 1.2', answer: null },
};

/** The audience of a report: whose requests it covers. */
interface ReportAudience {
  readonly audience: Audience;
  /** The end of the operationId. */
  readonly suffix: string;
  readonly of: string;
  /** The scope of the principal, who asks with this query. What the principal may not see is refused as not found. */
  readonly scope: (
    principal: Principal,
    ids: Readonly<Record<string, string>>,
    query: string,
  ) => DelegatedScope | Promise<DelegatedScope | Refusal>;
}

/** Spec 5: all credentials of the person. A key without a user covers itself only. */
export const MINE: ReportAudience = {
  audience: 'me',
  suffix: 'OfMe',
  of: 'of the caller, across all of their credentials',
  scope: ({ organizationId, userId, apiKeyId }) => {
    assert(organizationId !== null, 'the route table lets nobody without an active organization here');
    return userId === null ? { organizationId, apiKeyId } : { organizationId, userId };
  },
};

export function ofTeam(identity: IdentityStore): ReportAudience {
  return {
    audience: 'team',
    suffix: 'OfTeam',
    of: 'of a team',
    async scope(principal, ids) {
      const team = { organizationId: ACTIVE.organizationId({ principal, ids }), teamId: idOf(ids, 'teamId') };
      return 'refused' in (await identity.getTeam(team)) ? { kind: 'not_found' } : team;
    },
  };
}

const activeOrganization: ReportAudience['scope'] = (principal, ids) => ({
  organizationId: ACTIVE.organizationId({ principal, ids }),
});

export const ORGANIZATION_FOR_MEMBERS: ReportAudience = {
  audience: 'member',
  suffix: 'OfActiveOrganization',
  of: 'of the active organization',
  // Every member may see sums of the organization. Sums of one person or key are for that person and the
  // administrators; an own provider key may be for one person alone, too. Sums of a tag are open, since a tag tells
  // projects apart.
  scope: (principal, ids, query) => {
    const isOpen = principal.permissions.includes('org.admin') || !namesOne(query);
    return (isOpen ? activeOrganization : MINE.scope)(principal, ids, query);
  },
};

const NAMING_ONE = ['user_id', 'api_key_id', 'credential_id'];

/** Whether the query names one person or key; it is read as jobs reads it. */
function namesOne(query: string): boolean {
  const fields = new URLSearchParams(query);
  return NAMING_ONE.some((name) => fields.has(name));
}

export const ORGANIZATION: ReportAudience = {
  audience: 'organization',
  suffix: 'OfOrganization',
  of: 'of the active organization, for its administrators',
  scope: activeOrganization,
};
export const PLATFORM: ReportAudience = {
  audience: 'platform',
  suffix: 'OfPlatform',
  of: 'of all organizations',
  scope: () => ({ organizationId: null }),
};

const CSV = {
  isCsv: true,
  answerHeaders: {
    'Content-Disposition': z.string().optional().meta({ description: 'The name of a file, where the answer is CSV.' }),
  },
} as const;

export function reportOperation(
  report: Report,
  { audience, suffix, of, scope }: ReportAudience,
  forwarder: ReportForwarder,
): Operation {
  const { id, summary, answer } = WORDS[report];
  const query = reportQuerySchema(report, audience);
  return {
    id: id + suffix,
    summary: `${summary} ${of}.`,
    query,
    body: null,
    answer,
    ...(answer === null || 'format' in query.shape ? CSV : {}),
    status: 200,
    isReport: true,
    async serve(exchange, authorize) {
      const principal = await authorize();
      if ('kind' in principal) return exchange.refuse(principal);
      const ids = readIds(exchange);
      const delegated = ids === null ? ({ kind: 'not_found' } as const) : await scope(principal, ids, exchange.query);
      if ('kind' in delegated) return exchange.refuse(delegated);
      const { requestId } = ids ?? {};
      forwarder.forward(exchange, {
        report,
        audience,
        scope: delegated,
        ...(report === 'request' && requestId !== undefined ? { requestId } : {}),
      });
    },
  };
}
