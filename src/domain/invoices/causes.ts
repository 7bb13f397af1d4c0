// The likely causes of a difference between a provider's bill and our records: their names and descriptions.

export const CAUSES = {
  day_not_exported: 'the export leaves the day out',
  day_not_recorded: 'nothing was recorded that day',
  unknown_key: 'a key that the gateway does not use',
  unknown_model: 'a model that the gateway does not call',
  other_charge: 'not for tokens: storage, sessions, fine-tuning',
  credit: 'a credit or free usage',
  tax: 'a tax',
  service_tier: 'served with another service tier, or as a batch',
  long_context: 'billed at the prices of a long context',
  cache: 'the input is divided otherwise between plain, cached and written',
  cache_write_1h: 'cache writes for an hour instead of for minutes, or the other way round',
  day_edge: 'requests at midnight: one side counts them on the other day',
  counted: 'usage that we counted, since the provider reported none',
  cancelled: 'requests whose end nobody saw',
  open: 'requests that are not over, or not posted',
  suspense: 'usage that was not believed, or has no price, is in suspense',
  outside: 'the key is used outside the gateway too',
  not_billed: 'recorded, and not billed',
  no_price: 'requests without a price in the catalog',
  price: 'another price',
  unexplained: 'no cause was found',
} as const;
export type CauseKind = keyof typeof CAUSES;

export interface Cause {
  readonly kind: CauseKind;
  /** The evidence for this cause, as one sentence without a full stop. */
  readonly evidence: string;
  /** The part of the difference in money that it explains, in pico-dollars; null: not known. */
  readonly cost: bigint | null;
}
