// Decides which candidates of a policy can serve a request, and which of a tier is tried first (spec 4.11, point 3).
// Pure.

import { APIS, type RoutedApi } from '../models/apis.ts';
import type { Model } from '../models/catalog.ts';
import type { RoutingCandidate, RoutingPolicy } from './routing-policy.ts';

export const PICKED_BY = ['strength', 'native_api'] as const;
export type PickedBy = (typeof PICKED_BY)[number];

/**
 * Why a candidate was passed over. `unavailable`: it is not in the catalog, or inactive. `not_permitted`: the caller
 * may not use it. `no_price`: the caller is billed and it has no price, or none for a service tier, a speed or a tool
 * that the request names. `credential_unavailable`: the caller's organization has provider keys of its own for it, none
 * can be used, and the service may not step in. `context_too_small`: the conversation, by its estimated size, does not
 * fit. `paused`: none of its providers may be called at the moment. `signed_reasoning`: the history contains another
 * model's reasoning.
 */
export const REJECTION_REASONS = [
  'unavailable',
  'not_permitted',
  'no_price',
  'credential_unavailable',
  'context_too_small',
  'paused',
  'signed_reasoning',
] as const;
export type RejectionReason = (typeof REJECTION_REASONS)[number];

export interface Rejection {
  /** As the policy names it. */
  readonly model: string;
  readonly tier: string;
  readonly reason: RejectionReason;
}

/** What decides which candidates can serve a request. */
export interface CandidateParams {
  readonly policy: RoutingPolicy;
  readonly api: RoutedApi;
  /** Looks a model up by id or alias; inactive models are absent. */
  readonly modelNamed: (name: string) => Model | null;
  /** Public ids; null: every model. */
  readonly allowedModels: ReadonlySet<string> | null;
  readonly isBilled: boolean;
  /**
   * Whether the model has a price for every service tier, speed and tool that the request names. Absent: the request
   * names none, or no candidate has such a price.
   */
  readonly canPrice?: ((model: Model) => boolean) | undefined;
  /**
   * `serve`: own keys of the caller's organization serve the model. `refuse`: the organization has own keys for the
   * model, and none may serve. null: it has none for the model. Absent: it has no own keys at all.
   */
  readonly ownKeysFor?: ((model: Model) => 'serve' | 'refuse' | null) | undefined;
  /** Whether none of the model's providers may be called at the moment. Absent: pauses do not matter. */
  readonly isPaused?: ((model: Model) => boolean) | undefined;
  /** Size of the conversation in tokens, usually an estimate. */
  readonly conversationTokens: number;
  /** The request's own output limit. */
  readonly outputTokensMax: number | null;
}

export interface Pick {
  readonly rank: number;
  readonly model: Model;
  /** null: it is the first candidate of its tier that can serve. */
  readonly pickedBy: PickedBy | null;
  /** The candidates before it that cannot serve; all other candidates, if this one serves as a last resort. */
  readonly rejected: readonly Rejection[];
}

interface Judged {
  readonly candidate: RoutingCandidate;
  readonly model: Model | null;
  readonly rejection: RejectionReason | null;
}

export class RouteCandidates {
  private readonly params: CandidateParams;
  private readonly tiers: readonly (readonly Judged[])[];
  /** Every candidate has a rejection; the largest of those that are only too small serves as a last resort. */
  private readonly isLastResort: boolean;

  constructor(params: CandidateParams) {
    this.params = params;
    const judged = judgeAll(params);
    // If only paused candidates could serve, one of them is chosen: its refusal tells the client how long to wait.
    const tiers = judged.flat().some(isAble) ? judged : judgeAll({ ...params, isPaused: undefined });
    this.isLastResort = !tiers.flat().some(isAble);
    this.tiers = this.isLastResort ? withLargest(tiers) : tiers;
  }

  /** Every candidate, cheapest tier first; `rejection` null: it can serve. */
  get all(): readonly (Omit<Rejection, 'reason'> & { readonly rejection: RejectionReason | null })[] {
    return this.tiers.flatMap((judged, rank) => {
      const tier = this.params.policy.tiers[rank]?.name ?? '';
      return judged.map(({ candidate, rejection }) => ({ model: candidate.id, tier, rejection }));
    });
  }

