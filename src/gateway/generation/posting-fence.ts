// Tells when everything that any gateway had recorded at an instant is posted, so that a look-up which finds nothing
// after that has not come too early. It costs nothing until a look-up finds nothing, or finds something pending.
//
//   recorded: the ends of the spools in this DATA_DIR, read from their files; those of other machines, by asking them
//   posted:   the cursors of the epochs that are not closed, which jobs moves with every posting; jobs lets
//             records gather, and is told when somebody waits for them

import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../platform/clock.ts';
import {
  type OpenSpool,
  POSTING_WANTED_CHANNEL,
  SPOOLS_ASKED_CHANNEL,
  SPOOLS_TOLD_CHANNEL,
} from '../../storage/postgres/ledger/open-spools.ts';
import type { SpoolEnd } from '../../storage/spool/spool-directory.ts';

export interface PostingFenceParts {
  /** This process's. */
  readonly epoch: number;
  readonly readSpoolEnds: () => ReadonlyMap<number, SpoolEnd | null>;
  readonly listOpenSpools: () => Promise<readonly OpenSpool[]>;
  readonly notify: (channel: string, payload: string) => Promise<void>;
  readonly clock: Clock;
}

/** The spools as they were when some waiters came. */
interface Snapshot {
  readonly ends: Map<number, SpoolEnd | null>;
  /** An answer to this question, or to a later one, was given after the waiters came. */
  readonly question: number;
}

interface Waiting {
  readonly deadlineMs: number;
  readonly settle: (passed: boolean) => void;
  readonly fail: (fault: unknown) => void;
  snapshot: Snapshot | null;
}

/** When so many wait, the next one gets what is known at once. */
const WAITING_MAX = 256;
/** About as long as a posting takes that was asked for. */
const LOOK_AGAIN_MS = 15;
/** The shortest time between two requests to jobs to post, however often somebody looks up. */
const WANT_AGAIN_MS = 60;
const ASK_AGAIN_MS = 250;
/**
 * A spool elsewhere that nobody speaks for (its machine is gone, or cut off) may hold something unposted. It counts for
 * this long after its start or last posting, so that a lost machine does not make every unknown id wait for ever.
 */
const UNTOLD_COUNTS_MS = 600_000;
/** How many spools an answer has: the newest, which are those that matter. A notification holds 8,000 bytes. */
const TOLD_MAX = 150;

export class PostingFence {
  private readonly parts: PostingFenceParts;
  private readonly waiting = new Set<Waiting>();
  private readonly told = new Map<number, { readonly end: SpoolEnd | null; readonly question: number }>();
  private question = 0;
  private askedMs = Number.NEGATIVE_INFINITY;
  private wantedMs = Number.NEGATIVE_INFINITY;
  private isLooking = false;

  constructor(parts: PostingFenceParts) {
    this.parts = parts;
  }

  /**
   * Resolves with true once everything that was recorded before the call is posted, with false where that takes longer
   * than `limitMs`. Throws when Postgres cannot be asked.
   */
  passed(limitMs: number): Promise<boolean> {
    const waitMs = this.waiting.size >= WAITING_MAX ? 0 : limitMs;
    const deadlineMs = this.parts.clock.monotonicMs() + waitMs;
    return new Promise((settle, fail) => {
      this.waiting.add({ deadlineMs, settle, fail, snapshot: null });
      if (!this.isLooking) void this.lookWhileSomebodyWaits();
    });
  }

  /** Another gateway asks how far the spools are written that it cannot see. */
  answer(question: string): void {
    const [asker, number] = question.split(' ').map(Number);
    const ends = this.parts.readSpoolEnds();
    // A gateway that shares this directory reads it by itself.
    if (asker === undefined || ends.has(asker)) return;
    const newest = [...ends].slice(-TOLD_MAX).map(([epoch, end]) => [epoch, end?.segment ?? 0, end?.bytes ?? 0]);
    // A lost answer is asked for again.
    this.parts.notify(SPOOLS_TOLD_CHANNEL, JSON.stringify([asker, number, newest])).catch(() => undefined);
  }

