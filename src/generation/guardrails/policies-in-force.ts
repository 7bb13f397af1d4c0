// Where the data plane gets the policies in force from: held in memory by the gateway, so that a request never waits
// for them.

import type { CompiledPolicy } from '../../domain/guardrails/compile-policy.ts';
import type { OnFailure } from '../../domain/guardrails/policy.ts';
import type { ScopedPrincipal } from '../../domain/identity/principal.ts';
import type { ApiName } from '../../domain/models/apis.ts';

/** A change of the policies could not be loaded: what the organization chose for that case. */
export interface PoliciesUnavailable {
  readonly unavailable: OnFailure;
  /**
   * The platform's policies, as last loaded. They hold also where the organization chose to pass: that choice is about
   * its own policies. null: there are none.
   */
  readonly platform: CompiledPolicy | null;
}

/** What there is to go by. null: nothing, and the request passes. */
export function rulesOf(found: CompiledPolicy | PoliciesUnavailable): CompiledPolicy | 'refuse' | null {
  if (!('unavailable' in found)) return found;
  return found.unavailable === 'refuse' ? 'refuse' : found.platform;
}

export interface PoliciesInForce {
  /** null: no rule is for these requests. */
  of(principal: ScopedPrincipal, api: ApiName): CompiledPolicy | PoliciesUnavailable | null;
  /** Of an organization as a whole: without those of teams and keys. */
  ofOrganization(organizationId: string, api: ApiName): CompiledPolicy | PoliciesUnavailable | null;
  /** With which the placeholders of an organization are derived. */
  cloakKeyOf(organizationId: string): Uint8Array;
}
