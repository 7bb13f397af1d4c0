// Provides the guardrail operations of storage to the control plane.

import type { GuardrailStore } from '../../control-plane/guardrails/guardrail-store.ts';
import { getAssignments, setAssignments } from '../../storage/postgres/guardrails/assignments.ts';
import { getPolicy, listPolicies, putPolicy, removePolicy } from '../../storage/postgres/guardrails/policies.ts';
import type { Postgres } from '../../storage/postgres/pool.ts';
import type { SecretBox } from '../../storage/postgres/secret-box.ts';

export function createGuardrailStore(postgres: Postgres, { box }: { readonly box: SecretBox }): GuardrailStore {
  return {
    listPolicies: (organizationId) => listPolicies(postgres, organizationId),
    getPolicy: (reference) => getPolicy(postgres, reference),
    putPolicy: (actor, policy) => putPolicy(postgres, box, actor, policy),
    removePolicy: (actor, reference) => removePolicy(postgres, actor, reference),
    getAssignments: (organizationId) => getAssignments(postgres, organizationId),
    setAssignments: (actor, organizationId, params) => setAssignments(postgres, actor, organizationId, params),
  };
}
