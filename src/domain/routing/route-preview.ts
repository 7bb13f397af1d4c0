// What a dry run of auto routing tells: the record that a request would get, and what it was decided from.

import type { ModelRoute } from './model-route.ts';
import type { RejectionReason } from './route-candidates.ts';

export interface RoutePreview {
  /** `denied`, `unavailable`: the request would be refused (spec 4.11, availability). */
  readonly outcome: 'routed' | 'denied' | 'unavailable';
  /** Public id; null: nobody serves. */
  readonly model: string | null;
  readonly route: ModelRoute | null;
  /** What came of asking the classifier; null: it was not asked. */
  readonly classifierResult: string | null;
  /** All that the classifier is told of the conversation. */
  readonly humanTexts: readonly string[];
  /** As candidates are measured by it; mostly an estimate. */
  readonly conversationTokens: number;
  /** Every candidate of the policy, cheapest tier first; `rejection` null: it can serve. */
  readonly candidates: readonly {
    readonly tier: string;
    readonly model: string;
    readonly rejection: RejectionReason | null;
  }[];
}
