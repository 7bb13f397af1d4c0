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
}

export class Pauses {
  private readonly forAllMsMax: number;
  private readonly bySubject = new Map<string, Paused>();
  /** Ends of the organizations' own pauses, by subject and organization. */
  private readonly ownUntilMs = new Map<string, number>();

  /** `forAllMsMax`: no pause of everybody is longer than this at a time. */
  constructor(forAllMsMax: number) {
    this.forAllMsMax = forAllMsMax;
  }

  /** Begins or prolongs the pause of an organization; a shorter one does not end a longer one. */
  begin(subject: string, organizationId: string, forMs: number, nowMs: number): void {
    const untilMs = nowMs + forMs;
    if (this.ownUntilMs.size >= PAUSES_MAX) this.forgetEnded(nowMs);
    const own = ownKeyOf(subject, organizationId);
    setBounded(this.ownUntilMs, own, Math.max(this.ownUntilMs.get(own) ?? 0, untilMs));

    const paused = this.bySubject.get(subject);
    if (paused === undefined || paused.untilMs <= nowMs) {
      setBounded(this.bySubject, subject, { organizationId, untilMs, forAllUntilMs: paused?.forAllUntilMs ?? 0 });
      return;
    }
    if (paused.organizationId !== organizationId) {
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
    const ownUntilMs = this.ownUntilMs.get(ownKeyOf(subject, organizationId)) ?? 0;
    return Math.max(0, ownUntilMs - nowMs, paused.forAllUntilMs - nowMs);
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
