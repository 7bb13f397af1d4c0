// Routing policies and guardrail policies: their addresses and types in the API, and which one is open in the editor.

import { computed } from '@preact/signals';
import type { AnswerOf } from '../api.ts';
import type { paths } from '../api-types';
import { params, setParams } from './address.ts';
import { mayLeave } from './drafts.ts';
import type { Permission } from './session.ts';

export const ROUTING_POLICY = '/v1/admin/routing/policies/{policyName}';
const ORGANIZATION_PATHS = {
  policies: '/v1/admin/active-org/guardrails/policies',
  policy: '/v1/admin/active-org/guardrails/policies/{policyName}',
  test: '/v1/admin/active-org/guardrails/test',
  report: '/v1/admin/active-org/guardrails/report',
} as const;
const PLATFORM_PATHS = {
  policies: '/v1/admin/guardrails/policies',
  policy: '/v1/admin/guardrails/policies/{policyName}',
  test: '/v1/admin/guardrails/test',
  report: '/v1/admin/guardrails/report',
} as const satisfies Record<keyof typeof ORGANIZATION_PATHS, keyof paths>;

/** Whose guardrail policies are shown and changed: an organization's own, or the platform's. */
export interface GuardrailOwner {
  readonly setBy: 'organization' | 'platform';
  readonly permission: Permission;
  readonly paths: typeof ORGANIZATION_PATHS;
}

export const ORGANIZATION_OWNED: GuardrailOwner = {
  setBy: 'organization',
  permission: 'org.admin',
  paths: ORGANIZATION_PATHS,
};
/** The platform's routes take and answer the same bodies, so this shares the organization's types. */
export const PLATFORM_OWNED: GuardrailOwner = {
  setBy: 'platform',
  permission: 'platform.admin',
  paths: PLATFORM_PATHS as unknown as typeof ORGANIZATION_PATHS,
};

/** The value in the address, instead of a policy's name, that opens a new policy. No policy can have this name. */
export const NEW_POLICY = '+';

/** The name of the policy that the address opens in the editor; undefined if it opens none. */
export const openedPolicy = computed(() => params.value['policy']);

/** Opens a policy in the editor, or none for null, unless the person keeps a draft that would be lost. */
export function openPolicy(name: string | null): void {
  if (mayLeave()) setParams({ policy: name });
}

export type RoutingHistory = AnswerOf<typeof ROUTING_POLICY>['data'];
export type RoutingDefinition = RoutingHistory['definition'];
export type GuardrailHistory = AnswerOf<typeof ORGANIZATION_PATHS.policy>['data'];
export type GuardrailDefinition = GuardrailHistory['definition'];
export type GuardrailPolicies = AnswerOf<typeof ORGANIZATION_PATHS.policies>;
export type GuardrailPolicy = GuardrailPolicies['data'][number];
export type GuardrailReport = AnswerOf<typeof ORGANIZATION_PATHS.report>;
