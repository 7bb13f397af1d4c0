// Sums of token counts, of any size: a provider may claim to have used whatever it likes, for each of many requests.

/** A bigint where no number holds the sum: from 2^53 on. */
export type TokenSum = number | bigint;

/** `sum`: also as the digits that a database writes. */
export function tokenSum(sum: bigint | string): TokenSum {
  const number = Number(sum);
  return Number.isSafeInteger(number) ? number : BigInt(sum);
}
