// Which own keys this process does not use for now, because of what their providers answered: the key, or the key for
// one of the provider's models. A key belongs to one organization, so nothing here can pause anything for another.

import { OWN_REPLIES, type OwnReplyMeaning, pauseMs } from '../../domain/own-keys/own-reply.ts';
import { BoundedMap } from '../../platform/bounded-map.ts';

/** Beyond it the oldest pause is forgotten: one request then fails and begins it again. */
const PAUSES_MAX = 10_000;
/** A pause that begins within this time after the last one counts as the next in a row. */
const ROW_MS = 3_600_000;

interface Pause {
  readonly meaning: OwnReplyMeaning;
  readonly untilMs: number;
  readonly inARow: number;
}

/** The use of a key that a reply answers. */
export interface KeyUse {
  readonly organizationId: string;
  readonly keyId: string;
  /** Names the secret: an answer to the one before a rotation says nothing about the one after it. */
  readonly fingerprint: string;
  readonly providerModel: string;
}

export interface PausedKey {
  readonly meaning: OwnReplyMeaning;
  readonly leftMs: number;
}

export class KeyPauses {
  private readonly pauses = new BoundedMap<string, Pause>(PAUSES_MAX);

  /** Begins the pause that this reply means. How long the key is not used; 0: it is still used. */
  begin(use: KeyUse, meaning: OwnReplyMeaning, retryAfterMs: number | null, nowMs: number): number {
    const { pauses } = OWN_REPLIES[meaning];
    if (pauses !== 'key' && pauses !== 'key_and_model') return 0;
    const subject = pauses === 'key' ? keyOf(use) : subjectOf(use);
    const before = this.pauses.get(subject);
    // Requests that were sent before the first of them was refused say nothing new.
    if (before !== undefined && before.untilMs > nowMs && before.meaning === meaning) return before.untilMs - nowMs;
    const follows = before?.meaning === meaning && nowMs - before.untilMs < ROW_MS;
    const inARow = follows ? before.inARow + 1 : 1;
    const forMs = pauseMs(meaning, inARow, retryAfterMs);
    this.pauses.set(subject, { meaning, untilMs: nowMs + forMs, inARow });
    return forMs;
  }

  /** The longer of the two pauses that concern a use; null: neither. */
  find(use: KeyUse, nowMs: number): PausedKey | null {
    if (this.pauses.size === 0) return null;
    const found = [this.pauses.get(keyOf(use)), this.pauses.get(subjectOf(use))].flatMap((pause) =>
      pause === undefined || pause.untilMs <= nowMs ? [] : [{ meaning: pause.meaning, leftMs: pause.untilMs - nowMs }],
    );
    return found.toSorted((one, other) => other.leftMs - one.leftMs)[0] ?? null;
  }

  /** The key has served a request: what comes next is the first in a row. */
  served(use: KeyUse): void {
    if (this.pauses.size === 0) return;
    this.pauses.delete(keyOf(use));
    this.pauses.delete(subjectOf(use));
  }

  /** Keys of the organization were changed: its next requests find out anew. */
  forget(organizationId: string): void {
    for (const [subject] of this.pauses) if (subject.startsWith(`${organizationId}\0`)) this.pauses.delete(subject);
  }

  /** Any key may have been changed. */
  forgetAll(): void {
    this.pauses.clear();
  }

  /** Called from the coarse clock. */
  forgetEnded(nowMs: number): void {
    for (const [subject, { untilMs }] of this.pauses) if (untilMs + ROW_MS <= nowMs) this.pauses.delete(subject);
  }
}

/** Ids and names have no NUL in them, so that no subject can be taken for another. */
function keyOf({ organizationId, keyId, fingerprint }: KeyUse): string {
  return `${organizationId}\0${keyId}\0${fingerprint}`;
}

function subjectOf(use: KeyUse): string {
  return `${keyOf(use)}\0${use.providerModel}`;
}
