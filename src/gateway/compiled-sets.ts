// The compiled sets of policies that a gateway process keeps. Where there are too many, the one that was asked for
// least recently goes, of all, or of an organization that has more than its share.

import type { CompiledPolicy } from '../domain/guardrails/compile-policy.ts';
import type { Policy } from '../domain/guardrails/policy.ts';

/** One has up to 0.2 MB, and takes a millisecond or two to make of policies that are prepared. */
const SETS_MAX = 256;
/** Who has more than these loses its own first. */
const SHARE = 32;

export interface CompiledSet {
  readonly policies: readonly Policy[];
  readonly compiled: CompiledPolicy | null;
}

interface OwnedSet extends CompiledSet {
  readonly organization: string;
}

export class CompiledSets {
  /** The one that was asked for least recently is the first. */
  private readonly sets = new Map<string, OwnedSet>();

  /** `organization`: the empty text for sets of the platform's policies alone. */
  get(organization: string, name: string): CompiledSet | undefined {
    const id = `${organization} ${name}`;
    const known = this.sets.get(id);
    if (known === undefined) return undefined;
    this.sets.delete(id);
    this.sets.set(id, known);
    return known;
  }

  set(organization: string, name: string, set: CompiledSet): void {
    const id = `${organization} ${name}`;
    this.sets.delete(id);
    this.sets.set(id, { ...set, organization });
    if (this.sets.size > SETS_MAX) this.dropOne();
  }

  private dropOne(): void {
    const counts = new Map<string, number>();
    for (const { organization } of this.sets.values()) counts.set(organization, (counts.get(organization) ?? 0) + 1);
    const most = Math.max(...counts.values());
    for (const [id, { organization }] of this.sets) {
      if (most > SHARE && counts.get(organization) !== most) continue;
      this.sets.delete(id);
      return;
    }
  }
}
