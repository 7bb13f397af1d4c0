// Lets leases that have something to return, a lost call to recover or a renewal due make their calls, a few leases at
// a time. Thousands may need to at the same instant: when Postgres is back, when notifications may have been missed,
// when the clients of a load leave, at the end of a process. Because few do so at a time, requests that need a lease
// find a connection, and no call waits so long for one that it counts as lost.

import type { LeaseTime } from './lease-store.ts';
import type { QuotaLease } from './quota-lease.ts';

/** Half of the connections to Postgres that a gateway has for requests. */
const AT_ONCE = 2;
/** A lease that many requests wait for can keep a sender busy, so a sender goes on to the next after this. */
const TURN_MS_MAX = 500;

export class ReturnQueue {
  private readonly waiting = new Set<QuotaLease>();
  private readonly begin: (lease: QuotaLease) => void;
  private readonly time: LeaseTime;
  private senders = 0;

  /** `begin`: makes the calls that a lease needs (`LeaseCalls.work`), unless they are being made. */
  constructor(begin: (lease: QuotaLease) => void, time: LeaseTime) {
    this.begin = begin;
    this.time = time;
  }

  add(lease: QuotaLease): void {
    this.waiting.add(lease);
    if (this.senders < AT_ONCE) void this.sendAll();
  }

  /**
   * One sender: works on each waiting lease, and resolves when none is left. At the end of a process this is a third
   * sender, since no requests wait then.
   */
  async sendAll(): Promise<void> {
    this.senders += 1;
    // An iteration of a Set skips leases that another sender has deleted, and reaches those added meanwhile.
    for (const lease of this.waiting) {
      this.waiting.delete(lease);
      this.begin(lease);
      if (lease.work !== null) await Promise.race([lease.work, this.time.wait(TURN_MS_MAX)]);
    }
    this.senders -= 1;
  }
}
