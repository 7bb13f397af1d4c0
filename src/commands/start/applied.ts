// What the banner and later processes need to know about the configuration that `tollgate start` has applied.

import type { Configuration } from '../../domain/configuration/configuration.ts';
import type { ShownKey } from './banner.ts';

export interface Applied {
  readonly isDemo: boolean;
  /** A key to try the service with. */
  readonly key: ShownKey | null;
  /** A model to try, when there is one. */
  readonly model: string | null;
  /** The code of the link that opens the demo's console; null: this is not the demo, or it has no console. */
  readonly linkCode: string | null;
}

export const NOTHING_APPLIED: Applied = { isDemo: false, key: null, model: null, linkCode: null };

/** Finds a model for the banner's request, which sets no output limit. */
export function findTriable({ models }: Configuration): string | null {
  const model = models.find(
    ({ active, maxCompletionTokensCap, servedBy }) =>
      active !== false &&
      maxCompletionTokensCap !== null &&
      servedBy.some((deployment) => deployment.apis.includes('chat_completions') && deployment.price !== null),
  );
  return model?.id ?? null;
}
