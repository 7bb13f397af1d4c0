// A configuration file after validation, as plain data: what `tollgate apply` writes to the database.

import type { Role } from '../identity/roles.ts';
import type { ApiName, ModelKind } from '../models/apis.ts';
import type { Provider, StreamUsage } from '../models/catalog.ts';
import type { PicoUsd } from '../money/pico-usd.ts';
import type { PolicyDefinition } from '../routing/policy-definition.ts';

export interface Configuration {
  readonly providers: readonly Provider[];
  readonly models: readonly ConfiguredModel[];
  readonly routingPolicies: readonly ConfiguredRoutingPolicy[];
  readonly organizations: readonly ConfiguredOrganization[];
}

export interface ConfiguredModel {
  readonly id: string;
  readonly displayName: string;
  readonly kind: ModelKind;
  readonly aliases: readonly string[];
  readonly contextLength: number | null;
  readonly maxOutputTokens: number | null;
  readonly maxCompletionTokensCap: number | null;
  readonly attachmentTokensMax: number | null;
  readonly tokenizer: string;
  readonly active: boolean;
  readonly servedBy: readonly ConfiguredDeployment[];
}

export interface ConfiguredDeployment {
  readonly provider: string;
  readonly providerModel: string;
  readonly apis: readonly ApiName[];
  readonly price: ConfiguredPrice | null;
  readonly streamUsage?: StreamUsage;
  readonly via?: 'logprobs';
}

/** Pico-dollars per token; `image`: per image. */
export interface ConfiguredPrice {
  readonly input: PicoUsd | null;
  readonly cachedInput: PicoUsd | null;
  readonly cacheWrite: PicoUsd | null;
  /** Writes to a cache that lives for an hour. */
  readonly hourCacheWrite?: PicoUsd;
  readonly output: PicoUsd | null;
  readonly image: PicoUsd | null;
}

export interface ConfiguredRoutingPolicy {
  readonly name: string;
  readonly definition: PolicyDefinition;
}

export interface ConfiguredOrganization {
  readonly slug: string;
  readonly displayName: string;
  readonly billing: 'prepaid' | 'none';
  readonly openingCredit: PicoUsd | null;
  readonly autoRoutingPolicy: string | null;
  /** null: the file says nothing about them. */
  readonly limits: readonly UsageLimit[] | null;
  readonly teams: readonly string[];
  readonly users: readonly ConfiguredUser[];
  readonly keys: readonly ConfiguredKey[];
  /** null: the file says nothing about one. */
  readonly webhook: ConfiguredWebhook | null;
}

/** The address that is notified when a charge of the organization is final. */
export interface ConfiguredWebhook {
  readonly url: string;
  readonly secret: string;
  readonly active: boolean;
}

/**
 * A limit applies to the model whose public id is `model`, or to all models together without it. A scope has at most
 * one limit of each kind, window and model.
 */
export type UsageLimit =
  | {
      readonly kind: 'requests_per_minute' | 'tokens_per_minute' | 'concurrent_requests';
      readonly limit: bigint;
      readonly model?: string;
    }
  | {
      readonly kind: 'budget';
      readonly window: 'hour' | 'day' | 'week' | 'month';
      readonly limit: PicoUsd;
      readonly model?: string;
    };

export interface ConfiguredUser {
  readonly email: string;
  readonly role: Role;
  readonly teams: readonly string[];
}

export interface ConfiguredKey {
  readonly name: string;
  readonly team: string | null;
  readonly userEmail: string | null;
  /** null: one is generated when the key is first applied. */
  readonly secret: string | null;
}
