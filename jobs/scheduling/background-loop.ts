// Repeats a step until it is stopped. Each step says how long to rest before the next one. After failures the rests
// grow.

import type { Log } from '../../src/platform/log.ts';
import { Backoff } from './backoff.ts';
import { StoppableSleep } from './stoppable-sleep.ts';

/** `name`: for the log. `step` resolves to the rest before the next step, in milliseconds; 0: no rest. */
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

  /** Starts the loop. A second call does nothing. */
  start(): void {
    this.running ??= this.run();
  }

  /** Begins no further step, and waits for the running step. */
  async stop(): Promise<void> {
    this.stopping = true;
    this.sleep.stop();
    await this.running;
  }

  /** Ends the present rest. While a step is running, skips the rest after that step, even if the step fails. */
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
