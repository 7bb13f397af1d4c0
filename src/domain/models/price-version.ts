// One version of the price of a model at a provider, as it is listed.

export interface PriceVersion {
  /** The version that execution records name. */
  readonly version: string;
  readonly provider: string;
  readonly providerModel: string;
  /** As the configuration file writes it. */
  readonly price: Readonly<Record<string, unknown>>;
  readonly createdAtMs: number;
  /** Requests are charged by this version now. */
  readonly isPresent: boolean;
}
