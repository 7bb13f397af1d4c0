// The principals that this process remembers: by their credential, and by every id through which a change reaches them.

import type { Principal } from '../../domain/identity/principal.ts';

export interface Known {
  readonly principal: Principal;
  readonly askedAtMs: number;
  /**
   * `doubted`: a change may have been missed; the store is asked again, and the principal counts only where it cannot
   * be asked. `changed`: something about the principal is different; it lets nobody in, and stays only because a
   * look-up of a credential that was good goes before those of strangers.
   */
  state: 'good' | 'doubted' | 'changed';
}

const KNOWN_MAX = 50_000;

export class KnownPrincipals {
  /**
   * The whole credential is the key: a prefix, a longer one or another case is another credential. Only good ones are
   * in here.
   */
  private readonly byCredential = new Map<string, Known>();
  /** Credentials by the ids of their principal (idsOf). */
  private readonly byId = new Map<string, Set<string>>();

  get(credential: string): Known | undefined {
    return this.byCredential.get(credential);
  }

  remember(credential: string, principal: Principal, askedAtMs: number): void {
    this.remove(credential);
    if (this.byCredential.size >= KNOWN_MAX) {
      const oldest = this.byCredential.keys().next().value;
      if (oldest !== undefined) this.remove(oldest);
    }
    this.byCredential.set(credential, { principal, askedAtMs, state: 'good' });
    for (const id of idsOf(principal)) {
      const credentials = this.byId.get(id);
      if (credentials === undefined) this.byId.set(id, new Set([credential]));
      else credentials.add(credential);
    }
  }

  remove(credential: string): void {
    const known = this.byCredential.get(credential);
    if (known === undefined) return;
    this.byCredential.delete(credential);
    for (const id of idsOf(known.principal)) {
      const credentials = this.byId.get(id);
      credentials?.delete(credential);
      if (credentials?.size === 0) this.byId.delete(id);
    }
  }

  /** Those with this id, and no others, are to be asked for again before they let anybody in. */
  markChanged(id: string): void {
    for (const credential of this.byId.get(id) ?? []) {
      const known = this.byCredential.get(credential);
      if (known !== undefined) known.state = 'changed';
    }
  }

  markAllChanged(): void {
    for (const known of this.byCredential.values()) known.state = 'changed';
  }

  doubtAll(): void {
    for (const known of this.byCredential.values()) if (known.state === 'good') known.state = 'doubted';
  }
}

/**
 * Of the credential itself, its user, its organization, and its team or the teams that its user has a role in. All are
 * UUIDs, so their kinds need no telling apart.
 */
export function* idsOf({ apiKeyId, userId, organizationId, teamId, teamPermissions }: Principal): Generator<string> {
  yield apiKeyId;
  if (userId !== null) yield userId;
  if (organizationId !== null) yield organizationId;
  if (teamId !== null) yield teamId;
  yield* teamPermissions.keys();
}
