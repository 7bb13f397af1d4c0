// What a test does less of in `npm test` than in `npm run test:long`, which runs each file that imports this once more,
// at length.

const IS_LONG = process.env['TOLLGATE_TEST_AT_LENGTH'] !== undefined;

/** How many: enough to find what is plainly broken, and at length what is broken once in a while. */
export function howMany<Amount>({ short, long }: { readonly short: Amount; readonly long: Amount }): Amount {
  return IS_LONG ? long : short;
}

/**
 * Every so-manieth of a list, beginning elsewhere for each turn, but at least one; at length all. Turns that are the
 * same modulo `apart` have the same ones.
 */
export function someOf<Element>(all: readonly Element[], apart: number, turn: number): readonly Element[] {
  const step = Math.min(apart, all.length);
  return IS_LONG ? all : all.filter((_, index) => (index + turn) % step === 0);
}

/** The options of a test that is run at length only. */
export const AT_LENGTH_ONLY = IS_LONG ? {} : { skip: 'in npm run test:long' };
