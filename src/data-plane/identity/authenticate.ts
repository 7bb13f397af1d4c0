// Who is asking: a credential becomes a principal, from memory when it is known, else from the identity store (spec 5; DESIGN 5).

import { type OrganizationPermission, permitInference, permitInOrganization } from '../../domain/identity/permit.ts';
import type { Principal, ScopedPrincipal } from '../../domain/identity/principal.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Clock } from '../../platform/clock.ts';
import { SipHash } from './sip-hash/sip-hash.ts';

/** The identity store: a principal, null for a credential it does not know or has revoked; throws when it cannot be asked. */
export type FindPrincipal = (credential: string) => Promise<Principal | null>;

/** Revocations are pushed; this is only the backstop for a lost notification (DESIGN 5). */
const TIME_TO_LIVE_MS = 30_000;
/** While the store is away nobody can be revoked in it: who is known goes on, as long as what is borrowed lasts. */
const AWAY_TIME_TO_LIVE_MS = 900_000;
/** A store that does not answer in this time is away: a request must not wait for a connection's own timeouts. */
const STORE_DEADLINE_MS = 2_000;
/** For so long one that was away is not asked again. */
const AWAY_MS = 250;
const KNOWN_MAX = 50_000;

interface Known {
  readonly principal: Principal;
  readonly askedAtMs: number;
  isDoubted: boolean;
}

export class Authenticator {
  private readonly findPrincipal: FindPrincipal;
  private readonly clock: Clock;
  /** By hash of the whole credential: a prefix or a truncation can never hit another's entry, and no raw key is kept. */
  private readonly known = new Map<string, Known>();
  private readonly hash = new SipHash();
  private readonly asking = new Map<string, Promise<Principal | Refusal>>();
  /** Grows with every invalidation, so that an answer asked for before it is not remembered after it. */
  private generation = 0;
  /** The last answer of the store was none. */
  private isAway = false;
  private notBeforeMs = 0;

  constructor(findPrincipal: FindPrincipal, clock: Clock) {
    this.findPrincipal = findPrincipal;
    this.clock = clock;
  }

  /** The inference key that is presented: nothing else generates, or touches what was generated. A promise only when the credential is not known yet. */
  authenticateKey(
    authorization: string,
    apiKey: string | null,
    nowMs = this.clock.monotonicMs(),
  ): ScopedPrincipal | Refusal | Promise<ScopedPrincipal | Refusal> {
    const found = this.identify(authorization, apiKey, nowMs);
    if (found instanceof Promise) return found.then((principal) => ('kind' in principal ? principal : permitInference(principal)));
    return 'kind' in found ? found : permitInference(found);
  }

  /** Whoever presents a good credential and may do this in the organization it resolves to; a promise only when the credential is not known yet. */
  authenticate(
    authorization: string,
    apiKey: string | null,
    permission: OrganizationPermission,
    nowMs = this.clock.monotonicMs(),
  ): ScopedPrincipal | Refusal | Promise<ScopedPrincipal | Refusal> {
    const found = this.identify(authorization, apiKey, nowMs);
    if (found instanceof Promise) return found.then((principal) => ('kind' in principal ? principal : permitInOrganization(principal, permission)));
    return 'kind' in found ? found : permitInOrganization(found, permission);
  }

  /**
   * The principal of an Authorization header's value, whatever it may do, or the refusal; for routes that judge by more than one permission.
   * `apiKey`: the x-api-key header, in which the Messages dialect's clients present it; only looked at without an Authorization.
   */
  identify(authorization: string, apiKey: string | null, nowMs = this.clock.monotonicMs()): Principal | Refusal | Promise<Principal | Refusal> {
    const presented = authorization === '' ? (apiKey ?? '') : authorization;
    const start = authorization === '' ? 0 : bearerStart(authorization);
    const end = endOf(presented);
    if (start >= end) return { kind: 'authentication_required' };
    const key = this.hash.of(presented, start, end);
    // No key of ours is so long, or has another character than those of ASCII.
    if (key === null) return { kind: 'unauthorized' };
    const known = this.known.get(key);
    if (known !== undefined && !known.isDoubted && nowMs - known.askedAtMs < TIME_TO_LIVE_MS) return this.refuseExpired(known.principal);
    const credential = presented.slice(start, end);
    const answer = this.isAway ? this.answerWhileAway(key, credential, nowMs) : this.ask(key, credential);
    return answer instanceof Promise ? answer.then((found) => this.refuseExpired(found)) : this.refuseExpired(answer);
  }

