// Calls between processes and servers. Each call takes time. Its question or its answer may be lost, and nobody is told
// which.

import type { SimulatedProcess, World } from './virtual-world.ts';

interface Call<Answer> {
  readonly process: SimulatedProcess;
  readonly label: string;
  /** What the other end does; it may call `told` later, or never. */
  readonly act: (told: (answer: Answer) => void) => void;
  readonly answered: (answer: Answer) => void;
  readonly broken: (fault: Error) => void;
}

/** After this time a connection whose other end is silently gone is given up. */
const SILENCE_MS = 35_000;

export class SimulatedNetwork {
  /** The chance of each trouble, for each message. */
  readonly trouble = { loss: 0, slow: 0, slowMs: 0 };
  private readonly world: World;

  constructor(world: World) {
    this.world = world;
  }

  delayMs(): number {
    const { random } = this.world;
    const { slow, slowMs } = this.trouble;
    return slow > 0 && random.chance(slow) ? random.between(0, slowMs) : random.between(0.1, 1.2);
  }

  isLost(): boolean {
    return this.trouble.loss > 0 && this.world.random.chance(this.trouble.loss);
  }

  call<Answer>({ process, label, act, answered, broken }: Call<Answer>): void {
    const { world } = this;
    let over = false;
    const end = (delayMs: number, what: string, how: () => void): void => {
      process.in(delayMs, what, () => {
        if (over) return;
        over = true;
        process.step(what);
        how();
      });
    };
    const lose = (what: string): void => {
      world.note(`network: ${process.name}: ${what} of ${label} is lost`);
      const reset = world.random.chance(0.7);
      end(reset ? world.random.between(0, 100) : SILENCE_MS, `${label} broken`, () => broken(connectionReset()));
    };
    if (this.isLost()) {
      lose('the question');
      return;
    }
    world.in(this.delayMs(), label, () => {
      act((answer) => {
        if (this.isLost()) lose('the answer');
        else end(this.delayMs(), `${label} answered`, () => answered(answer));
      });
    });
    // A caller that waits for an answer that never comes gives up at last.
    if (this.trouble.loss > 0) end(SILENCE_MS, `${label} given up`, () => broken(connectionReset()));
  }
}

function connectionReset(): Error {
  return Object.assign(new Error('the connection broke'), { code: 'ECONNRESET' });
}
