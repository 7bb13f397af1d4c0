// Remembers which organizations must not call a subject (a provider's model, a classifier) for now: the organization
// whose call failed, and all organizations once a second one's call fails during the first one's pause. One
// organization alone can therefore never pause anything for another.

import { BoundedMap } from '../../platform/bounded-map.ts';

/** Beyond this the oldest pause is forgotten. One request then fails and begins it again. */
const PAUSES_MAX = 10_000;

interface Paused {
  /** The organization whose own pause of this subject ends last, and when that is. */
  organizationId: string;
  untilMs: number;
  /** The end of the pause for every organization. */
  forAllUntilMs: number;
  /** During a pause for all, the organization whose requests go through until `probeFromMs`; then another one's do. */
  proberId: string | null;
  probeFromMs: number;
}

export interface PresentPause {
  readonly subject: string;
  readonly leftMs: number;
  readonly isForAll: boolean;
}

export class Pauses {
  private readonly forAllMsMax: number;
  private readonly probeEveryMs: number;
  private readonly bySubject = new BoundedMap<string, Paused>(PAUSES_MAX);
  /** Ends of the organizations' own pauses, by subject and organization. */
  private readonly ownUntilMs = new BoundedMap<string, number>(PAUSES_MAX);

  /**
   * `forAllMsMax`: no pause for all is longer than this at a time. `probeEveryMs`: during a pause for all, an
   * organization without a pause of its own is let through this often, to find out whether the subject works again.
   */
  constructor(forAllMsMax: number, probeEveryMs = Number.POSITIVE_INFINITY) {
    this.forAllMsMax = forAllMsMax;
    this.probeEveryMs = probeEveryMs;
  }

  /** Begins or prolongs the pause of an organization; a shorter one does not end a longer one. */
  begin(subject: string, organizationId: string, forMs: number, nowMs: number): void {
    const untilMs = nowMs + forMs;
    if (this.ownUntilMs.size >= PAUSES_MAX) this.forgetEnded(nowMs);
    const own = ownKeyOf(subject, organizationId);
    this.ownUntilMs.set(own, Math.max(this.ownUntilMs.get(own) ?? 0, untilMs));

    const paused = this.bySubject.get(subject);
    if (paused === undefined || paused.untilMs <= nowMs) {
      this.bySubject.set(subject, {
        organizationId,
        untilMs,
        forAllUntilMs: paused?.forAllUntilMs ?? 0,
        proberId: null,
        probeFromMs: paused?.probeFromMs ?? 0,
      });
      return;
    }
    if (paused.organizationId !== organizationId) {
      if (paused.forAllUntilMs <= nowMs) {
        paused.proberId = null;
        paused.probeFromMs = nowMs + this.probeEveryMs;
      }
      const forAllMs = Math.min(forMs, this.forAllMsMax);
      paused.forAllUntilMs = Math.max(paused.forAllUntilMs, nowMs + forAllMs);
    }
    // Only the longest pause is kept: any other organization whose call fails before it ends is the second one.
    if (untilMs > paused.untilMs) {
      paused.organizationId = organizationId;
      paused.untilMs = untilMs;
    }
  }

  /** How long the subject is still paused for the organization; 0 when it is not. */
  leftMs(subject: string, organizationId: string, nowMs: number): number {
    const paused = this.bySubject.get(subject);
    if (paused === undefined) return 0;
    const ownMs = Math.max(0, (this.ownUntilMs.get(ownKeyOf(subject, organizationId)) ?? 0) - nowMs);
    const forAllMs = Math.max(0, paused.forAllUntilMs - nowMs);
    if (ownMs === 0 && forAllMs > 0 && isProber(paused, organizationId, nowMs, this.probeEveryMs)) return 0;
    return Math.max(ownMs, forAllMs);
  }

  /** The subject has served a request: the pause for all ends, the organizations' own pauses stay. */
  lift(subject: string): void {
    const paused = this.bySubject.get(subject);
    if (paused !== undefined) paused.forAllUntilMs = 0;
  }

  /** The subject has served a request of this organization: its own pause ends as well. */
  end(subject: string, organizationId: string): void {
    this.ownUntilMs.delete(ownKeyOf(subject, organizationId));
    const paused = this.bySubject.get(subject);
    if (paused === undefined) return;
    paused.forAllUntilMs = 0;
    if (paused.organizationId === organizationId) paused.untilMs = 0;
  }

  /** Called from the coarse clock: forgets what is over. */
  forgetEnded(nowMs: number): void {
    for (const [key, untilMs] of this.ownUntilMs) if (untilMs <= nowMs) this.ownUntilMs.delete(key);
    for (const [subject, { untilMs, forAllUntilMs }] of this.bySubject) {
      if (untilMs <= nowMs && forAllUntilMs <= nowMs) this.bySubject.delete(subject);
    }
  }

  /** The pauses that are not over: of each subject the longest of an organization's own, or that for all. */
  list(nowMs: number): readonly PresentPause[] {
    return [...this.bySubject].flatMap(([subject, { untilMs, forAllUntilMs }]) => [
      ...(untilMs > nowMs ? [{ subject, leftMs: untilMs - nowMs, isForAll: false }] : []),
      ...(forAllUntilMs > nowMs ? [{ subject, leftMs: forAllUntilMs - nowMs, isForAll: true }] : []),
    ]);
  }

  /** Counts ended pauses too, until they are forgotten. */
  get size(): number {
    return this.ownUntilMs.size;
  }
}

/**
 * Whether the organization is the one that is let through. It stays so until the next one is, since one request asks
 * more than once.
 */
function isProber(paused: Paused, organizationId: string, nowMs: number, everyMs: number): boolean {
  if (nowMs < paused.probeFromMs) return paused.proberId === organizationId;
  paused.proberId = organizationId;
  paused.probeFromMs = nowMs + everyMs;
  return true;
}

/** Ids contain no line feed, so two pairs never have the same key. */
function ownKeyOf(subject: string, organizationId: string): string {
  return `${subject}\n${organizationId}`;
}
