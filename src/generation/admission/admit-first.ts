// Admits a request whose model is not chosen yet for the first of its candidates that admission grants, so that the
// classifier and the stores are not asked for a request that no candidate would be admitted for.

import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Admission } from './admission.ts';
import { type AdmissionParts, admit } from './admit.ts';
import { type AdmissionParams, type HoldPlan, planHolds } from './plan-holds.ts';

/**
 * `candidates`: in the order in which they are tried; a refusal is a candidate that cannot serve anyway. Where none is
 * granted the refusal is the first one's. While the leases suffice the store is not asked.
 */
export async function admitFirst(
  candidates: readonly (AdmissionParams | Refusal)[],
  parts: AdmissionParts,
): Promise<Admission | Refusal> {
  const refused: HoldPlan[] = [];
  let refusal: Refusal | null = null;
  for (const candidate of candidates) {
    const admission = await admitUnlessDearer(candidate, refused, parts);
    if (admission === null) continue;
    if (!('kind' in admission)) return admission;
    refusal ??= admission;
  }
  return refusal ?? { kind: 'billing_unavailable' };
}

/** null: it needs at least as much of everything as a candidate that was refused, and is not tried. */
function admitUnlessDearer(
  candidate: AdmissionParams | Refusal,
  refused: HoldPlan[],
  parts: AdmissionParts,
): Admission | Refusal | null | Promise<Admission | Refusal> {
  if ('kind' in candidate) return candidate;
  const plan = planHolds(candidate, candidate.measure);
  if ('kind' in plan) return admit(candidate, parts);
  if (refused.some((lesser) => needsAsMuch(plan, lesser))) return null;
  refused.push(plan);
  return admit(candidate, parts);
}

function needsAsMuch(plan: HoldPlan, lesser: HoldPlan): boolean {
  return lesser.needs.every(({ quota, amount }) =>
    plan.needs.some((need) => need.quota.key === quota.key && need.amount >= amount),
  );
}
