// Tells what a draft of a routing policy would have decided for recently routed requests. Nothing is asked, sent or
// changed (spec 4.11).

import { z } from 'zod';
import { slugSchema } from '../../domain/configuration/schema/name-schemas.ts';
import { formatUsdString } from '../../domain/money/format.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Refused } from '../../domain/refusals/refused.ts';
import { type PolicyDefinition, policyDefinition } from '../../domain/routing/policy-definition.ts';
import type { ReplayCosts, ReplayReport } from '../../domain/routing/replay-policy.ts';
import { answerOf, shownOrRefused } from '../answers.ts';
import { idField } from '../identity/fields.ts';
import { type Operation, operation } from '../operation.ts';

const DAYS_MAX = 31;
const DAYS_DEFAULT = 7;
/** The limit in a gateway, which serves requests at the same time; the command has no such limit. */
const EXECUTIONS_MAX = 20_000;

export interface ReplayParams {
  /** The policy's name, or an unpublished definition. */
  readonly policy: string | PolicyDefinition;
  /** null: of all organizations. */
  readonly organizationId: string | null;
  readonly days: number;
  /** Only so many of the last executions, routed or not, are looked at. */
  readonly executionsMax: number;
}

interface ReplayedPolicy {
  readonly report: ReplayReport;
  /** All executions of the days were looked at. */
  readonly isWhole: boolean;
}

export type PolicyReplay = (params: ReplayParams) => Promise<ReplayedPolicy | Refused | Refusal>;

const replayBody = z.strictObject({
  policy: z
    .union([slugSchema, policyDefinition], 'must be the name of a policy, or a definition')
    .meta({ description: 'The name of a policy, or a definition that is not published.' }),
  organization_id: idField.optional().meta({ description: 'Left out: the requests of all organizations.' }),
  days: z
    .int('must be a whole number')
    .min(1, 'must be at least 1')
    .max(DAYS_MAX, `must be at most ${DAYS_MAX}`)
    .optional()
    .meta({ description: `Left out: ${DAYS_DEFAULT}.` }),
});

const usd = z.string().meta({ description: 'USD as a decimal string.' });
const shownCosts = z.object({
  cost: usd,
  baselined: z.int().meta({ description: 'How many requests have a baseline; the next two sums are over these.' }),
  baselined_cost: usd,
  baseline_cost: usd,
  savings: usd,
});

const shownReplay = z.object({
  days: z.int(),
  whole: z
    .boolean()
    .meta({ description: `false: of the days only the last ${EXECUTIONS_MAX} executions were looked at.` }),
  requests: z.int().meta({ description: 'Routed requests that have ended.' }),
  replayed: z.int(),
  continued: z.int().meta({ description: 'Of these, continuations, which stay on their model under any policy.' }),
  moved: z.int().meta({ description: 'Of these, those that would have had another model.' }),
  unreplayed: z.array(z.object({ reason: z.string(), requests: z.int() })),
  tiers: z.array(z.object({ tier: z.string(), was: z.int(), draft: z.int() })),
  compared: z
    .int()
    .meta({ description: 'How many have a known cost under both policies; the costs below are over these.' }),
  was: shownCosts,
  draft: shownCosts.meta({ description: 'The same tokens at the present price of the draft’s model.' }),
});

function showCosts({ cost, baselined, baselinedCost, baselineCost }: ReplayCosts): z.output<typeof shownCosts> {
  return {
    cost: formatUsdString(cost),
    baselined,
    baselined_cost: formatUsdString(baselinedCost),
    baseline_cost: formatUsdString(baselineCost),
    savings: formatUsdString(baselineCost - baselinedCost),
  };
}

function showReplay({ report, isWhole }: ReplayedPolicy, days: number): z.output<typeof shownReplay> {
  const { requests, replayed, continued, moved, compared } = report;
  return {
    days,
    whole: isWhole,
    requests,
    replayed,
    continued,
    moved,
    unreplayed: [...report.unreplayed].map(([reason, count]) => ({ reason, requests: count })),
    tiers: report.tiers.map((tier) => ({ ...tier })),
    compared,
    was: showCosts(report.was),
    draft: showCosts(report.draft),
  };
}

export function replayRouting(replay: PolicyReplay): Operation {
  return operation({
    id: 'replayRouting',
    summary: 'Tells what a routing policy would have made of the last days: shares of the tiers, cost and savings.',
    body: replayBody,
    answer: answerOf(shownReplay),
    run: async ({ body: { policy, organization_id: organizationId = null, days = DAYS_DEFAULT } }) => {
      const found = await replay({ policy, organizationId, days, executionsMax: EXECUTIONS_MAX });
      return 'kind' in found ? found : shownOrRefused(found, (replayed) => showReplay(replayed, days));
    },
  });
}
