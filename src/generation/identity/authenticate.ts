// Turns a credential into a principal: from memory if it is known, otherwise from the identity store (spec 5).

import { SESSION_PREFIX } from '../../domain/identity/generate-credential.ts';
import { permitInference } from '../../domain/identity/permit.ts';
import type { Principal, ScopedPrincipal } from '../../domain/identity/principal.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Clock } from '../../platform/clock.ts';
import { withDeadline } from '../../platform/deadline.ts';
import { FairQueue } from '../../platform/fair-queue.ts';
import { idsOf, KnownPrincipals } from './known-principals.ts';

/**
 * Asks the identity store for the principal of a credential. null: the credential is unknown or revoked. Throws when
 * the store cannot be asked.
 */
export type FindPrincipal = (credential: string) => Promise<Principal | null>;

/** Revocations are pushed; this is only the backstop for a lost notification. */
const TIME_TO_LIVE_MS = 30_000;
/**
 * While the store is away, nobody can be revoked and nothing be changed in it. What is known of principals and their
 * own provider keys stays valid this long.
 */
export const AWAY_TIME_TO_LIVE_MS = 3_600_000;
/** A store that does not answer in this time is away: a request must not wait for a connection's own timeouts. */
const STORE_DEADLINE_MS = 2_000;
/** How long a store that was away is not asked again. */
const AWAY_MS = 250;
/** Longer than any credential can be. A longer text is not looked up. */
const CREDENTIAL_LENGTH_MAX = 4_096;
/**
 * Credentials that are not known to be valid take at most half of the Postgres connections (POSTGRES_CONNECTIONS_MAX),
 * and few of their look-ups wait. So a flood of them delays neither known credentials nor quota leases. Remembering
 * invalid credentials would not help, because an attacker can send new ones.
 */
const UNKNOWN_CREDENTIAL_LOOK_UPS = { underWayMax: 2, waitingMax: 200, waitMsMax: STORE_DEADLINE_MS } as const;

/** The sender of a request. */
export interface Sender {
  /** The sender's address, if it is known. */
  readonly source: string;
  /** The principal of the credential, once it is known to be valid. Set by the authenticator. */
  principal: Principal | null;
}

const unknownSender = (): Sender => ({ source: '', principal: null });

/** A look-up under way, and the changes that came since it began. An answer from before a change is not remembered. */
interface LookUp {
  readonly changedIds: Set<string>;
  /** A change came that does not say which principals it concerns. */
  isOutdated: boolean;
}

export class Authenticator {
  private readonly findPrincipal: FindPrincipal;
  private readonly clock: Clock;
  private readonly onStoreFault: (fault: unknown) => void;
  private readonly known = new KnownPrincipals();
  private readonly unknownLookUps = new FairQueue(UNKNOWN_CREDENTIAL_LOOK_UPS);
  /**
   * Look-ups under way that another request for the same credential may share, because no change has come since they
   * began.
   */
  private readonly asking = new Map<string, Promise<Principal | Refusal>>();
  private readonly lookUps = new Set<LookUp>();
  /** The store did not answer the last look-up. */
  private isAway = false;
  private notBeforeMs = 0;

  /** `onStoreFault` is told why the store could not be asked. */
  constructor(findPrincipal: FindPrincipal, clock: Clock, onStoreFault: (fault: unknown) => void = () => undefined) {
    this.findPrincipal = findPrincipal;
    this.clock = clock;
    this.onStoreFault = onStoreFault;
  }

  /**
   * Accepts an inference key only, which generation requires. Returns a promise only when the credential is not known
   * yet.
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
   * The principal of an Authorization header's value, or the refusal; for routes that check more than one permission.
   * `apiKey` is the x-api-key header, which clients of the Messages dialect send. It is read only without an
   * Authorization header.
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
    // A session counts only as the console's cookie.
    return credential.startsWith(SESSION_PREFIX) ? { kind: 'unauthorized' } : this.find(credential, nowMs, sender);
  }

  /** The principal of a session's secret, from the console's cookie. */
  identifySession(
    secret: string,
    nowMs = this.clock.monotonicMs(),
    sender = unknownSender(),
  ): Principal | Refusal | Promise<Principal | Refusal> {
    return secret.startsWith(SESSION_PREFIX) ? this.find(secret, nowMs, sender) : { kind: 'unauthorized' };
  }

  /**
   * Like `identifySession`, by a look-up that begins now, whatever is remembered. While the store is away, the
   * remembered principal is returned.
   */
  async lookUpSession(secret: string, sender = unknownSender()): Promise<Principal | Refusal> {
    if (!secret.startsWith(SESSION_PREFIX)) return { kind: 'unauthorized' };
    // A look-up under way may have read the store before the change that the caller knows of, so it does not count.
    await this.asking.get(secret);
    const answer = this.isAway
      ? this.answerWhileAway(secret, this.clock.monotonicMs(), sender)
      : this.lookUp(secret, sender);
    return this.accept(await answer, sender);
  }

