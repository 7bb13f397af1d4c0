// Measures a small piece of work: prints nanoseconds a call, the median and the minimum of several rounds.

import { systemClock } from '../../src/platform/clock.ts';
import { median } from '../harness/median.ts';

const ROUNDS = 15;
const ROUND_MS = 40;

/**
 * Keeps results alive, so that V8 does not optimise the measured work away. A string is flattened, as if it were
 * written out.
 */
const sink = Buffer.alloc(4096);
let kept = 0;

/** Prints a row. `work` gets the number of calls that came before in its round. */
export function measureNs(name: string, work: (call: number) => unknown): void {
  let calls = 1;
  while (timeOf(work, calls) < ROUND_MS) calls *= 2;
  const rounds = Array.from({ length: ROUNDS }, () => (timeOf(work, calls) * 1e6) / calls);
  const least = Math.min(...rounds);
  console.log(`${name.padEnd(66)} ${median(rounds).toFixed(0).padStart(9)} ns   (least ${least.toFixed(0)})`);
}

function timeOf(work: (call: number) => unknown, calls: number): number {
  const startMs = systemClock.monotonicMs();
  for (let call = 0; call < calls; call++) {
    const result = work(call);
    kept ^= typeof result === 'string' ? sink.write(result, 'latin1') : 1;
  }
  return systemClock.monotonicMs() - startMs;
}
