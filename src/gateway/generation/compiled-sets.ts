// The compiled sets of policies that a gateway process keeps. When there are too many, the least recently used one is
// dropped: of the organization with the most sets, if that has more than its share, else of all.

import type { CompiledPolicy } from '../../domain/guardrails/compile-policy.ts';

/** A set has up to 0.2 MB, and compiling it from prepared policies takes a millisecond or two. */
const SETS_MAX = 256;
/** An organization with more sets than this loses its own first. */
const SHARE = 32;

interface OwnedSet {
  /** The organization whose share the set counts for; the empty text: a set of the platform's policies alone. */
  readonly organization: string;
  readonly compiled: CompiledPolicy;
}

export class CompiledSets {
  /** By key. The least recently used one is the first. */
  private readonly sets = new Map<string, OwnedSet>();

  get(key: string): CompiledPolicy | undefined {
    const known = this.sets.get(key);
    if (known === undefined) return undefined;
    this.sets.delete(key);
    this.sets.set(key, known);
    return known.compiled;
  }

  set(organization: string, compiled: CompiledPolicy): void {
    const { key } = compiled;
    this.sets.delete(key);
    this.sets.set(key, { organization, compiled });
    if (this.sets.size > SETS_MAX) this.dropOne();
  }

  private dropOne(): void {
    const counts = new Map<string, number>();
    for (const { organization } of this.sets.values()) counts.set(organization, (counts.get(organization) ?? 0) + 1);
    const most = Math.max(...counts.values());
    for (const [key, { organization }] of this.sets) {
      if (most > SHARE && counts.get(organization) !== most) continue;
      this.sets.delete(key);
      return;
    }
  }
}
