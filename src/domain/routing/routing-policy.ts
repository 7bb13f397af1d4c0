// A routing policy as the router reads it (DESIGN 7): which models serve `auto` requests of an organization, and what decides between them.

/** One version of a policy: every change makes a new one, and records carry it. */
export interface RoutingPolicy {
  readonly name: string;
  readonly version: number;
  readonly classifier: PolicyClassifier;
  /** Cheapest first; at least one. */
  readonly tiers: readonly RoutingTier[];
  /** Name of the tier that serves where nothing was classified. */
  readonly fallbackTier: string;
  /** Kinds of work by name, each with its description; empty: the policy names none. */
  readonly kinds: ReadonlyMap<string, string>;
  /** null: nobody asks whether a follow-up corrects the previous answer. */
  readonly followUp: FollowUpSetting | null;
  /** null: a conversation may change its model however long it is. */
  readonly sticky: { readonly minTokens: number } | null;
  /** Models whose own API family is the called one are tried first. */
  readonly preferNativeApi: boolean;
}

export interface PolicyClassifier {
  /** Public name of an evaluation model. */
  readonly model: string;
  readonly timeoutMs: number;
  /** A classification below it counts as unsure. */
  readonly confidenceFloor: number;
}

export interface RoutingTier {
  readonly name: string;
  readonly description: string;
  /** In the order in which they are tried; at least one. */
  readonly models: readonly TierModel[];
}

export interface TierModel {
  /** Public name of a text model. */
  readonly id: string;
  /** Kinds of work at which it is tried first. */
  readonly strengths: readonly string[];
}

export interface FollowUpSetting {
  readonly corrections: boolean;
  /** From this probability on, a follow-up counts as a correction. */
  readonly threshold: number;
}

/** The APIs on which the virtual model is served (spec 4.11). */
export type RoutedApi = 'chat_completions' | 'responses' | 'messages' | 'count_tokens';
