// Gives the data plane the policies in force. The gateway holds them in memory, so that a request never waits for them.

import type { CompiledPolicy } from '../../domain/guardrails/compile-policy.ts';
import type { OnFailure } from '../../domain/guardrails/policy.ts';
import type { ScopedPrincipal } from '../../domain/identity/principal.ts';
import type { ApiName } from '../../domain/models/apis.ts';

/** A change of the policies could not be loaded. `unavailable` is the organization's choice for that case. */
export interface PoliciesUnavailable {
  readonly unavailable: OnFailure;
  /**
   * The platform's policies, as last loaded. They apply even if the organization chose to pass, since that choice
   * concerns its own policies. null: there are none.
   */
  readonly platform: CompiledPolicy | null;
}

/** The rules to screen by. null: there are none, and the request passes. */
export function rulesOf(found: CompiledPolicy | PoliciesUnavailable): CompiledPolicy | 'refuse' | null {
  if (!('unavailable' in found)) return found;
  return found.unavailable === 'refuse' ? 'refuse' : found.platform;
}

export interface PoliciesInForce {
  /** null: no rule applies to these requests. */
  of(principal: ScopedPrincipal, api: ApiName): CompiledPolicy | PoliciesUnavailable | null;
  /** The policies of an organization as a whole, without those of its teams and keys. */
  ofOrganization(organizationId: string, api: ApiName): CompiledPolicy | PoliciesUnavailable | null;
  /** The key from which an organization's placeholders are derived. */
  cloakKeyOf(organizationId: string): Uint8Array;
}
