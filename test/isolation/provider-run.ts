// What all connections to the providers share in a run.

import type { SeenPlaceholders } from './guarded.ts';
import type { OwnKeys } from './own-keys.ts';
import type { Exchange } from './plan.ts';
import type { Watch } from './watch.ts';

export interface ProviderParts {
  /** The watch of the present run. */
  watch(): Watch;
  findExchange(index: number): Exchange | undefined;
  /** A promise that the classifier call of this exchange (`kind: auto`) waits for; null: it does not wait. */
  classifierWaits?(exchange: Exchange): Promise<void> | null;
}

export interface ProviderRun {
  readonly parts: ProviderParts;
  /** null until the installation serves. */
  readonly ownKeys: OwnKeys | null;
  /** The placeholders of the present run. */
  readonly placeholders: SeenPlaceholders;
  /** Calls `resume` once enough exchanges are over. */
  stall(resume: () => void): void;
}
