// Keeps every latency of a measurement, so that quantiles are exact.

import type { Quantiles } from './job.ts';

export class Samples {
  private values = new Float64Array(16_384);
  count = 0;

  add(value: number): void {
    if (this.count === this.values.length) {
      const larger = new Float64Array(this.values.length * 2);
      larger.set(this.values);
      this.values = larger;
    }
    this.values[this.count++] = value;
  }

  quantiles(): Quantiles {
    const sorted = this.values.slice(0, this.count).sort();
    const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
    return { count: this.count, p50: at(0.5), p99: at(0.99), max: at(1) };
  }
}
