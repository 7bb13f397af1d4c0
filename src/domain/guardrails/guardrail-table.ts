// All guardrail policies of the installation and who is screened by which, as a gateway holds them in memory.

import type { OnFailure, Policy } from './policy.ts';

export interface Assignment {
  readonly policyId: string;
  /** null in both: the organization as a whole. */
  readonly teamId: string | null;
  readonly keyId: string | null;
  readonly setBy: 'platform' | 'organization';
}

export interface OrganizationGuardrails {
  readonly onUnavailable: OnFailure;
  readonly exceptedTeams: ReadonlySet<string>;
  readonly exceptedKeys: ReadonlySet<string>;
  readonly assignments: readonly Assignment[];
}

export interface GuardrailTable {
  /** By id, in their newest versions. */
  readonly policies: ReadonlyMap<string, Policy>;
  /** The policies by which every organization is screened. */
  readonly floor: readonly Policy[];
  readonly organizations: ReadonlyMap<string, OrganizationGuardrails>;
}

export interface Screened {
  readonly organizationId: string;
  readonly teamId: string | null;
  readonly apiKeyId: string;
}

/** Platform floor, organization, team, key: lower scopes only add. Each policy once. */
export function policiesOf(table: GuardrailTable, screened: Screened): readonly Policy[] {
  return assigned(table, screened, () => true);
}

/** Those of the same policies that the platform has assigned: the organization cannot remove them. */
export function platformPoliciesOf(table: GuardrailTable, screened: Screened): readonly Policy[] {
  return assigned(table, screened, ({ setBy }) => setBy === 'platform');
}

function assigned(
  table: GuardrailTable,
  screened: Screened,
  counts: (assignment: Assignment) => boolean,
): readonly Policy[] {
  const organization = table.organizations.get(screened.organizationId);
  if (organization === undefined) return table.floor;
  const found = organization.assignments.flatMap((assignment) => {
    if (!counts(assignment) || !isFor(assignment, organization, screened)) return [];
    const policy = table.policies.get(assignment.policyId);
    return policy === undefined ? [] : [policy];
  });
  return [...new Set([...table.floor, ...found])];
}

function isFor(assignment: Assignment, organization: OrganizationGuardrails, screened: Screened): boolean {
  const { teamId, keyId, setBy } = assignment;
  if (teamId !== null) return teamId === screened.teamId;
  if (keyId !== null) return keyId === screened.apiKeyId;
  // An organization can except teams and keys only from policies that it assigned itself.
  return setBy === 'platform' || !isExcepted(organization, screened);
}

function isExcepted({ exceptedTeams, exceptedKeys }: OrganizationGuardrails, screened: Screened): boolean {
  return exceptedKeys.has(screened.apiKeyId) || (screened.teamId !== null && exceptedTeams.has(screened.teamId));
}
