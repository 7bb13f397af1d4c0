// Repeatable random numbers: every random decision of a simulated world comes from its seed.

export class SeededRandom {
  private a: number;
  private b: number;
  private c: number;
  private counter = 1;

  constructor(seed: number) {
    // splitmix32 makes neighbouring seeds differ widely.
    let state = seed >>> 0;
    const spread = (): number => {
      state = (state + 0x9e3779b9) >>> 0;
      let mixed = state ^ (state >>> 16);
      mixed = Math.imul(mixed, 0x21f0aaad);
      mixed ^= mixed >>> 15;
      mixed = Math.imul(mixed, 0x735a2d97);
      return (mixed ^ (mixed >>> 15)) >>> 0;
    };
    this.a = spread();
    this.b = (spread() ^ Math.floor(seed / 4_294_967_296)) >>> 0;
    this.c = spread();
    for (let round = 0; round < 12; round += 1) this.next();
  }

  /** From 0 up to but not including 1 (sfc32). */
  next(): number {
    const sum = (this.a + this.b + this.counter) | 0;
    this.counter = (this.counter + 1) | 0;
    this.a = this.b ^ (this.b >>> 9);
    this.b = (this.c + (this.c << 3)) | 0;
    this.c = (((this.c << 21) | (this.c >>> 11)) + sum) | 0;
    return (sum >>> 0) / 4_294_967_296;
  }

  /** A whole number from 0 up to but not including `bound`. */
  below(bound: number): number {
    return Math.floor(this.next() * bound);
  }

  /** A whole number from `from` to `to`, both included. */
  whole(from: number, to: number): number {
    return from + this.below(to - from + 1);
  }

  between(from: number, to: number): number {
    return from + this.next() * (to - from);
  }

  /** A number whose order of magnitude is evenly distributed. */
  magnitude(from: number, to: number): number {
    return from * (to / from) ** this.next();
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T;
  }
}