  /** The candidates that can serve, now or when their pause is over, by the policy's names, cheapest tier first. */
  get able(): readonly string[] {
    const able = this.tiers.flat().filter((judged) => isAble(judged) || judged.rejection === 'paused');
    return able.map(({ candidate }) => candidate.id);
  }

  /** null: some candidate can serve. `denied`: the caller may use none of the candidates that exist. */
  get failure(): 'denied' | 'unavailable' | null {
    const all = this.tiers.flat();
    if (all.some(({ rejection }) => rejection === null)) return null;
    return isDenied(all) ? 'denied' : 'unavailable';
  }

  /** The request fits no candidate, and some candidate was rejected for the request's size alone. */
  get isTooLarge(): boolean {
    return this.isLastResort && this.failure === null;
  }

  /** The tier has models that exist, and the caller may use none of them. */
  isDenied(rank: number): boolean {
    return isDenied(this.tiers[rank] ?? []);
  }

  /**
   * Picks from the wanted tier; if none of its candidates can serve, from the nearest stronger tier, else the nearest
   * weaker one. null when there is a `failure`.
   */
  pick(rank: number, task: string | null): Pick | null {
    const rejected: Rejection[] = [];
    for (const next of outwards(rank, this.tiers.length)) {
      const found = this.pickIn(next, task);
      rejected.push(...found.rejected);
      if (found.judged === null) continue;
      return {
        rank: next,
        model: found.judged.model as Model,
        pickedBy: found.pickedBy,
        rejected: this.isLastResort ? this.rejected : rejected,
      };
    }
    return null;
  }

  private get rejected(): Rejection[] {
    return this.all.flatMap(({ model, tier, rejection }) =>
      rejection === null ? [] : [{ model, tier, reason: rejection }],
    );
  }

  /** What `pick` returns for the strongest tier (spec 2.4, baseline_model). */
  strongest(task: string | null): Pick | null {
    return this.pick(this.tiers.length - 1, task);
  }

  /** The rank of the tier in which a model can serve, the given tier first; null: in none. */
  rankOf(modelId: string, tier: string | null): number | null {
    const canServe = (judged: readonly Judged[]) =>
      judged.some(({ model, rejection }) => rejection === null && model?.id === modelId);
    const named = this.params.policy.tiers.findIndex(({ name }) => name === tier);
    if (canServe(this.tiers[named] ?? [])) return named;
    const rank = this.tiers.findIndex(canServe);
    return rank === -1 ? null : rank;
  }

  /** Why a model cannot be called at all, whatever the policy says; null: it can. */
  rejectionOf(name: string): RejectionReason | null {
    const { modelNamed, allowedModels } = this.params;
    return rejectUncallable(modelNamed(name), allowedModels);
  }

  private pickIn(
    rank: number,
    task: string | null,
  ): { judged: Judged | null; pickedBy: PickedBy | null; rejected: Rejection[] } {
    const tier = this.params.policy.tiers[rank];
    const judged = this.tiers[rank] ?? [];
    const { policy, api } = this.params;
    const isStrong = ({ candidate }: Judged) => task !== null && candidate.strengths.includes(task);
    // The family of an unavailable model is unknown. It counts as native, so that it keeps its place and is reported
    // among the rejected.
    const isNative = ({ model }: Judged) => policy.preferNativeApi && (model === null || isNativeTo(model, api));
    const weight = (one: Judged) => (isStrong(one) ? 2 : 0) + (isNative(one) ? 1 : 0);
    // The sort is stable, so equals keep the policy's order.
    const inOrder = judged.toSorted((one, other) => weight(other) - weight(one));
    const index = inOrder.findIndex(({ rejection }) => rejection === null);
    const passed = index === -1 ? inOrder : inOrder.slice(0, index);
    const rejected = passed.map(({ candidate, rejection }) => ({
      model: candidate.id,
      tier: tier?.name ?? '',
      reason: rejection as RejectionReason,
    }));
    const chosen = inOrder[index] ?? null;
    const first = judged.find(({ rejection }) => rejection === null);
    const isAhead = chosen !== null && first !== undefined && chosen !== first;
    return {
      judged: chosen,
      pickedBy: isAhead ? (isStrong(chosen) && !isStrong(first) ? 'strength' : 'native_api') : null,
      rejected,
    };
  }
}

