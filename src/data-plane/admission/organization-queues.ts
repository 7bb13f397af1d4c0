// A queue for each organization before something that all share (the store's connections, worker threads): whatever one
// of them sends, it has only so much of that at a time, and the others wait behind no more.

import { LookUpQueue } from '../identity/look-up-queue.ts';

type QueueLimits = ConstructorParameters<typeof LookUpQueue>[0];

interface Queue {
  readonly look: LookUpQueue;
  /** Under way or waiting; at 0 the queue is forgotten. */
  open: number;
}

export class OrganizationQueues {
  private readonly limits: QueueLimits;
  private readonly queues = new Map<string | null, Queue>();

  constructor(limits: QueueLimits) {
    this.limits = limits;
  }

  /** What `work` resolves to; `refused` when too much of the organization's waits before it, or for too long. */
  async run<T, R>(organizationId: string | null, work: () => Promise<T>, refused: R): Promise<T | R> {
    const queue = this.queues.get(organizationId) ?? { look: new LookUpQueue(this.limits), open: 0 };
    this.queues.set(organizationId, queue);
    queue.open += 1;
    try {
      return await queue.look.run(work, refused);
    } finally {
      queue.open -= 1;
      if (queue.open === 0) this.queues.delete(organizationId);
    }
  }

  /** Organizations that have something under way. */
  get size(): number {
    return this.queues.size;
  }
}
