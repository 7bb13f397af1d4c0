// Admits a request whose model is not chosen yet for the first of its candidates that admission grants, so that nothing
// is asked or looked up for one that no candidate would be admitted for.

import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Admission } from './admission.ts';
import { admit, type Gate } from './admit.ts';
import { type AdmissionParams, type DrawingPlan, planDraws } from './plan-draws.ts';

/**
 * `candidates`: in the order in which they are tried; a refusal is a candidate that cannot serve anyway. Where none is
 * granted the refusal is the first one's. From memory where everything is warm.
 */
export async function admitFirst(
  candidates: readonly (AdmissionParams | Refusal)[],
  gate: Gate,
): Promise<Admission | Refusal> {
  const refused: DrawingPlan[] = [];
  let refusal: Refusal | null = null;
  for (const candidate of candidates) {
    const admission = await admitUnlessDearer(candidate, refused, gate);
    if (admission === null) continue;
    if (!('kind' in admission)) return admission;
    refusal ??= admission;
  }
  return refusal ?? { kind: 'billing_unavailable' };
}

/** null: it needs at least as much of everything as a candidate that was refused, and is not tried. */
function admitUnlessDearer(
  candidate: AdmissionParams | Refusal,
  refused: DrawingPlan[],
  gate: Gate,
): Admission | Refusal | null | Promise<Admission | Refusal> {
  if ('kind' in candidate) return candidate;
  const plan = planDraws(candidate, candidate.measure);
  if ('kind' in plan) return admit(candidate, gate);
  if (refused.some((lesser) => needsAsMuch(plan, lesser))) return null;
  refused.push(plan);
  return admit(candidate, gate);
}

function needsAsMuch(plan: DrawingPlan, lesser: DrawingPlan): boolean {
  return lesser.wishes.every(({ pool, amount }) =>
    plan.wishes.some((wish) => wish.pool.key === pool.key && wish.amount >= amount),
  );
}