function isDenied(judged: readonly Judged[]): boolean {
  const existing = judged.filter(({ rejection }) => rejection !== 'unavailable');
  return existing.length > 0 && existing.every(({ rejection }) => rejection === 'not_permitted');
}

function judgeAll(params: CandidateParams): readonly (readonly Judged[])[] {
  return params.policy.tiers.map((tier) => tier.models.map((candidate) => judge(candidate, params)));
}

function isAble({ rejection }: Judged): boolean {
  return rejection === null;
}

function judge(candidate: RoutingCandidate, params: CandidateParams): Judged {
  const model = params.modelNamed(candidate.id);
  const rejection =
    rejectUncallable(model, params.allowedModels) ??
    (model === null ? null : rejectByCost(model, params)) ??
    (model !== null && !isLargeEnough(model, params) ? 'context_too_small' : null) ??
    (model !== null && params.isPaused?.(model) === true ? 'paused' : null);
  return { candidate, model, rejection };
}

/** A model that an own key serves needs no price: its provider bills the organization, not the wallet. */
function rejectByCost(model: Model, params: CandidateParams): RejectionReason | null {
  const own = params.ownKeysFor?.(model) ?? null;
  if (own !== null) return own === 'refuse' ? 'credential_unavailable' : null;
  return params.isBilled && !isPriced(model, params) ? 'no_price' : null;
}

function rejectUncallable(model: Model | null, allowedModels: ReadonlySet<string> | null): RejectionReason | null {
  if (model === null) return 'unavailable';
  return allowedModels === null || allowedModels.has(model.id) ? null : 'not_permitted';
}

/**
 * A model that does not serve the called API fails as if the client had named it (spec 4.11), so it is not rejected
 * here. Token counts are free.
 */
function isPriced(model: Model, { api, canPrice }: CandidateParams): boolean {
  if (api === 'count_tokens') return true;
  return canPrice?.(model) ?? model.servedBy.every(({ apis, price }) => price !== null || !apis.includes(api));
}

/**
 * The reply needs room as well: providers refuse a request whose input and output limit together exceed the context.
 */
function isLargeEnough(
  { contextLength, maxOutputTokens }: Model,
  { conversationTokens, outputTokensMax }: CandidateParams,
): boolean {
  if (contextLength === null) return true;
  const output = outputTokensMax === null ? 0 : Math.min(outputTokensMax, maxOutputTokens ?? outputTokensMax);
  return conversationTokens + output <= contextLength;
}

/**
 * Lets the largest of the candidates that are only too small serve. Two kinds of requests use it: a turn that has begun
 * goes on all the same, and a token count may report that the conversation is too long. Others are refused
 * (`isTooLarge`).
 */
function withLargest(tiers: readonly (readonly Judged[])[]): readonly (readonly Judged[])[] {
  let largest: Judged | null = null;
  for (const judged of tiers.flat()) {
    if (judged.rejection === 'context_too_small' && contextOf(judged) > contextOf(largest)) largest = judged;
  }
  return tiers.map((tier) => tier.map((judged) => (judged === largest ? { ...judged, rejection: null } : judged)));
}

function contextOf(judged: Judged | null): number {
  return judged?.model?.contextLength ?? 0;
}

/** A model's family is that of the API which its first deployment lists first. */
function isNativeTo({ servedBy }: Model, api: RoutedApi): boolean {
  const own = servedBy[0]?.apis[0];
  return own !== undefined && APIS[own].family === APIS[api].family && servedBy.some(({ apis }) => apis.includes(api));
}

/** The tier itself, then upwards, then downwards. */
function outwards(rank: number, tiers: number): number[] {
  const up = Array.from({ length: Math.max(0, tiers - rank) }, (_, step) => rank + step);
  const down = Array.from({ length: Math.max(0, rank) }, (_, step) => rank - 1 - step);
  return [...up, ...down];
}
