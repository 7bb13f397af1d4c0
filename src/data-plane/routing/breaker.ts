// Stops asking a classifier that fails time after time: every turn would wait for its deadline to learn the same again.

/** So many failures in a row, and nobody asks for a while. */
const FAILURES_MAX = 5;
const PAUSE_MS = 10_000;

interface Line {
  failures: number;
  /** Until when nobody asks; 0: anybody may. */
  openUntilMs: number;
  /** Somebody is finding out whether it answers again. */
  probing: boolean;
}

export class Breaker {
  private readonly lines = new Map<string, Line>();

  /** Whether to ask now. After a pause one caller may, and tells by its result whether the others may too. */
  admits(name: string, nowMs: number): boolean {
    const line = this.lines.get(name);
    if (line === undefined || line.failures < FAILURES_MAX) return true;
    if (line.probing || nowMs < line.openUntilMs) return false;
    line.probing = true;
    return true;
  }

  succeeded(name: string): void {
    this.lines.delete(name);
  }

  failed(name: string, nowMs: number): void {
    const line = this.lines.get(name) ?? { failures: 0, openUntilMs: 0, probing: false };
    line.failures += 1;
    line.probing = false;
    line.openUntilMs = nowMs + PAUSE_MS;
    this.lines.set(name, line);
  }
}
