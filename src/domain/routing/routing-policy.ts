// A routing policy: by which tiers, models and rules `service/auto` picks the model of a turn (spec 4.11, DESIGN 7).

/**
 * The name of the platform's default: what an organization routes by that is to route and names no policy (spec 4.11).
 */
export const DEFAULT_POLICY = 'default';

export interface RoutingPolicy {
  readonly name: string;
  /** Every change makes a new one; records carry it. */
  readonly version: number;
  readonly classifier: { readonly model: string; readonly timeoutMs: number; readonly confidenceFloor: number };
  /** Cheapest first; at least one. */
  readonly tiers: readonly RoutingTier[];
  readonly fallbackTier: string;
  /** Kinds of work the classifier may name; empty: it is not asked. */
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
  /** Names of kinds at which it is tried first. */
  readonly strengths: readonly string[];
}

export interface RoutingKind {
  readonly name: string;
  readonly description: string;
}
