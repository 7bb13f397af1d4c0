// Stored guardrail policies with their versions, and who is screened by them, as administrators see them.

import type { OnFailure } from './policy.ts';
import type { GuardrailDefinition } from './policy-definition.ts';

/** A version in a list of them: a definition may have a quarter of a megabyte, so each is shown by itself. */
export interface GuardrailVersion {
  readonly version: number;
  readonly createdAtMs: number;
  readonly ruleCount: number;
}

interface NamedVersion extends GuardrailVersion {
  readonly name: string;
  /** The owner: only that party may change the policy. */
  readonly setBy: 'platform' | 'organization';
}

/** A policy in the list of all, in its present version. */
export interface ListedGuardrail extends NamedVersion {
  readonly mode: 'enforce' | 'observe';
  readonly isFloor: boolean;
  /** The first LISTED_RULES_MAX of them. */
  readonly rules: readonly Pick<GuardrailDefinition['rules'][number], 'id' | 'action' | 'stage'>[];
}

export const LISTED_RULES_MAX = 16;

export interface StoredGuardrail extends NamedVersion {
  /** Without secrets. */
  readonly definition: GuardrailDefinition;
}

export interface GuardrailHistory extends StoredGuardrail {
  /** Newest first, the present one included. */
  readonly versions: readonly GuardrailVersion[];
}

/** Which policies one party has assigned, by name; teams by slug, keys by id. */
export interface AssignedGuardrails {
  readonly policies: readonly string[];
  readonly teams: Readonly<Record<string, readonly string[]>>;
  readonly keys: Readonly<Record<string, readonly string[]>>;
}

export interface GuardrailAssignments {
  readonly onUnavailable: OnFailure;
  /** Names of the platform's policies by which everybody is screened. */
  readonly floor: readonly string[];
  readonly platform: AssignedGuardrails;
  readonly organization: AssignedGuardrails;
  /** Teams and keys that the organization excepts from the policies that it assigned to itself as a whole. */
  readonly except: { readonly teams: readonly string[]; readonly keys: readonly string[] };
}

/** What one party sets; what is left out stays as it is. */
export interface AssignParams {
  readonly setBy: 'platform' | 'organization';
  readonly onUnavailable?: OnFailure | undefined;
  readonly policies?: readonly string[] | undefined;
  readonly teams?: Readonly<Record<string, readonly string[]>> | undefined;
  readonly keys?: Readonly<Record<string, readonly string[]>> | undefined;
  readonly except?: { readonly teams: readonly string[]; readonly keys: readonly string[] } | undefined;
}
