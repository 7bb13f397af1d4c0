// What guardrail operations need of storage; the composition root provides it.

import type { GuardrailDefinition } from '../../domain/guardrails/policy-definition.ts';
import type {
  AssignParams,
  GuardrailAssignments,
  GuardrailHistory,
  ListedGuardrail,
  StoredGuardrail,
} from '../../domain/guardrails/stored-policy.ts';
import type { Actor } from '../../domain/identity/actor.ts';
import type { Answer } from '../identity/identity-store.ts';

/** `organizationId` null: the platform's. */
export interface GuardrailReference {
  readonly organizationId: string | null;
  readonly name: string;
}

export interface GuardrailStore {
  /** An organization's own and the platform's. */
  listPolicies(organizationId: string | null): Answer<readonly ListedGuardrail[]>;
  /** `version` null: the present one. */
  getPolicy(reference: GuardrailReference & { readonly version: number | null }): Answer<GuardrailHistory>;
  /** A changed definition becomes the next version. `version`: the one that it was made from; null: none is named. */
  putPolicy(
    actor: Actor,
    policy: GuardrailReference & { readonly definition: GuardrailDefinition; readonly version: number | null },
  ): Answer<StoredGuardrail>;
  removePolicy(actor: Actor, reference: GuardrailReference): Answer<{ readonly removed: true }>;
  getAssignments(organizationId: string): Answer<GuardrailAssignments>;
  setAssignments(actor: Actor, organizationId: string, params: AssignParams): Answer<GuardrailAssignments>;
}
