// Policies of routing and of guardrails, as the API has them.

import type { AnswerOf } from '../api.ts';

export const ROUTING_POLICY = '/v1/admin/routing/policies/{policyName}';
export const GUARDRAIL_POLICY = '/v1/admin/active-org/guardrails/policies/{policyName}';

export type RoutingHistory = AnswerOf<typeof ROUTING_POLICY>['data'];
export type RoutingDefinition = RoutingHistory['definition'];
export type GuardrailHistory = AnswerOf<typeof GUARDRAIL_POLICY>['data'];
export type GuardrailDefinition = GuardrailHistory['definition'];
