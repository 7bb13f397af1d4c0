// One queue for each organization in front of a shared resource (the store's connections, worker threads), so that no
// organization takes more than its share. The sum over all organizations is not bounded here.

import { FairQueue } from '../../platform/fair-queue.ts';

type QueueLimits = ConstructorParameters<typeof FairQueue>[0];

interface Entry {
  readonly queue: FairQueue;
  /** Work under way or waiting; at 0 the queue is forgotten. */
  open: number;
}

export class OrganizationQueues {
  private readonly limits: QueueLimits;
  private readonly queues = new Map<string | null, Entry>();

  constructor(limits: QueueLimits) {
    this.limits = limits;
  }

  /**
   * Resolves to the result of `work`, or to `refused` when too much of the organization's work waits, or this waits too
   * long.
   */
  async run<T, R>(organizationId: string | null, work: () => Promise<T>, refused: R): Promise<T | R> {
    const entry = this.queues.get(organizationId) ?? { queue: new FairQueue(this.limits), open: 0 };
    this.queues.set(organizationId, entry);
    entry.open += 1;
    try {
      return await entry.queue.run(work, refused);
    } finally {
      entry.open -= 1;
      if (entry.open === 0) this.queues.delete(organizationId);
    }
  }

  /** How many organizations have work under way or waiting. */
  get size(): number {
    return this.queues.size;
  }
}
