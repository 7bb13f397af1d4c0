// One version of the price of a model at a provider, as it is listed.

export interface PriceVersion {
  /** What records name. */
  readonly version: string;
  readonly provider: string;
  readonly providerModel: string;
  /** As the configuration file writes it. */
  readonly price: Readonly<Record<string, unknown>>;
  readonly createdAtMs: number;
  /** It is the price that requests are charged by now. */
  readonly isPresent: boolean;
}
