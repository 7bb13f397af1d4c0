// The one gate before a provider: what a request can use and cost is bounded and drawn from what this process has
// borrowed, or it is refused (spec 7.4, 8; DESIGN 4). All or nothing: a refused request consumes nothing.

import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { CountableApi } from '../../domain/usage/countable-apis.ts';
import type { Clock } from '../../platform/clock.ts';
import type { WorkerPool } from '../../platform/worker-pool.ts';
import { Admission } from './admission.ts';
import type { Draw, Shortage } from './allowance.ts';
import type { AllowanceLeases } from './allowance-leases.ts';
import { countInputAtMost } from './count-input.ts';
import type { OrganizationQueues } from './organization-queues.ts';
import { type AdmissionParams, type DrawingPlan, planDraws } from './plan-draws.ts';
import { refuseCredit, refuseUnderLimit } from './refuse-shortage.ts';

export interface Gate {
  readonly leases: AllowanceLeases;
  readonly workers: WorkerPool;
  /**
   * Exact counts cost whoever is refused nothing: an organization near its edge takes only its share of the workers.
   */
  readonly counts: OrganizationQueues;
  readonly clock: Clock;
}

/** Of one organization: one count at a time, and few that wait for it; the others are judged by their bytes. */
export const COUNTS = { underWayMax: 1, waitingMax: 8, waitMsMax: 2_000 } as const;

/** Synchronous where everything is warm; a promise only when something must be borrowed first. */
export function admit(question: AdmissionParams, gate: Gate): Admission | Refusal | Promise<Admission | Refusal> {
  const plan = planDraws(question, question.measure);
  if ('kind' in plan)
    return isAboveLimit(plan) && mayFitByCount(question, null) ? admitByCount(question, gate, plan) : plan;
  const drawing = gate.leases.drawAll(plan.wishes);
  return drawing instanceof Promise
    ? conclude(question, gate, plan, drawing)
    : new Admission(plan, drawing, gate.leases);
}

async function conclude(
  question: AdmissionParams,
  gate: Gate,
  plan: DrawingPlan,
  drawing: Promise<Drawn>,
): Promise<Admission | Refusal> {
  const drawn = await drawing;
  if (!('reason' in drawn)) return new Admission(plan, drawn, gate.leases);
  const refusal = refuse(plan, drawn, gate);
  return mayFitByCount(question, drawn) ? admitByCount(question, gate, refusal) : refusal;
}

type Drawn = readonly Draw[] | Shortage;

/**
 * Near the edge: the body's bytes bound its tokens, and are several times as many. Once, with the exact count as the
 * bound.
 */
async function admitByCount(question: AdmissionParams, gate: Gate, refusal: Refusal): Promise<Admission | Refusal> {
  const { principal, dialect, served, measure, request } = question;
  const count = () => countInputAtMost(dialect.api as CountableApi, served.model.tokenizer, request.body, gate.workers);
  const counted = await gate.counts.run(principal.organizationId, count, null);
  if (counted === null || counted >= measure.bytes) return refusal;
  const plan = planDraws(question, { ...measure, bytes: counted });
  if ('kind' in plan) return plan;
  const drawn = await gate.leases.drawAll(plan.wishes);
  return 'reason' in drawn ? refuse(plan, drawn, gate) : new Admission(plan, drawn, gate.leases);
}

/** Whether the request could be admitted if its input were next to nothing: else there is no use in counting it. */
function mayFitByCount(question: AdmissionParams, shortage: Shortage | null): boolean {
  if (!question.dialect.countable) return false;
  if (shortage !== null && (shortage.reason !== 'short' || !DEPENDING_ON_INPUT.has(shortage.pool.kind))) return false;
  const floor = planDraws(question, { ...question.measure, bytes: 0 });
  if ('kind' in floor) return false;
  return (
    shortage === null ||
    floor.wishes.every(({ pool, amount }) => pool.key !== shortage.pool.key || amount <= shortage.within)
  );
}

const DEPENDING_ON_INPUT: ReadonlySet<string> = new Set(['credit', 'budget', 'tokens_per_minute']);

function isAboveLimit(refusal: Refusal): boolean {
  return refusal.kind === 'traffic_token_bound_required' && refusal.result !== undefined;
}

function refuse({ limits, price }: DrawingPlan, shortage: Shortage, { clock }: Gate): Refusal {
  const limit = limits.find(({ id }) => id === shortage.pool.key);
  return limit === undefined ? refuseCredit(shortage, price) : refuseUnderLimit(limit, shortage, clock.nowMs());
}
