// Lets a test do less in `npm test` than in `npm run test:long`, which runs each file that imports this module once
// more, at length.

const IS_LONG = process.env['TOLLGATE_TEST_AT_LENGTH'] !== undefined;

/** Chooses an amount: the short one finds plain faults, the long one also finds rare ones. */
export function howMany<Amount>({ short, long }: { readonly short: Amount; readonly long: Amount }): Amount {
  return IS_LONG ? long : short;
}

/**
 * Returns every `apart`-th element of a list, but at least one; at length all of them. The start depends on `turn`;
 * turns that are equal modulo `apart` get the same elements.
 */
export function someOf<Element>(all: readonly Element[], apart: number, turn: number): readonly Element[] {
  const step = Math.min(apart, all.length);
  return IS_LONG ? all : all.filter((_, index) => (index + turn) % step === 0);
}

/** The options of a test that runs only at length. */
export const AT_LENGTH_ONLY = IS_LONG ? {} : { skip: 'in npm run test:long' };
