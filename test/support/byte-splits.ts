// Cuts bytes into pieces: whole, one byte each, or at random from a printed seed. No recording has the timing of
// chunks, so these splits replace it.

export type SplitPlan =
  | { readonly kind: 'whole' }
  /** Everything before `from` (default 0) is one piece. */
  | { readonly kind: 'each_byte'; readonly from?: number }
  /** Pieces of 1 to `bytesMax` bytes, small ones by far the most frequent. */
  | { readonly kind: 'random'; readonly seed: number; readonly bytesMax: number }
  /** Two pieces, the second beginning at this offset. */
  | { readonly kind: 'two'; readonly at: number };

/** Numbers in [0, 1) fixed by their seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function splitBytes(bytes: Buffer, plan: SplitPlan): Buffer[] {
  switch (plan.kind) {
    case 'whole':
      return bytes.length === 0 ? [] : [bytes];
    case 'two':
      return [bytes.subarray(0, plan.at), bytes.subarray(plan.at)].filter((piece) => piece.length > 0);
    case 'each_byte':
      return splitEachByte(bytes, plan.from ?? 0);
    case 'random':
      return splitAtRandom(bytes, plan.seed, plan.bytesMax);
  }
}

function splitEachByte(bytes: Buffer, from: number): Buffer[] {
  const first = from === 0 ? [] : [bytes.subarray(0, from)];
  return [
    ...first,
    ...Array.from({ length: bytes.length - from }, (_, index) => bytes.subarray(from + index, from + index + 1)),
  ];
}

function splitAtRandom(bytes: Buffer, seed: number, bytesMax: number): Buffer[] {
  const random = seededRandom(seed);
  const pieces: Buffer[] = [];
  for (let offset = 0; offset < bytes.length; ) {
    // The cube of a uniform number: half of all pieces are shorter than an eighth of the longest.
    const part = random();
    const length = 1 + Math.floor(part * part * part * bytesMax);
    pieces.push(bytes.subarray(offset, offset + length));
    offset += length;
  }
  return pieces;
}
