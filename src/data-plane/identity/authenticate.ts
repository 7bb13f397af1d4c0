// Who is asking: a credential becomes a principal, from memory when it is known, else from the identity store (spec 5; DESIGN 5).

import { hash } from 'node:crypto';
import { type OrganizationPermission, permitInOrganization } from '../../domain/identity/permit.ts';
import type { Principal, ScopedPrincipal } from '../../domain/identity/principal.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Clock } from '../../platform/clock.ts';

/** The identity store: a principal, null for a credential it does not know or has revoked; throws when it cannot be asked. */
export type FindPrincipal = (credential: string) => Promise<Principal | null>;

/** Revocations are pushed; this is only the backstop for a lost notification (DESIGN 5). */
const TIME_TO_LIVE_MS = 30_000;
const KNOWN_MAX = 50_000;
/** No key of ours is longer; nothing longer is hashed or looked up. */
const CREDENTIAL_LENGTH_MAX = 256;

interface Known {
  readonly principal: Principal;
  readonly untilMs: number;
}

export class Authenticator {
  private readonly findPrincipal: FindPrincipal;
  private readonly clock: Clock;
  /** By hash of the whole credential: a prefix or a truncation can never hit another's entry, and no raw key is kept. */
  private readonly known = new Map<string, Known>();
  private readonly asking = new Map<string, Promise<Principal | Refusal>>();
  /** Grows with every invalidation, so that an answer asked for before it is not remembered after it. */
  private generation = 0;

  constructor(findPrincipal: FindPrincipal, clock: Clock) {
    this.findPrincipal = findPrincipal;
    this.clock = clock;
  }

  /** Whoever presents a good credential and may do this in the organization it resolves to; a promise only when the credential is not known yet. */
  authenticate(
    authorization: string,
    apiKey: string | null,
    permission: OrganizationPermission,
  ): ScopedPrincipal | Refusal | Promise<ScopedPrincipal | Refusal> {
    const found = this.identify(authorization, apiKey);
    if (found instanceof Promise) return found.then((principal) => ('kind' in principal ? principal : permitInOrganization(principal, permission)));
    return 'kind' in found ? found : permitInOrganization(found, permission);
  }

  /**
   * The principal of an Authorization header's value, whatever it may do, or the refusal; for routes that judge by more than one permission.
   * `apiKey`: the x-api-key header, in which the Messages dialect's clients present it; only looked at without an Authorization.
   */
  identify(authorization: string, apiKey: string | null): Principal | Refusal | Promise<Principal | Refusal> {
    const credential = authorization === '' ? (apiKey === '' ? null : apiKey) : bearerCredential(authorization);
    if (credential === null) return { kind: 'authentication_required' };
    if (credential.length > CREDENTIAL_LENGTH_MAX) return { kind: 'unauthorized' };
    const key = hash('sha256', credential, 'base64');
    const known = this.known.get(key);
    if (known !== undefined && known.untilMs > this.clock.monotonicMs()) return this.refuseExpired(known.principal);
    return this.ask(key, credential).then((found) => ('kind' in found ? found : this.refuseExpired(found)));
  }

  private refuseExpired(principal: Principal): Principal | Refusal {
    return principal.expiresAtMs !== null && principal.expiresAtMs <= this.clock.nowMs() ? { kind: 'unauthorized' } : principal;
  }

  /** One question at a time for each credential, however many requests present it. */
  private ask(key: string, credential: string): Promise<Principal | Refusal> {
    const asked = this.asking.get(key);
    if (asked !== undefined) return asked;
    const answer = this.askStore(key, credential).finally(() => this.asking.delete(key));
    this.asking.set(key, answer);
    return answer;
  }

  private async askStore(key: string, credential: string): Promise<Principal | Refusal> {
    const generation = this.generation;
    try {
      const principal = await this.findPrincipal(credential);
      if (principal === null) {
        this.known.delete(key);
        return { kind: 'unauthorized' };
      }
      if (generation === this.generation) this.remember(key, principal);
      return principal;
    } catch {
      // A failing identity store never yields a principal (DESIGN 5).
      return { kind: 'authorization_unavailable' };
    }
  }

  private remember(key: string, principal: Principal): void {
    if (this.known.size >= KNOWN_MAX) {
      const oldest = this.known.keys().next().value;
      if (oldest !== undefined) this.known.delete(oldest);
    }
    this.known.set(key, { principal, untilMs: this.clock.monotonicMs() + TIME_TO_LIVE_MS });
  }

  /** Forgets every credential: something about keys, roles or wallets has changed. They are asked for again at their next request. */
  forgetAll(): void {
    this.generation += 1;
    this.known.clear();
  }
}

/** The credential of `Bearer <credential>`; null when there is none. */
function bearerCredential(authorization: string): string | null {
  if (authorization.length < 8 || authorization.slice(0, 7).toLowerCase() !== 'bearer ') return null;
  const credential = authorization.slice(7).trim();
  return credential === '' ? null : credential;
}
