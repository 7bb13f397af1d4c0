// The catalog of providers and models as plain data: storage loads it, and every gateway holds it in memory.

import type { RoutingTable } from '../routing/routing-table.ts';
import type { ApiName, ModelKind } from './apis.ts';
import type { Price } from './price.ts';
import type { Provider } from './provider.ts';

/** One provider's deployment of a model. */
export interface ServedBy {
  readonly provider: Provider;
  readonly providerModel: string;
  readonly apis: readonly ApiName[];
  /** null: the model has no price and serves only organizations that are not billed. */
  readonly price: Price | null;
  /**
   * Present if there are several prices, or one that is not always valid; `price` is then the currently valid one
   * (dated-prices.ts).
   */
  readonly prices?: readonly Price[];
  /**
   * `request`: chat-completions streams always ask the provider for usage; if the client did not ask, the chunk that
   * carries it is left out of the client's reply.
   */
  readonly streamUsage?: StreamUsage;
  /**
   * `logprobs`: an evaluation model that is really a chat model. Routing asks it through log-probabilities, and clients
   * cannot call it.
   */
  readonly via?: 'logprobs';
}

/** Absent: a stream reports usage only if the client asked for it. */
export type StreamUsage = 'request';

/**
 * The one API whose streams report usage only if the request asks for it; `stream_usage` does not concern the others.
 */
export const STREAM_USAGE_API: ApiName = 'chat_completions';

export interface Model {
  /** Public id; a request through an alias is recorded under this id (spec 2.3). */
  readonly id: string;
  readonly displayName: string;
  readonly kind: ModelKind;
  readonly aliases: readonly string[];
  readonly contextLength: number | null;
  readonly maxOutputTokens: number | null;
  /** The output limit that a request without one is bounded by (spec 7.8). */
  readonly maxCompletionTokensCap: number | null;
  /** Most input tokens one attachment can cost; null means up to the whole context. */
  readonly attachmentTokensMax: number | null;
  readonly tokenizer: string;
  readonly active: boolean;
  readonly createdAtMs: number;
  readonly servedBy: readonly ServedBy[];
}

/** A consistent snapshot; `version` grows with every applied change. */
export interface Catalog {
  readonly version: number;
  readonly models: readonly Model[];
  /** Model by public id and by every alias. Inactive models are absent. */
  readonly byName: ReadonlyMap<string, Model>;
  readonly routing: RoutingTable;
}
