// Work of jobs that goes on until it is stopped: step after step, with a rest as long as the step says, and with longer
// and longer ones while it fails.

import type { Log } from '../../src/platform/log.ts';
import { Backoff } from './backoff.ts';
import { StoppableSleep } from './stoppable-sleep.ts';

/** `name`: for the log. `step` resolves to how long to rest before the next one, in milliseconds; 0: not at all. */
export interface BackgroundLoopParts {
  readonly name: string;
  readonly log: Log;
  readonly step: () => Promise<number>;
}

export class BackgroundLoop {
  private readonly parts: BackgroundLoopParts;
  private readonly sleep = new StoppableSleep();
  private stopping = false;
  private woken = false;
  private running: Promise<void> | null = null;

  constructor(parts: BackgroundLoopParts) {
    this.parts = parts;
  }

  /** Once; later calls change nothing. */
  start(): void {
    this.running ??= this.run();
  }

  /** Begins no further step, and waits for the one that is running. */
  async stop(): Promise<void> {
    this.stopping = true;
    this.sleep.stop();
    await this.running;
  }

  /** There may be something to do: ends the rest, or skips the one after the running step, even if that step fails. */
  wake(): void {
    this.woken = true;
    this.sleep.end();
  }

  private async run(): Promise<void> {
    const { name, log, step } = this.parts;
    const backoff = new Backoff({ name, log });
    while (!this.stopping) {
      let restMs: number;
      this.woken = false;
      try {
        restMs = await step();
        backoff.succeeded();
      } catch (error) {
        restMs = backoff.failed(error);
      }
      if (restMs > 0 && !this.woken) await this.sleep.forMs(restMs);
    }
  }
}
