// Remembers principals, findable by their credential and by every id that a change may name.

import type { Principal } from '../../domain/identity/principal.ts';

export interface Known {
  readonly principal: Principal;
  readonly askedAtMs: number;
  /**
   * - `uncertain`: a change may have been missed. The store is asked again, and the principal is used only if the store
   *   cannot answer.
   * - `changed`: the principal is out of date and is not used. The entry stays, because look-ups of credentials that
   *   were valid go before look-ups of unknown ones.
   */
  state: 'good' | 'uncertain' | 'changed';
}

const KNOWN_MAX = 50_000;

export class KnownPrincipals {
  /**
   * The key is the whole credential, so that a prefix or another case is a different credential. Only valid credentials
   * are here.
   */
  private readonly byCredential = new Map<string, Known>();
  /** The credentials of each id that idsOf lists. */
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

  /** Principals with this id are looked up again before they are accepted. */
  markChanged(id: string): void {
    for (const credential of this.byId.get(id) ?? []) {
      const known = this.byCredential.get(credential);
      if (known !== undefined) known.state = 'changed';
    }
  }

  markAllChanged(): void {
    for (const known of this.byCredential.values()) known.state = 'changed';
  }

  markAllUncertain(): void {
    for (const known of this.byCredential.values()) if (known.state === 'good') known.state = 'uncertain';
  }
}

/**
 * The ids of the credential, its user, its organization, and its team or the teams in which its user has a role. All of
 * them are UUIDs, so they need no label.
 */
export function* idsOf({ apiKeyId, userId, organizationId, teamId, teamPermissions }: Principal): Generator<string> {
  yield apiKeyId;
  if (userId !== null) yield userId;
  if (organizationId !== null) yield organizationId;
  if (teamId !== null) yield teamId;
  yield* teamPermissions.keys();
}
