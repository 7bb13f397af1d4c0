// Admits a request whose model is not chosen yet for the first of its candidates that admission grants. If admission
// grants none, neither the classifier nor the stores are asked about the request.

import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Admission } from './admission.ts';
import { type AdmissionParts, admit } from './admit.ts';
import { type AdmissionParams, type HoldPlan, planHolds } from './plan-holds.ts';

/**
 * `candidates` are tried in order; a refusal among them stands for a candidate that cannot serve anyway. When none is
 * granted, the first candidate's refusal is returned. The store is asked only when the leases do not suffice.
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

/** null: the candidate needs at least as much of every quota as one that was refused, so it is not tried. */
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
