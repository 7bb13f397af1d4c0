// Who is asking: a credential becomes a principal, from memory when it is known, else from the identity store (spec 5;
// DESIGN 5).

import { type OrganizationPermission, permitInference, permitInOrganization } from '../../domain/identity/permit.ts';
import type { Principal, ScopedPrincipal } from '../../domain/identity/principal.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Clock } from '../../platform/clock.ts';
import { FairQueue } from '../../platform/fair-queue.ts';
import { idsOf, KnownPrincipals } from './known-principals.ts';

/**
 * The identity store: a principal, null for a credential it does not know or has revoked; throws when it cannot be
 * asked.
 */
export type FindPrincipal = (credential: string) => Promise<Principal | null>;

/** Revocations are pushed; this is only the backstop for a lost notification (DESIGN 5). */
const TIME_TO_LIVE_MS = 30_000;
/** While the store is away nobody can be revoked in it: who is known goes on, as long as what is borrowed lasts. */
const AWAY_TIME_TO_LIVE_MS = 900_000;
/** A store that does not answer in this time is away: a request must not wait for a connection's own timeouts. */
const STORE_DEADLINE_MS = 2_000;
/** For so long one that was away is not asked again. */
const AWAY_MS = 250;
/** Longer than any key of ours, and than any setting can be: it is not looked up. */
const CREDENTIAL_LENGTH_MAX = 4_096;
/**
 * Credentials that this process has not seen good, most of them nobody's, take at most half of the connections to
 * Postgres (POSTGRES_CONNECTIONS_MAX), and few of them wait: a flood of them delays neither who is known nor what is
 * borrowed. Remembering which are bad would not help against ever new ones.
 */
const UNKNOWN_CREDENTIAL_LOOK_UPS = { underWayMax: 2, waitingMax: 200, waitMsMax: STORE_DEADLINE_MS } as const;

/** Whom a request comes from. */
export interface Sender {
  /** Its address, as far as that is known. */
  readonly source: string;
  /** It has presented a good credential: set here. */
  isKnown: boolean;
}

const unknownSender = (): Sender => ({ source: '', isKnown: false });

/**
 * A look-up under way, and what has changed since it began: what it says of that is of before the change, and is not
 * remembered.
 */
interface LookUp {
  readonly changedIds: Set<string>;
  /** Anything may have changed. */
  isOutdated: boolean;
}

export class Authenticator {
  private readonly findPrincipal: FindPrincipal;
  private readonly clock: Clock;
  private readonly known = new KnownPrincipals();
  private readonly unknownLookUps = new FairQueue(UNKNOWN_CREDENTIAL_LOOK_UPS);
  /**
   * Answers under way that another request for the same credential may share: no change has come since they were asked
   * for.
   */
  private readonly asking = new Map<string, Promise<Principal | Refusal>>();
  private readonly lookUps = new Set<LookUp>();
  /** The last answer of the store was none. */
  private isAway = false;
  private notBeforeMs = 0;

  constructor(findPrincipal: FindPrincipal, clock: Clock) {
    this.findPrincipal = findPrincipal;
    this.clock = clock;
  }

  /**
   * The inference key that is presented: nothing else generates, or touches what was generated. A promise only when the
   * credential is not known yet.
   */
  authenticateKey(
    authorization: string,
    apiKey: string | null,
    nowMs = this.clock.monotonicMs(),
    sender = unknownSender(),
  ): ScopedPrincipal | Refusal | Promise<ScopedPrincipal | Refusal> {
    const found = this.identify(authorization, apiKey, nowMs, sender);
    if (found instanceof Promise)
      return found.then((principal) => ('kind' in principal ? principal : permitInference(principal)));
    return 'kind' in found ? found : permitInference(found);
  }

  /**
   * Whoever presents a good credential and may do this in the organization it resolves to; a promise only when the
   * credential is not known yet.
   */
  authenticate(
    authorization: string,
    apiKey: string | null,
    permission: OrganizationPermission,
    nowMs = this.clock.monotonicMs(),
    sender = unknownSender(),
  ): ScopedPrincipal | Refusal | Promise<ScopedPrincipal | Refusal> {
    const found = this.identify(authorization, apiKey, nowMs, sender);
    if (found instanceof Promise)
      return found.then((principal) => ('kind' in principal ? principal : permitInOrganization(principal, permission)));
    return 'kind' in found ? found : permitInOrganization(found, permission);
  }

  /**
   * The principal of an Authorization header's value, whatever it may do, or the refusal; for routes that judge by more
   * than one permission. `apiKey`: the x-api-key header, in which the Messages dialect's clients present it; only
   * looked at without an Authorization.
   */
  identify(
    authorization: string,
    apiKey: string | null,
    nowMs = this.clock.monotonicMs(),
    sender = unknownSender(),
  ): Principal | Refusal | Promise<Principal | Refusal> {
    const presented = authorization === '' ? (apiKey ?? '') : authorization;
    const start = authorization === '' ? 0 : bearerStart(authorization);
    const end = endOf(presented);
    if (start >= end) return { kind: 'authentication_required' };
    if (end - start > CREDENTIAL_LENGTH_MAX) return { kind: 'unauthorized' };
    const credential = presented.slice(start, end);
    const known = this.known.get(credential);
    if (known !== undefined && known.state === 'good' && nowMs - known.askedAtMs < TIME_TO_LIVE_MS)
      return this.tell(known.principal, sender);
    const answer = this.isAway ? this.answerWhileAway(credential, nowMs, sender) : this.ask(credential, sender);
    return answer instanceof Promise ? answer.then((found) => this.tell(found, sender)) : this.tell(answer, sender);
  }

