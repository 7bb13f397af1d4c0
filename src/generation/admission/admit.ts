// Admits a request to a provider, or refuses it: bounds what the request can use and cost, and holds that of this
// process's quota leases (spec 7.4, 8). All or nothing: a refused request consumes nothing.

import { isCountable } from '../../domain/models/apis.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import { assert } from '../../platform/assert.ts';
import type { Clock } from '../../platform/clock.ts';
import type { WorkerPool } from '../../platform/worker-pool.ts';
import { Admission } from './admission.ts';
import { countInputAtMost } from './count-input.ts';
import type { Hold } from './leases/quota-lease.ts';
import type { QuotaLeases } from './leases/quota-leases.ts';
import type { Shortage } from './leases/remembered-refusal.ts';
import type { OrganizationQueues } from './organization-queues.ts';
import { type AdmissionParams, type HoldPlan, planHolds } from './plan-holds.ts';
import { refuseCredit, refuseUnderLimit } from './refuse-shortage.ts';

/** What admission needs of the process. */
export interface AdmissionParts {
  readonly leases: QuotaLeases;
  readonly workers: WorkerPool;
  /**
   * Limits the exact counts of each organization. A refused request pays nothing for its count, so an organization
   * whose credit runs out must not take more than its share of the workers.
   */
  readonly counts: OrganizationQueues;
  readonly clock: Clock;
}

/** Each organization has one count at a time and a few waiting. Requests beyond that are judged by their bytes. */
export const COUNTS = { underWayMax: 1, waitingMax: 8, waitMsMax: 2_000 } as const;

/** Returns a promise only when the store must be asked or the input counted. */
export function admit(
  params: AdmissionParams,
  parts: AdmissionParts,
): Admission | Refusal | Promise<Admission | Refusal> {
  const plan = planHolds(params, params.measure);
  if ('kind' in plan)
    return isAboveLimit(plan) && mayFitByCount(params, null) ? admitByCount(params, parts, plan) : plan;
  const held = parts.leases.holdAll(plan.needs);
  return held instanceof Promise ? admitLater(params, parts, plan, held) : new Admission(plan, held, parts.leases);
}

async function admitLater(
  params: AdmissionParams,
  parts: AdmissionParts,
  plan: HoldPlan,
  holding: Promise<readonly Hold[] | Shortage>,
): Promise<Admission | Refusal> {
  const held = await holding;
  if (!('reason' in held)) return new Admission(plan, held, parts.leases);
  const refusal = refuse(plan, held, parts);
  return mayFitByCount(params, held) ? admitByCount(params, parts, refusal) : refusal;
}

/**
 * The body's bytes bound its tokens, but there are several bytes to a token. A request that does not fit by its bytes
 * is judged once more, with the exact count as its bound.
 */
async function admitByCount(
  params: AdmissionParams,
  parts: AdmissionParts,
  refusal: Refusal,
): Promise<Admission | Refusal> {
  const { principal, dialect, served, measure, request } = params;
  const { api } = dialect;
  assert(isCountable(api), 'what fits by its count can be counted');
  const count = () => countInputAtMost(api, served.model.tokenizer, request.body, parts.workers);
  const counted = await parts.counts.run(principal.organizationId, count, null);
  if (counted === null || counted >= measure.bytes) return refusal;
  const plan = planHolds(params, { ...measure, bytes: counted });
  if ('kind' in plan) return plan;
  const held = await parts.leases.holdAll(plan.needs);
  return 'reason' in held ? refuse(plan, held, parts) : new Admission(plan, held, parts.leases);
}

/** Whether the request could be admitted if its input had no tokens. If not, its input is not worth counting. */
function mayFitByCount(params: AdmissionParams, shortage: Shortage | null): boolean {
  if (!isCountable(params.dialect.api)) return false;
  if (shortage !== null && (shortage.reason === 'frozen' || !DEPENDING_ON_INPUT.has(shortage.quota.kind))) return false;
  const floor = planHolds(params, { ...params.measure, bytes: 0 });
  if ('kind' in floor) return false;
  return (
    shortage === null ||
    floor.needs.every(({ quota, amount }) => quota.key !== shortage.quota.key || amount <= shortage.servableMax)
  );
}

const DEPENDING_ON_INPUT: ReadonlySet<string> = new Set(['credit', 'budget', 'tokens_per_minute']);

function isAboveLimit(refusal: Refusal): boolean {
  return refusal.kind === 'traffic_token_bound_required' && refusal.result !== undefined;
}

function refuse(plan: HoldPlan, shortage: Shortage, { clock }: AdmissionParts): Refusal {
  const { limits, price, budgetPrice, cheaper: advice } = plan;
  const cheaper = advice === undefined ? {} : { cheaper: advice };
  const limit = limits.find(({ id }) => id === shortage.quota.key);
  return limit === undefined
    ? refuseCredit(shortage, { authorizedAmount: price, ...cheaper })
    : refuseUnderLimit(limit, shortage, { authorizedAmount: budgetPrice, ...cheaper }, clock.nowMs());
}
