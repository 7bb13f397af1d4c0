// Check digits and checksums over ASCII texts and digits. Digits are given as bytes 0 to 9.

/** The check of payment cards, ISO/IEC 7812-1. */
export function passesLuhn(digits: ArrayLike<number>, count: number): boolean {
  let sum = 0;
  for (let index = 0; index < count; index += 1) {
    const digit = digits[count - 1 - index] as number;
    const doubled = index % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}

/** The sum of each digit times its weight. Digits beyond the weights do not count. */
export function weightedSum(digits: ArrayLike<number>, weights: readonly number[]): number {
  return weights.reduce((sum, weight, index) => sum + weight * (digits[index] ?? 0), 0);
}

/**
 * ISO 7064 MOD 97-10 of `count` letters and digits (A counts as 10), read from `from` to the end and then from the
 * beginning.
 */
export function mod97(codes: ArrayLike<number>, count: number, from: number): number {
  let rest = 0;
  for (let index = 0; index < count; index += 1) {
    const place = from + index;
    const code = codes[place < count ? place : place - count] as number;
    rest = code <= 0x39 ? (rest * 10 + code - 0x30) % 97 : (rest * 100 + code - 0x37) % 97;
  }
  return rest;
}

/** ISO 7064 MOD 11,10. */
export function passesMod11And10(digits: ArrayLike<number>, count: number): boolean {
  let product = 10;
  for (let index = 0; index < count - 1; index += 1) {
    const sum = ((digits[index] as number) + product) % 10;
    product = ((sum === 0 ? 10 : sum) * 2) % 11;
  }
  const check = 11 - product;
  return (check === 10 ? 0 : check % 10) === digits[count - 1];
}

/** Verhoeff's dihedral check, from its multiplication and permutation. */
export function passesVerhoeff(digits: ArrayLike<number>, count: number): boolean {
  let check = 0;
  for (let index = 0; index < count; index += 1) {
    const permuted = (VERHOEFF_PERMUTATION[index % 8] as readonly number[])[digits[count - 1 - index] as number];
    check = dihedral(check, permuted as number);
  }
  return check === 0;
}

/** The product in the group of the symmetries of a pentagon: 0 to 4 are rotations, 5 to 9 reflections. */
function dihedral(one: number, other: number): number {
  const rotation = one < 5 ? (one + other) % 5 : (one - other + 5) % 5;
  return one < 5 === other < 5 ? rotation : 5 + rotation;
}

const VERHOEFF_PERMUTATION = ((): readonly (readonly number[])[] => {
  const first = [1, 5, 7, 6, 2, 8, 3, 0, 9, 4];
  const rows = [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]];
  while (rows.length < 8) rows.push((rows.at(-1) as number[]).map((digit) => first[digit] as number));
  return rows;
})();