  /** One question at a time finds out whether the store is back; whoever is remembered does not wait for it. */
  private answerWhileAway(
    credential: string,
    nowMs: number,
    sender: Sender,
  ): Principal | Refusal | Promise<Principal | Refusal> {
    const remembered = this.rememberedOf(credential, nowMs);
    if (nowMs < this.notBeforeMs) return remembered;
    this.notBeforeMs = nowMs + STORE_DEADLINE_MS;
    const asking = this.ask(credential, sender);
    return 'kind' in remembered ? asking : remembered;
  }

  /** A failing identity store never yields a principal (DESIGN 5); it does not take one away either. */
  private rememberedOf(credential: string, nowMs: number): Principal | Refusal {
    const known = this.known.get(credential);
    const counts = known !== undefined && known.state !== 'changed' && nowMs - known.askedAtMs < AWAY_TIME_TO_LIVE_MS;
    return counts ? known.principal : UNAVAILABLE;
  }

  private tell(found: Principal | Refusal, sender: Sender): Principal | Refusal {
    const answer = this.refuseExpired(found);
    sender.isKnown = !('kind' in answer);
    return answer;
  }

  private refuseExpired(principal: Principal | Refusal): Principal | Refusal {
    if ('kind' in principal) return principal;
    return principal.expiresAtMs !== null && principal.expiresAtMs <= this.clock.nowMs()
      ? { kind: 'unauthorized' }
      : principal;
  }

  /** One question at a time for each credential, however many requests present it. */
  private ask(credential: string, sender: Sender): Promise<Principal | Refusal> {
    const asked = this.asking.get(credential);
    if (asked !== undefined) return asked;
    const look = () => this.askStore(credential);
    const found =
      this.known.get(credential) === undefined ? this.unknownLookUps.run(look, UNAVAILABLE, sender.source) : look();
    const answer: Promise<Principal | Refusal> = found.finally(() => {
      if (this.asking.get(credential) === answer) this.asking.delete(credential);
    });
    this.asking.set(credential, answer);
    return answer;
  }

  private askStore(credential: string): Promise<Principal | Refusal> {
    const lookUp: LookUp = { changedIds: new Set(), isOutdated: false };
    this.lookUps.add(lookUp);
    return new Promise((resolve) => {
      let isWaiting = true;
      const giveUp = (): void => {
        // What fails after its time limit says nothing about now.
        if (!isWaiting) return;
        isWaiting = false;
        const nowMs = this.clock.monotonicMs();
        this.isAway = true;
        this.notBeforeMs = nowMs + AWAY_MS;
        resolve(this.rememberedOf(credential, nowMs));
      };
      const timer = setTimeout(giveUp, STORE_DEADLINE_MS);
      this.findPrincipal(credential)
        .then((principal) => {
          this.isAway = false;
          // One that comes late is remembered as well.
          if (principal === null) this.known.remove(credential);
          else if (!isOfBefore(lookUp, principal)) this.known.remember(credential, principal, this.clock.monotonicMs());
          resolve(principal ?? { kind: 'unauthorized' });
        }, giveUp)
        .finally(() => {
          clearTimeout(timer);
          this.lookUps.delete(lookUp);
        });
    });
  }

  /**
   * The store is back, and changes may have been missed: everybody is asked for again before being let in, unless it
   * cannot be asked after all.
   */
  doubtAll(): void {
    this.isAway = false;
    this.known.doubtAll();
    this.outdateLookUps();
  }

  /**
   * Something about the credential, user, team or organization of this id has changed: who has it is asked for again,
   * and nobody else.
   */
  forget(id: string): void {
    this.known.markChanged(id);
    for (const lookUp of this.lookUps) lookUp.changedIds.add(id);
    // Whoever comes from now on does not share an answer of before.
    this.asking.clear();
  }

  /** A change that does not say whose: every credential is asked for again before it lets anybody in. */
  forgetAll(): void {
    this.known.markAllChanged();
    this.outdateLookUps();
  }

  private outdateLookUps(): void {
    for (const lookUp of this.lookUps) lookUp.isOutdated = true;
    this.asking.clear();
  }
}

const UNAVAILABLE: Refusal = { kind: 'authorization_unavailable' };

function isOfBefore({ changedIds, isOutdated }: LookUp, principal: Principal): boolean {
  if (isOutdated) return true;
  if (changedIds.size > 0) for (const id of idsOf(principal)) if (changedIds.has(id)) return true;
  return false;
}

/** Where the credential of `Bearer <credential>` begins; at its end where there is none. */
function bearerStart(authorization: string): number {
  const isBearer =
    authorization.startsWith(SCHEME) || authorization.slice(0, SCHEME.length).toLowerCase() === SCHEME.toLowerCase();
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
