// The guardrail policies that a gateway process screens by: a snapshot in memory, replaced as a whole when a policy or
// an assignment changes. If a known change cannot be loaded, the organizations that it concerns get what they chose for
// that case.

import { deriveCloakKey } from '../../domain/guardrails/cloak-key.ts';
import { type CompiledPolicy, compilePolicy, setKeyOf } from '../../domain/guardrails/compile-policy.ts';
import { anchorGroups } from '../../domain/guardrails/detectors/anchor-groups.ts';
import {
  type GuardrailTable,
  platformPoliciesOf,
  policiesOf,
  type Screened,
} from '../../domain/guardrails/guardrail-table.ts';
import type { Policy } from '../../domain/guardrails/policy.ts';
import { preparedForUse } from '../../domain/guardrails/prepared-policy.ts';
import type { ScopedPrincipal } from '../../domain/identity/principal.ts';
import type { ApiName } from '../../domain/models/apis.ts';
import type { PoliciesInForce, PoliciesUnavailable } from '../../generation/guardrails/policies-in-force.ts';
import { BoundedMap } from '../../platform/bounded-map.ts';
import { tickEnd } from '../../platform/event-loop/tick.ts';
import type { Log } from '../../platform/log.ts';
import { Reloads } from '../../platform/reloads.ts';
import { CompiledSets } from './compiled-sets.ts';

const CLOAK_KEYS_MAX = 10_000;
/**
 * How many slices of preparation run in one tick. Most take some tenths of a millisecond or less; a slice that compiles
 * patterns takes some milliseconds.
 */
const SLICES_AT_ONCE = 8;
/**
 * For at most so many ticks of the event loop, a change waits until its policies are prepared: about five policies of
 * ten thousand words. The first request that needs another policy prepares it.
 */
const TICKS_MAX = 150;

interface Parts {
  readonly load: () => Promise<GuardrailTable>;
  /** The keys of placeholders are derived from the pepper, since it outlives a master key. */
  readonly pepper: Buffer;
  readonly log: Log;
}

interface InForce {
  /** The empty text: the platform's policies alone. */
  readonly organization: string;
  readonly key: string;
  readonly policies: readonly Policy[];
  readonly api: ApiName;
}

export class HeldGuardrails implements PoliciesInForce {
  private readonly parts: Parts;
  private table: GuardrailTable;
  private readonly compiled = new CompiledSets();
  /** The policies that each principal's requests are screened by, in the present snapshot. */
  private ofPrincipals = new WeakMap<ScopedPrincipal, Map<ApiName, InForce>>();
  private readonly cloakKeys = new BoundedMap<string, Uint8Array>(CLOAK_KEYS_MAX);
  /** Organizations with a change after which no load has begun; null: all of them. The present snapshot serves them. */
  private pending = new Set<string | null>();
  /** Organizations with a change that could not be loaded. */
  private readonly stale = new Set<string | null>();
  private readonly reloads: Reloads;

  static async load(parts: Parts): Promise<HeldGuardrails> {
    const table = await parts.load();
    await prepare(table, Number.POSITIVE_INFINITY, parts.log);
    return new HeldGuardrails(parts, table);
  }

  private constructor(parts: Parts, table: GuardrailTable) {
    this.parts = parts;
    this.table = table;
    this.reloads = new Reloads(
      () => this.reload(),
      (fault) => parts.log.warn({ err: fault }, 'the guardrail policies could not be loaded anew'),
    );
  }

  /** null: nobody is screened by anything. */
  get inForce(): PoliciesInForce | null {
    return this.table.policies.size === 0 && this.stale.size === 0 ? null : this;
  }

  of(principal: ScopedPrincipal, api: ApiName): CompiledPolicy | PoliciesUnavailable | null {
    if (this.isStale(principal.organizationId)) return this.unavailableTo(principal, api);
    const known = this.ofPrincipals.get(principal);
    const found = known?.get(api);
    if (found !== undefined) return this.compile(found);
    const inForce = inForceFor(policiesOf(this.table, principal), api);
    if (known === undefined) this.ofPrincipals.set(principal, new Map([[api, inForce]]));
    else known.set(api, inForce);
    return this.compile(inForce);
  }

  ofOrganization(organizationId: string, api: ApiName): CompiledPolicy | PoliciesUnavailable | null {
    if (this.isStale(organizationId)) return this.unavailableTo(wholeOf(organizationId), api);
    return this.compile(inForceFor(this.policiesOf(organizationId), api));
  }

