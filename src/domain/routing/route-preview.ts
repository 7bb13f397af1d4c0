// The result of a dry run of auto routing: the record that a request would get, and what the decision was based on.

import type { ModelRoute } from './model-route.ts';
import type { RejectionReason } from './route-candidates.ts';

export interface RoutePreview {
  /** `denied`, `unavailable`: the request would be refused (spec 4.11, availability). */
  readonly outcome: 'routed' | 'denied' | 'unavailable';
  /** Public id; null: no model can serve. */
  readonly model: string | null;
  readonly route: ModelRoute | null;
  /** The result of asking the classifier; null: it was not asked. */
  readonly classifierResult: string | null;
  /** Everything that the classifier sees of the conversation. */
  readonly humanTexts: readonly string[];
  /** The size that candidates are checked against, usually an estimate. */
  readonly conversationTokens: number;
  /** Every candidate of the policy, cheapest tier first; `rejection` null: it can serve. */
  readonly candidates: readonly {
    readonly tier: string;
    readonly model: string;
    readonly rejection: RejectionReason | null;
  }[];
}
