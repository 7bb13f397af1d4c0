// A wallet as its owner and the platform see it.

export interface PayerWallet {
  readonly id: string;
  readonly organizationId: string;
  /** null: the organization's wallet; otherwise the user's own. */
  readonly userId: string | null;
  /** Everything deposited and not yet charged, in pico-dollars. */
  readonly balance: bigint;
  /** The part of the balance that open requests hold, as far as gateways have recorded it. */
  readonly held: bigint;
  /** The rest of what gateways have leased: for coming requests, and for charges that are not posted yet. */
  readonly lent: bigint;
  readonly frozen: boolean;
  readonly createdAtMs: number;
}
