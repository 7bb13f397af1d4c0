// Guardrail policies: those of the platform, and each organization's own (spec 7.7). The same operations for both.

import { z } from 'zod';
import { basedOn } from '../../domain/configuration/schema/catalog-schema.ts';
import { slugSchema } from '../../domain/configuration/schema/name-schemas.ts';
import { externalDefinition } from '../../domain/guardrails/external-definition.ts';
import { ACTIONS } from '../../domain/guardrails/policy.ts';
import { type GuardrailDefinition, guardrailDefinition } from '../../domain/guardrails/policy-definition.ts';
import {
  type GuardrailHistory,
  type GuardrailVersion,
  LISTED_RULES_MAX,
  type ListedGuardrail,
  type StoredGuardrail,
} from '../../domain/guardrails/stored-policy.ts';
import { isRefused } from '../../domain/refusals/refused.ts';
import { answerOf, removedAnswer, shownOrRefused } from '../answers.ts';
import { basedOnQuery } from '../catalog/providers.ts';
import { setByField, showMoment, shownMoment } from '../identity/fields.ts';
import { ACTIVE, actorOf, idOf } from '../identity/tenancy.ts';
import { type Operation, type OperationSubject, operation } from '../operation.ts';
import type { GuardrailStore } from './guardrail-store.ts';

/** The largest integer of a column in Postgres. */
const INTEGER_MAX = 2_147_483_647;

/** Whose policies an operation concerns. */
export interface PolicyOwner {
  /** The end of the operationId. */
  readonly suffix: string;
  /** null: the platform. */
  readonly organizationId: (input: OperationSubject) => string | null;
}

export const PLATFORM_POLICIES: PolicyOwner = { suffix: 'OfPlatform', organizationId: () => null };
export const OWN_POLICIES: PolicyOwner = { suffix: '', organizationId: (input) => ACTIVE.organizationId(input) };

const shownVersion = z.object({ version: z.int(), created_at: shownMoment, rule_count: z.int() });
const named = shownVersion.extend({
  name: z.string(),
  set_by: setByField.meta({ description: 'Who owns the policy: only that party changes it.' }),
});
const listedPolicy = named.extend({
  mode: z.enum(['enforce', 'observe']),
  floor: z.boolean().meta({ description: 'Everybody is screened by it.' }),
  rules: z
    .array(z.object({ id: z.string(), action: z.enum(ACTIONS), stage: z.enum(['input', 'output', 'both']) }))
    .meta({ description: `The first ${LISTED_RULES_MAX} rules.` }),
});
const shownDetector = externalDefinition.omit({ secret: true }).partial({ url: true }).meta({
  description: 'Without its secret. In the platform’s policies, organizations do not see the address either.',
});
const shownDefinition = z
  .strictObject({ ...guardrailDefinition.shape, external: z.record(slugSchema, shownDetector).optional() })
  .meta({ description: 'In the platform’s policies, organizations do not see words, patterns and `allow`.' });
const shownPolicy = named.extend({ definition: shownDefinition });
const shownHistory = shownPolicy.extend({
  versions: z.array(shownVersion).meta({ description: 'Newest first, the present one included.' }),
});
const versionQuery = z.object({
  version: z.coerce
    .number('must be a whole number')
    .int('must be a whole number')
    .min(1, 'must be at least 1')
    .max(INTEGER_MAX, 'is no version')
    .optional()
    .meta({ description: 'One of its versions. Left out: the present one.' }),
});

function showVersion({ version, createdAtMs, ruleCount }: GuardrailVersion): z.output<typeof shownVersion> {
  return { version, created_at: showMoment(createdAtMs), rule_count: ruleCount };
}

function showListed(policy: ListedGuardrail): z.output<typeof listedPolicy> {
  const { name, setBy, mode, isFloor, rules } = policy;
  return { name, set_by: setBy, ...showVersion(policy), mode, floor: isFloor, rules: [...rules] };
}

function showPolicy(policy: StoredGuardrail): z.output<typeof shownPolicy> {
  const { name, setBy, definition } = policy;
  return { name, set_by: setBy, ...showVersion(policy), definition };
}

/** `organizationId`: who looks at it; null: the platform. */
function showHistory(policy: GuardrailHistory, organizationId: string | null): z.output<typeof shownHistory> {
  const isPartlyHidden = policy.setBy === 'platform' && organizationId !== null;
  const definition = isPartlyHidden ? asOrganizationsSee(policy.definition) : policy.definition;
  return { ...showPolicy(policy), definition, versions: policy.versions.map(showVersion) };
}

/**
 * A policy of the platform, for an organization that chooses it or is screened by it: which rules there are, but not
 * what they look for. That may be words of another organization, or something that a reader could write around.
 */
function asOrganizationsSee(definition: GuardrailDefinition): z.output<typeof shownDefinition> {
  const { rules: written, allow: _, external, ...others } = definition;
  const rules = written.map(({ words: __, patterns: ___, ...rule }) => rule);
  if (external === undefined) return { ...others, rules };
  const detectors = Object.entries(external).map(([name, detector]) => {
    const shown: z.output<typeof shownDetector> = { ...detector };
    delete shown.url;
    return [name, shown];
  });
  return { ...others, rules, external: Object.fromEntries(detectors) };
}

export function listPolicies(store: GuardrailStore, owner: PolicyOwner): Operation {
  return operation({
    id: `listGuardrailPolicies${owner.suffix}`,
    summary: 'Lists the guardrail policies that an organization can be screened by, each in its present version.',
    answer: z.object({ data: z.array(listedPolicy) }),
    run: async (input) =>
      shownOrRefused(await store.listPolicies(owner.organizationId(input)), (found) => found.map(showListed)),
  });
}

export function getPolicy(store: GuardrailStore, owner: PolicyOwner): Operation {
  return operation({
    id: `getGuardrailPolicy${owner.suffix}`,
    summary: 'Shows a guardrail policy, or an earlier version of it, and which versions there are.',
    query: versionQuery,
    answer: answerOf(shownHistory),
    run: async (input) => {
      const { version = null } = input.query;
      const reference = referenceOf(owner, input);
      return shownOrRefused(await store.getPolicy({ ...reference, version }), (found) =>
        showHistory(found, reference.organizationId),
      );
    },
  });
}

export function putPolicy(store: GuardrailStore, owner: PolicyOwner): Operation {
  return operation({
    id: `putGuardrailPolicy${owner.suffix}`,
    summary: 'Makes a guardrail policy, or its next version where it is different. Gateways use it within a second.',
    body: guardrailDefinition.safeExtend({ version: basedOn }),
    answer: answerOf(shownPolicy),
    run: async (input) => {
      const { version = null, ...definition } = input.body;
      const reference = referenceOf(owner, input);
      const put = await store.putPolicy(actorOf(input.principal), { ...reference, definition, version });
      return shownOrRefused(put, showPolicy);
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
        const found = await store.getPolicy({ ...reference, version: null });
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
