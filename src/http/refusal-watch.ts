// Whoever records what an exchange is refused for.

import type { Refusal } from '../domain/refusals/refusal.ts';

export interface RefusalWatch {
  /** Told once, before the refusal is answered. */
  onRefused(refusal: Refusal): void;
}
