// What one of an organization's own provider keys was used for.

import type { PicoUsd } from '../money/pico-usd.ts';
import type { TokenSum } from '../usage/token-sum.ts';

export interface OwnKeyUsage {
  readonly keyId: string;
  readonly name: string;
  readonly kind: string;
  readonly requests: number;
  readonly inputTokens: TokenSum;
  readonly outputTokens: TokenSum;
  /** What the usage is rated at, by the organization's own prices where it has some. */
  readonly ratedCost: PicoUsd;
  /** The platform's fee. */
  readonly charged: PicoUsd;
  readonly lastUsedAtMs: number | null;
}
