// Decides how long to wait after a failure, and logs the first failure, every 60th one and the recovery.

import type { Log } from '../../src/platform/log.ts';

const FIRST_WAIT_MS = 100;
const WAIT_MAX_MS = 5_000;
const REMINDER_EVERY = 60;

export class Backoff {
  private readonly name: string;
  private readonly log: Log;
  private failures = 0;

  constructor(options: { name: string; log: Log }) {
    this.name = options.name;
    this.log = options.log;
  }

  /** Returns how long to wait before the next attempt, in milliseconds. */
  failed(error: unknown): number {
    this.failures++;
    if (this.failures === 1 || this.failures % REMINDER_EVERY === 0) {
      this.log.error({ err: error, failures: this.failures }, `${this.name}: failed, trying again`);
    }
    return Math.min(WAIT_MAX_MS, FIRST_WAIT_MS * 2 ** (this.failures - 1));
  }

  succeeded(): void {
    if (this.failures > 0) this.log.info({ failures: this.failures }, `${this.name}: works again`);
    this.failures = 0;
  }
}
