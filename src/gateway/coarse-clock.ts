// A timer that several tasks without urgency share: with a timer for each, the process would wake more often.

import type { Log } from '../platform/log.ts';

export class CoarseClock {
  private readonly timer: NodeJS.Timeout;

  constructor(intervalMs: number, log: Log, tasks: readonly (() => void | Promise<void>)[]) {
    this.timer = setInterval(() => {
      for (const task of tasks) void run(task, log);
    }, intervalMs);
    this.timer.unref();
  }

  stop(): void {
    clearInterval(this.timer);
  }
}

async function run(task: () => void | Promise<void>, log: Log): Promise<void> {
  try {
    await task();
  } catch (fault) {
    log.warn({ err: fault }, 'a periodic task failed; it runs again with the next tick');
  }
}
