// A deposit into a wallet, as it is requested and as it is shown.

import type { PicoUsd } from './pico-usd.ts';

export interface Deposit {
  readonly id: string;
  readonly amount: PicoUsd;
  readonly reference: string;
  readonly createdAtMs: number;
}

export interface PostDepositParams {
  readonly organizationId: string;
  /** null: the organization's wallet; otherwise this member's own. */
  readonly userId: string | null;
  readonly amount: PicoUsd;
  readonly reference: string;
}
