// Loads something again when it may have changed. One load runs at a time, a change during a load makes another load
// follow, and a failed load is repeated until one succeeds.

const RETRY_MS = 1_000;
/** Least time between two loads, so that constant changes of one thing do not delay the others'. */
const BETWEEN_LOADS_MS = 50;

export class Reloads {
  private readonly load: () => Promise<void>;
  private readonly onFault: (fault: unknown) => void;
  private isDue = false;
  private isLoading = false;
  private timer: NodeJS.Timeout | null = null;
  private isClosed = false;

  constructor(load: () => Promise<void>, onFault: (fault: unknown) => void) {
    this.load = load;
    this.onFault = onFault;
  }

  due(): void {
    this.isDue = true;
    if (!this.isLoading && this.timer === null && !this.isClosed) void this.loadAll();
  }

  close(): void {
    this.isClosed = true;
    if (this.timer !== null) clearTimeout(this.timer);
  }

  private async loadAll(): Promise<void> {
    this.isLoading = true;
    this.isDue = false;
    let nextMs = BETWEEN_LOADS_MS;
    try {
      await this.load();
    } catch (fault) {
      this.isDue = true;
      nextMs = RETRY_MS;
      this.onFault(fault);
    }
    this.isLoading = false;
    if (this.isClosed) return;
    this.timer = setTimeout(() => {
      this.timer = null;
      if (this.isDue) void this.loadAll();
    }, nextMs);
    this.timer.unref();
  }
}