  /** One question at a time finds out whether the store is back; whoever is remembered does not wait for it. */
  private answerWhileAway(key: string, credential: string, nowMs: number): Principal | Refusal | Promise<Principal | Refusal> {
    const remembered = this.rememberedOf(key, nowMs);
    if (nowMs < this.notBeforeMs) return remembered;
    this.notBeforeMs = nowMs + STORE_DEADLINE_MS;
    const asking = this.ask(key, credential);
    return 'kind' in remembered ? asking : remembered;
  }

  /** A failing identity store never yields a principal (DESIGN 5); it does not take one away either. */
  private rememberedOf(key: string, nowMs: number): Principal | Refusal {
    const known = this.known.get(key);
    return known !== undefined && nowMs - known.askedAtMs < AWAY_TIME_TO_LIVE_MS ? known.principal : { kind: 'authorization_unavailable' };
  }

  private refuseExpired(principal: Principal | Refusal): Principal | Refusal {
    if ('kind' in principal) return principal;
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

  private askStore(key: string, credential: string): Promise<Principal | Refusal> {
    const generation = this.generation;
    return new Promise((resolve) => {
      let isWaiting = true;
      const giveUp = (): void => {
        // What fails after its time limit says nothing about now.
        if (!isWaiting) return;
        isWaiting = false;
        const nowMs = this.clock.monotonicMs();
        this.isAway = true;
        this.notBeforeMs = nowMs + AWAY_MS;
        resolve(this.rememberedOf(key, nowMs));
      };
      const timer = setTimeout(giveUp, STORE_DEADLINE_MS);
      this.findPrincipal(credential)
        .then((principal) => {
          this.isAway = false;
          // One that comes late is remembered as well.
          if (principal === null) this.known.delete(key);
          else if (generation === this.generation) this.remember(key, principal);
          resolve(principal ?? { kind: 'unauthorized' });
        }, giveUp)
        .finally(() => clearTimeout(timer));
    });
  }

  private remember(key: string, principal: Principal): void {
    if (this.known.size >= KNOWN_MAX) {
      const oldest = this.known.keys().next().value;
      if (oldest !== undefined) this.known.delete(oldest);
    }
    this.known.set(key, { principal, askedAtMs: this.clock.monotonicMs(), isDoubted: false });
  }

  /** The store is back, and changes may have been missed: everybody is asked for again before being let in, unless it cannot be asked after all. */
  doubtAll(): void {
    this.generation += 1;
    this.isAway = false;
    for (const known of this.known.values()) known.isDoubted = true;
  }

  /** Forgets every credential: something about keys, roles or wallets has changed. They are asked for again at their next request. */
  forgetAll(): void {
    this.generation += 1;
    this.known.clear();
  }
}

/** Where the credential of `Bearer <credential>` begins; at its end where there is none. */
function bearerStart(authorization: string): number {
  const isBearer = authorization.startsWith(SCHEME) || authorization.slice(0, SCHEME.length).toLowerCase() === SCHEME.toLowerCase();
  let start = isBearer ? SCHEME.length : authorization.length;
  while (isBlank(authorization, start)) start += 1;
  return start;
}

/** Where the value of a header ends, without the blanks behind it. */
function endOf(value: string): number {
  let end = value.length;
  while (end > 0 && isBlank(value, end - 1)) end -= 1;
  return end;
}

function isBlank(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code === SPACE || code === TAB;
}

/** As every client writes it; its case does not matter (RFC 9110 11.1). */
const SCHEME = 'Bearer ';
const SPACE = 0x20;
const TAB = 0x09;
