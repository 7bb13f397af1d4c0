// Simulates processes that use a rate together, each from its own grant, while the test controls the time: hours of
// load on a real Postgres take seconds. Every use is kept with its time, so that a test can check each period of 60
// seconds.

import type { LeaseAnswer } from '../../src/domain/quotas/lease.ts';
import { returnLimitLease, takeLimitLease } from '../../src/storage/postgres/limits/limit-leases.ts';
import type { Postgres } from '../../src/storage/postgres/pool.ts';

export interface Use {
  readonly atMs: number;
  amount: bigint;
}

interface Grant {
  readonly grantId: string;
  available: bigint;
  readonly expiresAtMs: number;
}

interface Held {
  readonly grantId: string;
  readonly use: Use;
}

/** A process that holds parts of a grant while it lasts, and returns the unused rest. */
export class RateTaker {
  readonly uses: Use[] = [];
  private readonly postgres: Postgres;
  private readonly limitId: string;
  private readonly chunk: bigint;
  private readonly held: Held[] = [];
  private epoch: number;
  private present: Grant | null = null;
  private askAgainAtMs = 0;

  constructor(postgres: Postgres, options: { limitId: string; epoch: number; chunk: bigint }) {
    this.postgres = postgres;
    this.limitId = options.limitId;
    this.epoch = options.epoch;
    this.chunk = options.chunk;
  }

  /** Makes one request; false: it was refused. `latencyMs` passes between the call and the use. */
  async request(need: bigint, nowMs: number, latencyMs: number, revoke: () => Promise<void>): Promise<boolean> {
    await this.dropExpired(nowMs);
    if (this.hold(need, nowMs)) return true;
    if (nowMs < this.askAgainAtMs) return false;
    let answer = await this.take(need, nowMs);
    if (answer.granted === 0n && answer.leasedElsewhere > 0n) {
      await revoke();
      answer = await this.take(need, nowMs);
    }
    if (answer.granted === 0n) {
      this.askAgainAtMs = nowMs + Math.min(answer.retryAfterMs ?? 1_000, 500);
      return false;
    }
    return this.hold(need, nowMs + latencyMs);
  }

  /** Ends the oldest open request; `part` of its hold was not used. */
  async settle(part: bigint, nowMs: number): Promise<void> {
    const held = this.held.shift();
    if (held === undefined || held.use.amount < part) return;
    held.use.amount -= part;
    await this.dropExpired(nowMs);
    if (this.present?.grantId === held.grantId) this.present.available += part;
    else await this.giveBack(held.grantId, part);
  }

  async giveBackFree(): Promise<void> {
    const { present } = this;
    this.present = null;
    if (present !== null && present.available > 0n) await this.giveBack(present.grantId, present.available);
  }

  /** Replaces the process by another one, and loses everything that it had. */
  replace(epoch: number): void {
    this.epoch = epoch;
    this.present = null;
    this.held.length = 0;
  }

  private hold(need: bigint, atMs: number): boolean {
    const { present } = this;
    if (present === null || present.available < need || atMs >= present.expiresAtMs) return false;
    present.available -= need;
    const use = { atMs, amount: need };
    this.uses.push(use);
    this.held.push({ grantId: present.grantId, use });
    return true;
  }

  private async take(need: bigint, nowMs: number): Promise<LeaseAnswer> {
    const { present } = this;
    const available = present?.available ?? 0n;
    const minimum = need - available;
    const amount = minimum > this.chunk ? minimum : this.chunk;
    const answer = await takeLimitLease(this.postgres, {
      epoch: this.epoch,
      limitId: this.limitId,
      amount,
      minimum,
      present,
      atMs: nowMs,
    });
    if (answer.granted > 0n) {
      const kept = answer.presentMoved ? available : 0n;
      this.present = {
        grantId: answer.grantId,
        available: kept + answer.granted,
        expiresAtMs: nowMs + (answer.validForMs ?? 0),
      };
    }
    return answer;
  }

  private async dropExpired(nowMs: number): Promise<void> {
    if (this.present !== null && nowMs >= this.present.expiresAtMs) await this.giveBackFree();
  }

  private async giveBack(grantId: string, amount: bigint): Promise<void> {
    await returnLimitLease(this.postgres, { epoch: this.epoch, limitId: this.limitId, grantId, amount });
  }
}

/** The largest amount that was used in any 60 seconds. */
export function mostInAMinute(takers: readonly RateTaker[]): bigint {
  const uses = takers.flatMap((taker) => taker.uses).sort((a, b) => a.atMs - b.atMs);
  let most = 0n;
  let sum = 0n;
  let oldest = 0;
  for (const use of uses) {
    sum += use.amount;
    for (let first = uses[oldest]; first !== undefined && first.atMs <= use.atMs - 60_000; first = uses[oldest]) {
      sum -= first.amount;
      oldest += 1;
    }
    if (sum > most) most = sum;
  }
  return most;
}
