// What the catalog knows of providers and models, as plain data: the shape that storage loads and every gateway holds
// in memory.

import type { PicoUsd } from '../money/pico-usd.ts';
import type { RoutingTable } from '../routing/routing-table.ts';
import type { ApiName, ModelKind } from './apis.ts';

export interface Provider {
  readonly id: string;
  /** Origin and optional path prefix; the dialect's path is appended. No trailing slash. */
  readonly baseUrl: string;
  /** The credential in clear, held in memory only; never logged. Empty where there is none. */
  readonly apiKey: string;
  readonly auth: ProviderAuth;
  /** What becomes of the upstream call when the client leaves: cut it, or read on (bounded) for its usage. */
  readonly onDisconnect: 'cancel' | 'drain';
  /**
   * Whether any organization may name objects stored in the operator's account there (files, conversations,
   * containers). Absent: nobody may, since whose they are is not known.
   */
  readonly storedObjects?: 'shared';
  /** Where the operator has set them; the others are the gateway's own (src/upstream/origin.ts). */
  readonly timeouts?: ProviderTimeouts;
}

/** How a provider is told the credential; `none`: it wants none, as servers on the same machine do. */
export type ProviderAuth = 'bearer' | 'x-api-key' | 'none';

export interface ProviderTimeouts {
  readonly connectMs?: number;
  /** From the request sent to the reply's status line. */
  readonly firstByteMs?: number;
  /** Between two pieces of the reply, and for a client that takes nothing of it. */
  readonly idleMs?: number;
  /** The whole of a call, reply included. */
  readonly totalMs?: number;
}

/** Prices in pico-dollars per token (per image for `image`); null where the provider has no such price. */
export interface Price {
  readonly version: string;
  readonly input: PicoUsd | null;
  readonly cachedInput: PicoUsd | null;
  readonly cacheWrite: PicoUsd | null;
  /** Writes to a cache that lives for an hour. */
  readonly hourCacheWrite?: PicoUsd;
  readonly output: PicoUsd | null;
  readonly image: PicoUsd | null;
}

/** One provider's deployment of a model. */
export interface ServedBy {
  readonly provider: Provider;
  readonly providerModel: string;
  readonly apis: readonly ApiName[];
  /** null: no catalog price; such a model serves only organizations that are not billed. */
  readonly price: Price | null;
  /**
   * Chat Completions streams ask for their usage, whatever the client says of it, and the chunk that tells it is left
   * out of what the client gets.
   */
  readonly streamUsage?: StreamUsage;
  /**
   * An evaluation model that is a chat model underneath: routing asks it by log-probabilities, and nobody else can call
   * it.
   */
  readonly via?: 'logprobs';
}

/** Absent: a stream tells its usage when the client asked for it. */
export type StreamUsage = 'request';

export interface Model {
  /** Public id; a request through an alias is recorded under this id (spec 2.3). */
  readonly id: string;
  readonly displayName: string;
  readonly kind: ModelKind;
  readonly aliases: readonly string[];
  readonly contextLength: number | null;
  readonly maxOutputTokens: number | null;
  /** Makes a missing output limit boundable (spec 7.8). */
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
