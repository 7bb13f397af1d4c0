// Lets leases that have something to return, or a lost call to recover, make their calls a few at a time. Thousands may
// want to in the same instant: when Postgres is back, when notifications may have been missed, when the clients of a
// load leave, at the end of a process. Meanwhile requests that need a lease find a connection, and no call waits so
// long for one that it counts as lost.

import type { LeaseTime } from './lease-store.ts';
import type { QuotaLease } from './quota-lease.ts';

/** Half of what a gateway has of connections to Postgres for requests. */
const AT_ONCE = 2;
/** A lease that many requests wait for can keep a sender busy, so a sender goes on to the next after this. */
const TURN_MS_MAX = 500;

export class ReturnTurns {
  private readonly waiting = new Set<QuotaLease>();
  private readonly begin: (lease: QuotaLease) => void;
  private readonly time: LeaseTime;
  private senders = 0;

  /** `begin`: makes the calls that a lease needs (`work`), unless they are being made. */
  constructor(begin: (lease: QuotaLease) => void, time: LeaseTime) {
    this.begin = begin;
    this.time = time;
  }

  add(lease: QuotaLease): void {
    this.waiting.add(lease);
    if (this.senders < AT_ONCE) void this.sendAll();
  }

  /** Resolves once the turn of each has come. At the end of a process it is a third sender: no request waits then. */
  async sendAll(): Promise<void> {
    this.senders += 1;
    // A set is walked as it is now: what another sender has taken is not met here, what was added since is.
    for (const lease of this.waiting) {
      this.waiting.delete(lease);
      this.begin(lease);
      if (lease.work !== null) await Promise.race([lease.work, this.time.wait(TURN_MS_MAX)]);
    }
    this.senders -= 1;
  }
}
