// The interface of code that records why an exchange is refused.

import type { Refusal } from '../domain/refusals/refusal.ts';

export interface RefusalWatch {
  /** Called once, before the refusal is answered. */
  onRefused(refusal: Refusal): void;
}
