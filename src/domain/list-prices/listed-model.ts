// A model in a list of published prices, in the same shape for every publisher of such lists.

export interface ListedModel {
  readonly id: string;
  readonly name: string | null;
  readonly contextLength: number | null;
  readonly isDeprecated: boolean;
  /** The last valid one counts. */
  readonly prices: readonly ListedPrice[];
}

export interface ListedPrice {
  /** A date, YYYY-MM-DD. */
  readonly from: string | null;
  /** Hours of the day with their zone: 16:30:00Z. */
  readonly between: { readonly from: string; readonly until: string } | null;
  /** By the list's own names, such as `input_mtok`. */
  readonly amounts: Readonly<Record<string, ListedAmount | undefined>>;
}

/** One amount, or one that rises with the input: a tier is for input above its `start`. */
export type ListedAmount =
  | number
  | { readonly base: number; readonly tiers: readonly { readonly start: number; readonly price: number }[] };
