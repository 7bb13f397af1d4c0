// A routing policy: the tiers, models and rules by which `service/auto` chooses the model of a turn (spec 4.11).

/** The name of the platform's default policy, for organizations that route but name no policy (spec 4.11). */
export const DEFAULT_POLICY = 'default';

export interface RoutingPolicy {
  readonly name: string;
  /** Every change makes a new version; records name the version. */
  readonly version: number;
  readonly classifier: { readonly model: string; readonly timeoutMs: number; readonly confidenceFloor: number };
  /** Cheapest first; at least one. */
  readonly tiers: readonly RoutingTier[];
  readonly fallbackTier: string;
  /** Kinds of work that the classifier may name; empty: it is not asked for one. */
  readonly kinds: readonly RoutingKind[];
  readonly followUp: { readonly corrections: boolean; readonly threshold: number } | null;
  readonly sticky: { readonly minTokens: number } | null;
  readonly preferNativeApi: boolean;
}

export interface RoutingTier {
  readonly name: string;
  readonly description: string;
  readonly models: readonly RoutingCandidate[];
}

export interface RoutingCandidate {
  readonly id: string;
  /** Names of the kinds for which this candidate is tried first. */
  readonly strengths: readonly string[];
}

export interface RoutingKind {
  readonly name: string;
  readonly description: string;
}
