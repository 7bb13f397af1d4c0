// The usage of one of an organization's own provider keys.

import type { PicoUsd } from '../money/pico-usd.ts';
import type { TokenSum } from '../usage/token-sum.ts';

export interface OwnKeyUsage {
  readonly keyId: string;
  readonly name: string;
  readonly kind: string;
  readonly requests: number;
  readonly inputTokens: TokenSum;
  readonly outputTokens: TokenSum;
  /** The rated cost of the usage, by the organization's own prices if it has any. */
  readonly ratedCost: PicoUsd;
  /** The platform's fee. */
  readonly charged: PicoUsd;
  readonly lastUsedAtMs: number | null;
}
