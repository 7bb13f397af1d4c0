// The compiled sets of policies that a gateway process keeps. Where there are too many, the organization that has most
// of them loses its oldest: none makes another one's be compiled anew.

import type { CompiledPolicy } from '../domain/guardrails/compile-policy.ts';
import type { Policy } from '../domain/guardrails/policy.ts';

/** One has up to 0.2 MB, and takes a millisecond or two to make of policies that are prepared. */
const SETS_MAX = 256;

export interface CompiledSet {
  readonly policies: readonly Policy[];
  readonly compiled: CompiledPolicy | null;
}

export class CompiledSets {
  private readonly sets = new Map<string, Map<string, CompiledSet>>();
  private size = 0;

  /** `organization`: the empty text for sets of the platform's policies alone. */
  get(organization: string, name: string): CompiledSet | undefined {
    return this.sets.get(organization)?.get(name);
  }

  set(organization: string, name: string, set: CompiledSet): void {
    const own = this.sets.get(organization) ?? new Map<string, CompiledSet>();
    this.sets.set(organization, own);
    if (own.delete(name)) this.size -= 1;
    own.set(name, set);
    this.size += 1;
    if (this.size > SETS_MAX) this.dropOne();
  }

  private dropOne(): void {
    let [organization, most] = ['', new Map<string, CompiledSet>()];
    for (const [name, own] of this.sets) if (own.size > most.size) [organization, most] = [name, own];
    most.delete(most.keys().next().value as string);
    this.size -= 1;
    if (most.size === 0) this.sets.delete(organization);
  }
}
