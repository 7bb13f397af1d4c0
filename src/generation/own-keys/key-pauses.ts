// Remembers which own keys this process does not use for now because of their providers' replies: a key, or a key for
// one of the provider's models. A key belongs to one organization, so a pause affects no other organization.

import { OWN_REPLIES, type OwnReplyMeaning, pauseMs } from '../../domain/own-keys/own-reply.ts';
import { BoundedMap } from '../../platform/bounded-map.ts';

/** Beyond this the oldest pause is forgotten. One request then fails and begins it again. */
const PAUSES_MAX = 10_000;
/** A pause that begins within this time after the last one counts as the next in a row. */
const ROW_MS = 3_600_000;

interface Pause {
  readonly meaning: OwnReplyMeaning;
  readonly untilMs: number;
  readonly inARow: number;
}

/** A use of a key, to which a reply belongs. */
export interface KeyUse {
  readonly organizationId: string;
  readonly keyId: string;
  /** Identifies the secret: a reply to the one before a rotation says nothing about the one after it. */
  readonly fingerprint: string;
  readonly providerModel: string;
}

export interface PausedKey {
  readonly meaning: OwnReplyMeaning;
  readonly leftMs: number;
}

export class KeyPauses {
  private readonly pauses = new BoundedMap<string, Pause>(PAUSES_MAX);

  /** Begins the pause that a reply calls for. Returns how long the key is not used; 0: it is still used. */
  begin(use: KeyUse, meaning: OwnReplyMeaning, retryAfterMs: number | null, nowMs: number): number {
    const { pauses } = OWN_REPLIES[meaning];
    if (pauses !== 'key' && pauses !== 'key_and_model') return 0;
    const subject = pauses === 'key' ? keyOf(use) : subjectOf(use);
    const before = this.pauses.get(subject);
    // The refusal of a request that was sent before the pause began says nothing new.
    if (before !== undefined && before.untilMs > nowMs && before.meaning === meaning) return before.untilMs - nowMs;
    const follows = before?.meaning === meaning && nowMs - before.untilMs < ROW_MS;
    const inARow = follows ? before.inARow + 1 : 1;
    const forMs = pauseMs(meaning, inARow, retryAfterMs);
    this.pauses.set(subject, { meaning, untilMs: nowMs + forMs, inARow });
    return forMs;
  }

  /** The longer of the pauses of the key and of the key for this model; null: there is none. */
  find(use: KeyUse, nowMs: number): PausedKey | null {
    if (this.pauses.size === 0) return null;
    const found = [this.pauses.get(keyOf(use)), this.pauses.get(subjectOf(use))].flatMap((pause) =>
      pause === undefined || pause.untilMs <= nowMs ? [] : [{ meaning: pause.meaning, leftMs: pause.untilMs - nowMs }],
    );
    return found.toSorted((one, other) => other.leftMs - one.leftMs)[0] ?? null;
  }

  /** The key has served a request, so its next pause is the first in a row. */
  served(use: KeyUse): void {
    if (this.pauses.size === 0) return;
    this.pauses.delete(keyOf(use));
    this.pauses.delete(subjectOf(use));
  }

  /** Keys of the organization were changed, so its next requests find out anew. */
  forget(organizationId: string): void {
    for (const [subject] of this.pauses) if (subject.startsWith(`${organizationId}\0`)) this.pauses.delete(subject);
  }

  /** Any key may have been changed. */
  forgetAll(): void {
    this.pauses.clear();
  }

  /** Called from the coarse clock: forgets pauses that can have no next one in a row. */
  forgetEnded(nowMs: number): void {
    for (const [subject, { untilMs }] of this.pauses) if (untilMs + ROW_MS <= nowMs) this.pauses.delete(subject);
  }
}

/** Ids and names contain no NUL, so two subjects never share a key. */
function keyOf({ organizationId, keyId, fingerprint }: KeyUse): string {
  return `${organizationId}\0${keyId}\0${fingerprint}`;
}

function subjectOf(use: KeyUse): string {
  return `${keyOf(use)}\0${use.providerModel}`;
}
