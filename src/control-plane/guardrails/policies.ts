// Guardrail policies: those of the platform, and each organization's own (spec 7.7). The same operations for both.

import { z } from 'zod';
import { basedOn } from '../../domain/configuration/catalog-schema.ts';
import { guardrailDefinition } from '../../domain/guardrails/policy-definition.ts';
import type { GuardrailHistory, GuardrailVersion, StoredGuardrail } from '../../domain/guardrails/stored-policy.ts';
import { isRefused } from '../../domain/refusals/refused.ts';
import { basedOnQuery, removedAnswer } from '../catalog/providers.ts';
import { setByField, showMoment, shownMoment } from '../identity/fields.ts';
import { answerOf, shownOrRefused } from '../identity/outcome.ts';
import { ACTIVE, actorOf, idOf } from '../identity/tenancy.ts';
import { type Operation, type OperationSubject, operation } from '../operation.ts';
import type { GuardrailStore } from './guardrail-store.ts';

/** Whose policies an operation concerns. */
export interface PolicyOwner {
  /** The end of the operationId. */
  readonly suffix: string;
  /** null: the platform. */
  readonly organizationId: (input: OperationSubject) => string | null;
}

export const PLATFORM_POLICIES: PolicyOwner = { suffix: 'OfPlatform', organizationId: () => null };
export const OWN_POLICIES: PolicyOwner = { suffix: '', organizationId: (input) => ACTIVE.organizationId(input) };

const shownVersion = z.object({ version: z.int(), created_at: shownMoment, definition: guardrailDefinition });
const shownPolicy = shownVersion.extend({
  name: z.string(),
  set_by: setByField.meta({ description: 'Whose it is: only that party changes it.' }),
});
const shownHistory = shownPolicy.extend({
  versions: z.array(shownVersion).meta({ description: 'Newest first, the present one included.' }),
});

function showVersion({ version, createdAtMs, definition }: GuardrailVersion): z.output<typeof shownVersion> {
  return { version, created_at: showMoment(createdAtMs), definition };
}

function showPolicy(policy: StoredGuardrail): z.output<typeof shownPolicy> {
  return { name: policy.name, set_by: policy.setBy, ...showVersion(policy) };
}

function showHistory(policy: GuardrailHistory): z.output<typeof shownHistory> {
  return { ...showPolicy(policy), versions: policy.versions.map(showVersion) };
}

export function listPolicies(store: GuardrailStore, owner: PolicyOwner): Operation {
  return operation({
    id: `listGuardrailPolicies${owner.suffix}`,
    summary: 'Lists the guardrail policies that an organization can be screened by, each in its present version.',
    answer: z.object({ data: z.array(shownPolicy) }),
    run: async (input) =>
      shownOrRefused(await store.listPolicies(owner.organizationId(input)), (found) => found.map(showPolicy)),
  });
}

export function getPolicy(store: GuardrailStore, owner: PolicyOwner): Operation {
  return operation({
    id: `getGuardrailPolicy${owner.suffix}`,
    summary: 'Shows a guardrail policy with its versions.',
    answer: answerOf(shownHistory),
    run: async (input) => shownOrRefused(await store.getPolicy(referenceOf(owner, input)), showHistory),
  });
}

export function putPolicy(store: GuardrailStore, owner: PolicyOwner): Operation {
  return operation({
    id: `putGuardrailPolicy${owner.suffix}`,
    summary: 'Makes a guardrail policy, or its next version where it is different. Gateways use it within a second.',
    body: guardrailDefinition.safeExtend({ version: basedOn }),
    answer: answerOf(shownHistory),
    run: async (input) => {
      const { version = null, ...definition } = input.body;
      const reference = referenceOf(owner, input);
      const put = await store.putPolicy(actorOf(input.principal), { ...reference, definition, version });
      return shownOrRefused(put, showHistory);
    },
  });
}

export function removePolicy(store: GuardrailStore, owner: PolicyOwner): Operation {
  return operation({
    id: `removeGuardrailPolicy${owner.suffix}`,
    summary: 'Removes a guardrail policy that nobody is screened by.',
    query: basedOnQuery,
    answer: removedAnswer,
    run: async (input) => {
      const reference = referenceOf(owner, input);
      const { version = null } = input.query;
      if (version !== null) {
        const found = await store.getPolicy(reference);
        if (!isRefused(found) && found.version !== version)
          return { kind: 'conflict', reason: `"version" is not the present one, ${found.version}` };
      }
      return shownOrRefused(await store.removePolicy(actorOf(input.principal), reference), (done) => done);
    },
  });
}

function referenceOf(owner: PolicyOwner, input: OperationSubject) {
  return { organizationId: owner.organizationId(input), name: idOf(input.ids, 'policyName') };
}