  private find(credential: string, nowMs: number, sender: Sender): Principal | Refusal | Promise<Principal | Refusal> {
    const known = this.known.get(credential);
    if (known !== undefined && known.state === 'good' && nowMs - known.askedAtMs < TIME_TO_LIVE_MS)
      return this.accept(known.principal, sender);
    const answer = this.isAway ? this.answerWhileAway(credential, nowMs, sender) : this.lookUp(credential, sender);
    return answer instanceof Promise ? this.acceptLater(answer, sender) : this.accept(answer, sender);
  }

  private async acceptLater(answer: Promise<Principal | Refusal>, sender: Sender): Promise<Principal | Refusal> {
    return this.accept(await answer, sender);
  }

  /** While the store is away, one look-up at a time tries it again. Remembered principals do not wait for that. */
  private answerWhileAway(
    credential: string,
    nowMs: number,
    sender: Sender,
  ): Principal | Refusal | Promise<Principal | Refusal> {
    const remembered = this.rememberedOf(credential, nowMs);
    if (nowMs < this.notBeforeMs) return remembered;
    this.notBeforeMs = nowMs + STORE_DEADLINE_MS;
    const asking = this.lookUp(credential, sender);
    return 'kind' in remembered ? asking : remembered;
  }

  /** A store that fails neither adds a principal nor removes one. */
  private rememberedOf(credential: string, nowMs: number): Principal | Refusal {
    const known = this.known.get(credential);
    const counts = known !== undefined && known.state !== 'changed' && nowMs - known.askedAtMs < AWAY_TIME_TO_LIVE_MS;
    return counts ? known.principal : UNAVAILABLE;
  }

  private accept(found: Principal | Refusal, sender: Sender): Principal | Refusal {
    const answer = this.refuseExpired(found);
    sender.principal = 'kind' in answer ? null : answer;
    return answer;
  }

  private refuseExpired(principal: Principal | Refusal): Principal | Refusal {
    if ('kind' in principal) return principal;
    return principal.expiresAtMs !== null && principal.expiresAtMs <= this.clock.nowMs()
      ? { kind: 'unauthorized' }
      : principal;
  }

  /** One look-up at a time for each credential, however many requests present it. */
  private lookUp(credential: string, sender: Sender): Promise<Principal | Refusal> {
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

  private async askStore(credential: string): Promise<Principal | Refusal> {
    const lookUp: LookUp = { changedIds: new Set(), isOutdated: false };
    this.lookUps.add(lookUp);
    // An answer that comes after the deadline is remembered as well.
    const answer = this.findPrincipal(credential)
      .then((principal) => this.learn(credential, principal, lookUp))
      .finally(() => this.lookUps.delete(lookUp));
    try {
      return await withDeadline(answer, STORE_DEADLINE_MS);
    } catch (fault) {
      this.onStoreFault(fault);
      const nowMs = this.clock.monotonicMs();
      this.isAway = true;
      this.notBeforeMs = nowMs + AWAY_MS;
      return this.rememberedOf(credential, nowMs);
    }
  }

  private learn(credential: string, principal: Principal | null, lookUp: LookUp): Principal | Refusal {
    this.isAway = false;
    if (principal === null) this.known.remove(credential);
    else if (!isOfBefore(lookUp, principal)) this.known.remember(credential, principal, this.clock.monotonicMs());
    return principal ?? { kind: 'unauthorized' };
  }

  /**
   * The store is back, and notifications of changes may have been lost. Every credential is looked up again before it
   * is accepted, unless the store cannot be asked after all.
   */
  markAllUncertain(): void {
    this.isAway = false;
    this.known.markAllUncertain();
    this.outdateLookUps();
  }

  /**
   * Something about the credential, user, team or organization with this id has changed. Only the credentials that it
   * concerns are looked up again.
   */
  forget(id: string): void {
    this.known.markChanged(id);
    for (const lookUp of this.lookUps) lookUp.changedIds.add(id);
    // A later request must not share an answer from before the change.
    this.asking.clear();
  }

  /**
   * A change that does not say which principals it concerns. Every credential is looked up again before it is accepted.
   */
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

/** The index where the credential of `Bearer <credential>` begins. Without the scheme it is the text's end. */
function bearerStart(authorization: string): number {
  const isBearer =
    authorization.startsWith(SCHEME) || authorization.slice(0, SCHEME.length).toLowerCase() === SCHEME.toLowerCase();
  let start = isBearer ? SCHEME.length : authorization.length;
  while (isBlank(authorization, start)) start += 1;
  return start;
}

/** The index where the value of a header ends, without trailing blanks. */
function endOf(value: string): number {
  let end = value.length;
  while (end > 0 && isBlank(value, end - 1)) end -= 1;
  return end;
}

function isBlank(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code === SPACE || code === TAB;
}

/**
 * Compared exactly first, since nearly every client writes it in this case. Its case does not matter (RFC 9110, 11.1).
 */
const SCHEME = 'Bearer ';
const SPACE = 0x20;
const TAB = 0x09;
