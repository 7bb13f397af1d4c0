// The rows of the route table for guardrails: the platform's policies, an organization's own, and who is screened by
// which.

import { getAssignments, setAssignments } from '../control-plane/guardrails/assignments.ts';
import * as policies from '../control-plane/guardrails/policies.ts';
import { testText } from '../control-plane/guardrails/test-text.ts';
import { ACTIVE, NAMED } from '../control-plane/identity/tenancy.ts';
import type { RouteAccess } from '../control-plane/openapi/described-route.ts';
import {
  ACTIVE_ORGANIZATION_PATH,
  type ControlPlaneRow,
  ORGANIZATION_ADMIN,
  ORGANIZATION_PATH,
  PLATFORM_ADMIN,
  row,
} from './control-plane-row.ts';
import type { RouteParts } from './route-parts.ts';

export function guardrailRows(parts: RouteParts): ControlPlaneRow[] {
  const { guardrails } = parts;
  const own = `${ACTIVE_ORGANIZATION_PATH}/guardrails`;
  const named = `${ORGANIZATION_PATH}/guardrails/assignments`;
  return [
    ...policyRows(parts, '/v1/admin/guardrails', PLATFORM_ADMIN, policies.PLATFORM_POLICIES),
    ...policyRows(parts, own, ORGANIZATION_ADMIN, policies.OWN_POLICIES),
    row('GET', `${own}/assignments`, ORGANIZATION_ADMIN, getAssignments(guardrails, ACTIVE)),
    row('PUT', `${own}/assignments`, ORGANIZATION_ADMIN, setAssignments(guardrails, ACTIVE)),
    row('GET', named, PLATFORM_ADMIN, getAssignments(guardrails, NAMED)),
    row('PUT', named, PLATFORM_ADMIN, setAssignments(guardrails, NAMED)),
  ];
}

function policyRows(
  { guardrails, guardrailTrials }: RouteParts,
  path: string,
  access: RouteAccess,
  owner: policies.PolicyOwner,
): ControlPlaneRow[] {
  const policy = `${path}/policies/:policyName`;
  return [
    row('GET', `${path}/policies`, access, policies.listPolicies(guardrails, owner)),
    row('GET', policy, access, policies.getPolicy(guardrails, owner)),
    row('PUT', policy, access, policies.putPolicy(guardrails, owner)),
    row('DELETE', policy, access, policies.removePolicy(guardrails, owner)),
    row('POST', `${path}/test`, access, testText(guardrails, guardrailTrials, owner)),
  ];
}
