// Waits for a time, and can be ended early, so that stopping does not wait for the whole pause.

export class StoppableSleep {
  private wake: (() => void) | null = null;
  private stopped = false;

  async forMs(ms: number): Promise<void> {
    if (this.stopped) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.wake = null;
  }

  /** Ends the present pause; without one nothing happens. */
  end(): void {
    this.wake?.();
  }

  /** Ends the present pause and every later one. */
  stop(): void {
    this.stopped = true;
    this.end();
  }
}
