// The compiled sets of policies that a gateway process keeps. Where there are too many, the one that was asked for
// least recently goes, of all, or of an organization that has more than its share.

import type { CompiledPolicy } from '../../domain/guardrails/compile-policy.ts';

/** One has up to 0.2 MB, and takes a millisecond or two to make of policies that are prepared. */
const SETS_MAX = 256;
/** Who has more than these loses its own first. */
const SHARE = 32;

interface OwnedSet {
  /** Whose share it counts for; the empty text: a set of the platform's policies alone. */
  readonly organization: string;
  readonly compiled: CompiledPolicy;
}

export class CompiledSets {
  /** By their keys. The one that was asked for least recently is the first. */
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
