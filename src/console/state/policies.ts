// Addresses and types of routing policies and guardrail policies in the API.

import type { AnswerOf } from '../api.ts';
import type { paths } from '../api-types';
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

export type RoutingHistory = AnswerOf<typeof ROUTING_POLICY>['data'];
export type RoutingDefinition = RoutingHistory['definition'];
export type GuardrailHistory = AnswerOf<typeof ORGANIZATION_PATHS.policy>['data'];
export type GuardrailDefinition = GuardrailHistory['definition'];
export type GuardrailPolicies = AnswerOf<typeof ORGANIZATION_PATHS.policies>;
export type GuardrailPolicy = GuardrailPolicies['data'][number];
export type GuardrailReport = AnswerOf<typeof ORGANIZATION_PATHS.report>;