  hear(answer: string): void {
    if (this.waiting.size === 0) return;
    const [asker, question, ends] = JSON.parse(answer) as [number, number, [number, number, number][]];
    if (asker !== this.parts.epoch) return;
    for (const [epoch, segment, bytes] of ends)
      this.told.set(epoch, { end: bytes === 0 ? null : { segment, bytes }, question });
  }

  private async lookWhileSomebodyWaits(): Promise<void> {
    this.isLooking = true;
    while (this.waiting.size > 0) {
      const waiting = [...this.waiting];
      try {
        await this.look(waiting);
      } catch (fault) {
        for (const one of waiting) if (this.waiting.delete(one)) one.fail(fault);
      }
      if (this.waiting.size > 0) await sleep(LOOK_AGAIN_MS);
    }
    this.told.clear();
    this.isLooking = false;
  }

  private async look(waiting: readonly Waiting[]): Promise<void> {
    const { readSpoolEnds, listOpenSpools, clock } = this.parts;
    const here = readSpoolEnds();
    const fresh: Snapshot = { ends: new Map(here), question: ++this.question };
    for (const one of waiting) one.snapshot ??= fresh;
    const open = await listOpenSpools();
    const snapshots = new Set(waiting.map(({ snapshot }) => snapshot as Snapshot));
    const passed = new Map([...snapshots].map((snapshot) => [snapshot, this.hasPassed(snapshot, open, here)]));
    if ([...passed.values()].includes(false)) this.wantPosting();
    const nowMs = clock.monotonicMs();
    for (const one of waiting) {
      const isPosted = passed.get(one.snapshot as Snapshot) === true;
      if ((isPosted || nowMs >= one.deadlineMs) && this.waiting.delete(one)) one.settle(isPosted);
    }
  }

  private hasPassed(
    snapshot: Snapshot,
    open: readonly OpenSpool[],
    here: ReadonlyMap<number, SpoolEnd | null>,
  ): boolean {
    let passed = true;
    for (const { epoch, posted, quietMs } of open) {
      const end = this.endOf(epoch, snapshot, here);
      if (end === undefined) {
        if (quietMs > UNTOLD_COUNTS_MS) continue;
        this.ask();
        passed = false;
      } else if (end !== null && !reaches(posted, end)) passed = false;
    }
    return passed;
  }

  /** undefined: not known yet. The end of a spool that has just appeared here is later than needed, which is safe. */
  private endOf(
    epoch: number,
    { ends, question }: Snapshot,
    here: ReadonlyMap<number, SpoolEnd | null>,
  ): SpoolEnd | null | undefined {
    if (!ends.has(epoch)) {
      const told = this.told.get(epoch);
      if (here.has(epoch)) ends.set(epoch, here.get(epoch) ?? null);
      else if (told !== undefined && told.question >= question) ends.set(epoch, told.end);
    }
    return ends.get(epoch);
  }

  /** Some gateway, perhaps this one, has just asked jobs to post. */
  hearWanted(): void {
    this.wantedMs = this.parts.clock.monotonicMs();
  }

  /**
   * Asks jobs to post. If the notification is lost, jobs posts a little later by itself. Postgres wakes every listener
   * for each notification, so all gateways together send about as many as one would.
   */
  private wantPosting(): void {
    const { notify, clock } = this.parts;
    if (clock.monotonicMs() - this.wantedMs < WANT_AGAIN_MS) return;
    this.wantedMs = clock.monotonicMs();
    notify(POSTING_WANTED_CHANNEL, '').catch(() => undefined);
  }

  private ask(): void {
    const { epoch, notify, clock } = this.parts;
    if (clock.monotonicMs() - this.askedMs < ASK_AGAIN_MS) return;
    this.askedMs = clock.monotonicMs();
    notify(SPOOLS_ASKED_CHANNEL, `${epoch} ${this.question}`).catch(() => undefined);
  }
}

function reaches(posted: OpenSpool['posted'], end: SpoolEnd): boolean {
  if (posted === null) return false;
  return posted.segment > end.segment || (posted.segment === end.segment && posted.offset >= end.bytes);
}
