// Sums of token counts. A sum can have any size, since a provider may claim any usage for each of many requests.

/** A bigint if a number cannot hold the sum exactly: from 2^53 on. */
export type TokenSum = number | bigint;

/** `sum` may be the digits that a database returns. */
export function tokenSum(sum: bigint | string): TokenSum {
  const number = Number(sum);
  return Number.isSafeInteger(number) ? number : BigInt(sum);
}