  /** The policies of an organization as a whole. */
  policiesOf(organizationId: string): readonly Policy[] {
    return policiesOf(this.table, wholeOf(organizationId));
  }

  private isStale(organizationId: string): boolean {
    return this.stale.size > 0 && (this.stale.has(null) || this.stale.has(organizationId));
  }

  private unavailableTo(screened: Screened, api: ApiName): PoliciesUnavailable {
    const unavailable = this.table.organizations.get(screened.organizationId)?.onUnavailable ?? 'refuse';
    return { unavailable, platform: this.compile(inForceFor(platformPoliciesOf(this.table, screened), api)) };
  }

  private compile({ organization, key, policies, api }: InForce): CompiledPolicy | null {
    if (policies.length === 0) return null;
    const known = this.compiled.get(key);
    // The secret of an external detector can change without a new version of its policy.
    if (known?.policies.every((policy, index) => policy === policies[index]) === true) return known;
    const compiled = compilePolicy(policies, api);
    if (compiled !== null) this.compiled.set(organization, compiled);
    return compiled;
  }

  cloakKeyOf(organizationId: string): Uint8Array {
    const known = this.cloakKeys.get(organizationId);
    if (known !== undefined) return known;
    const key = deriveCloakKey(this.parts.pepper, organizationId);
    this.cloakKeys.set(organizationId, key);
    return key;
  }

  /** A change of an organization's policies or assignments, or of the platform's (null). Loads them anew. */
  changed(organizationId: string | null): void {
    this.pending.add(organizationId);
    this.reloads.due();
  }

  /**
   * Changes may have been missed. The present snapshot serves until it is loaded anew, since no organization's policies
   * are known to be old.
   */
  mayHaveChanged(): void {
    this.reloads.due();
  }

  close(): void {
    this.reloads.close();
  }

  private async reload(): Promise<void> {
    const concerned = this.pending;
    this.pending = new Set();
    try {
      const table = keepSame(this.table, await this.parts.load());
      await prepare(table, TICKS_MAX, this.parts.log);
      this.table = table;
      this.ofPrincipals = new WeakMap();
      for (const organizationId of concerned) this.stale.delete(organizationId);
    } catch (fault) {
      for (const organizationId of concerned) {
        this.stale.add(organizationId);
        this.pending.add(organizationId);
      }
      throw fault;
    }
  }
}

function wholeOf(organizationId: string): Screened {
  return { organizationId, teamId: null, apiKeyId: '' };
}

function inForceFor(policies: readonly Policy[], api: ApiName): InForce {
  const organization = policies.find(({ organizationId }) => organizationId !== null)?.organizationId ?? '';
  return { organization, key: setKeyOf(policies, api), policies, api };
}

/**
 * Prepares assigned policies in slices before they are in force: ten thousand words at once would take tens of
 * milliseconds.
 */
async function prepare({ policies, floor, organizations }: GuardrailTable, ticksMax: number, log: Log): Promise<void> {
  const assigned = [...organizations.values()].flatMap(({ assignments }) =>
    assignments.flatMap(({ policyId }) => policies.get(policyId) ?? []),
  );
  if (policies.size > 0) anchorGroups();
  let count = 0;
  for (const policy of new Set([...floor, ...assigned])) {
    try {
      for (const _ of preparedForUse(policy)) {
        count += 1;
        if (count === ticksMax * SLICES_AT_ONCE) return;
        if (count % SLICES_AT_ONCE === 0) await tickEnd();
      }
    } catch (fault) {
      // Only requests that the policy applies to may meet this fault.
      log.error({ err: fault, policy: policy.name }, 'a guardrail policy cannot be prepared');
    }
  }
}

/** Reuses the earlier snapshot's policy objects where nothing changed, so that they are not compiled again. */
function keepSame(earlier: GuardrailTable, { policies, floor, organizations }: GuardrailTable): GuardrailTable {
  const kept = (policy: Policy): Policy => {
    const before = earlier.policies.get(policy.id);
    return before !== undefined && isSame(before, policy) ? before : policy;
  };
  return {
    policies: new Map([...policies].map(([id, policy]) => [id, kept(policy)])),
    floor: floor.map(kept),
    organizations,
  };
}

function isSame(one: Policy, other: Policy): boolean {
  return (
    one.version === other.version &&
    one.externals.every(({ secret }, index) => secret === other.externals[index]?.secret)
  );
}
