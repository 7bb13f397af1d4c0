// Knows for whom a subject (a provider's model, a classifier) is paused: for the organization that met the trouble, and
// for everybody once a second organization meets the same while the first one's pause lasts. One organization alone can
// therefore never pause anything for another.

/** The pauses that are kept at once. Beyond it the oldest is forgotten: one request then learns it anew. */
const PAUSES_MAX = 10_000;

interface Paused {
  /** The organization whose own pause of this subject ends last, and when that is. */
  organizationId: string;
  untilMs: number;
  /** The end of the pause for every organization. */
  forAllUntilMs: number;
  /** Whose requests go through while everybody else waits, until `probeFromMs`; from then on the next one's do. */
  proberId: string | null;
  probeFromMs: number;
}

export class Pauses {
  private readonly forAllMsMax: number;
  private readonly probeEveryMs: number;
  private readonly bySubject = new Map<string, Paused>();
  /** Ends of the organizations' own pauses, by subject and organization. */
  private readonly ownUntilMs = new Map<string, number>();

  /**
   * `forAllMsMax`: no pause of everybody is longer than this at a time. `probeEveryMs`: after so long, and then as
   * often, an organization without trouble of its own is let through to find out.
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
    setBounded(this.ownUntilMs, own, Math.max(this.ownUntilMs.get(own) ?? 0, untilMs));

    const paused = this.bySubject.get(subject);
    if (paused === undefined || paused.untilMs <= nowMs) {
      setBounded(this.bySubject, subject, {
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
    // Only the longest pause is kept: any other organization that meets the trouble before it ends is the second one.
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

  /** Somebody was served: nobody waits any more but for trouble of one's own. */
  lift(subject: string): void {
    const paused = this.bySubject.get(subject);
    if (paused !== undefined) paused.forAllUntilMs = 0;
  }

  /** Called from the coarse clock. */
  forgetEnded(nowMs: number): void {
    for (const [key, untilMs] of this.ownUntilMs) if (untilMs <= nowMs) this.ownUntilMs.delete(key);
    for (const [subject, { untilMs, forAllUntilMs }] of this.bySubject) {
      if (untilMs <= nowMs && forAllUntilMs <= nowMs) this.bySubject.delete(subject);
    }
  }

  /** Pauses that are kept, ended ones included until they are forgotten. */
  get size(): number {
    return this.ownUntilMs.size;
  }
}

/** One request asks more than once: whoever is let through stays so until the next one's turn. */
function isProber(paused: Paused, organizationId: string, nowMs: number, everyMs: number): boolean {
  if (nowMs < paused.probeFromMs) return paused.proberId === organizationId;
  paused.proberId = organizationId;
  paused.probeFromMs = nowMs + everyMs;
  return true;
}

/** Ids may not contain a line feed, so the pair cannot be taken for another. */
function ownKeyOf(subject: string, organizationId: string): string {
  return `${subject}\n${organizationId}`;
}

function setBounded<Value>(map: Map<string, Value>, key: string, value: Value): void {
  if (!map.has(key) && map.size >= PAUSES_MAX) {
    const oldest = map.keys().next().value;
    if (oldest !== undefined) map.delete(oldest);
  }
  map.set(key, value);
}
