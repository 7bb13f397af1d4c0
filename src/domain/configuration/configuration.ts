// A configuration file after validation, as plain data: what `tollgate apply` writes to the database.

import type { GuardrailDefinition } from '../guardrails/policy-definition.ts';
import type { Role } from '../identity/roles.ts';
import type { PriceWords } from '../list-prices/listed-price.ts';
import type { Model, ServedBy } from '../models/catalog.ts';
import type { Price } from '../models/price.ts';
import type { Provider } from '../models/provider.ts';
import type { PicoUsd } from '../money/pico-usd.ts';
import type { ByokSettings } from '../own-keys/byok-settings.ts';
import type { KeyAddress, KeyFallback, KeyPlace } from '../own-keys/own-key.ts';
import type { BudgetWindow, CountedKind } from '../quotas/limit-kinds.ts';
import type { PolicyDefinition } from '../routing/policy-definition.ts';
import type { RequestFields } from './schema/request-settings.ts';

export const SECTION_NAMES = ['providers', 'models', 'routing_policies', 'guardrails', 'organizations'] as const;
export type SectionName = (typeof SECTION_NAMES)[number];

export interface Configuration {
  /** The sections that the file has; what a section no longer lists can be removed (`apply --prune`). */
  readonly sections: readonly SectionName[];
  readonly providers: readonly ConfiguredProvider[];
  readonly models: readonly ConfiguredModel[];
  readonly routingPolicies: readonly ConfiguredRoutingPolicy[];
  readonly guardrails: readonly ConfiguredGuardrail[];
  readonly organizations: readonly ConfiguredOrganization[];
}

/**
 * A provider in the file. The settings of its requests stay as written, since they are stored, compared and shown in
 * that form.
 */
export interface ConfiguredProvider extends Omit<Provider, 'requests'> {
  /** null: requests have no settings. */
  readonly requests: RequestFields | null;
  /** The secret by which tokens are obtained, as JSON; null: the file has none. Absent: the provider takes a key. */
  readonly tokenSecret?: string | null;
}

/** `apiKey` null: the stored key stays. */
export type ProviderChange = Omit<ConfiguredProvider, 'apiKey'> & { readonly apiKey: string | null };

export interface ConfiguredModel extends Omit<Model, 'active' | 'createdAtMs' | 'servedBy'> {
  /** null: the file does not say. An existing model then stays as it is; a new one is active. */
  readonly active: boolean | null;
  readonly servedBy: readonly ConfiguredDeployment[];
}

export interface ConfiguredDeployment extends Omit<ServedBy, 'provider' | 'price' | 'prices'> {
  /** The provider's id. */
  readonly provider: string;
  readonly price: ConfiguredPrice | null;
  /** The prices after `price`, if there are several; the last valid one counts. */
  readonly furtherPrices?: readonly ConfiguredPrice[];
}

/** A deployment's price. It has no version until it is in the catalog. */
export type ConfiguredPrice = Omit<Price, 'version'>;

export interface ConfiguredRoutingPolicy {
  readonly name: string;
  readonly definition: PolicyDefinition;
}

/** A guardrail policy of the platform. */
export interface ConfiguredGuardrail {
  readonly name: string;
  readonly definition: GuardrailDefinition;
}

/** Names of the policies that the platform assigns; keys by their names. */
export interface ConfiguredAssignments {
  readonly onUnavailable: 'refuse' | 'pass' | null;
  /** null: the assignments to the organization as a whole stay as they are. */
  readonly policies: readonly string[] | null;
  readonly teams: Readonly<Record<string, readonly string[]>>;
  readonly keys: Readonly<Record<string, readonly string[]>>;
}

/** An organization in the file. null in a field: the file does not say, and the setting stays as it is. */
export interface ConfiguredOrganization {
  readonly slug: string;
  readonly displayName: string | null;
  readonly billing: 'prepaid' | 'none' | null;
  readonly openingCredit: PicoUsd | null;
  /** `policy` null: auto routing is off. */
  readonly autoRouting: { readonly policy: string | null } | null;
  readonly limits: readonly UsageLimit[] | null;
  readonly teams: readonly string[];
  readonly users: readonly ConfiguredUser[];
  readonly keys: readonly ConfiguredKey[] | null;
  readonly webhook: ConfiguredWebhook | null;
  readonly guardrails: ConfiguredAssignments | null;
  /** The platform's grant and the organization's choices for own provider keys; only settings that the file has. */
  readonly byok: Partial<ByokSettings> | null;
  readonly ownKeys: readonly ConfiguredOwnKey[] | null;
  /** Prices of models at the organization's own providers, by public id. */
  readonly ownPrices: Readonly<Record<string, PriceWords>> | null;
}

/** An organization's own provider key. It is stored without asking its provider. */
export interface ConfiguredOwnKey extends KeyAddress {
  readonly kind: string;
  readonly name: string;
  readonly secret: string;
  readonly place: KeyPlace;
  readonly fallback: KeyFallback;
  readonly models: readonly string[] | null;
  readonly modelMap: Readonly<Record<string, string>>;
}

/** The address that is notified when a charge of the organization is final. */
export interface ConfiguredWebhook {
  readonly url: string;
  readonly secret: string;
  /** null: the file does not say; a new one is active. */
  readonly active: boolean | null;
}

/**
 * A limit applies to the model whose public id is `model`, or to all models together without it. A scope has at most
 * one limit of each kind, window and model.
 */
export type UsageLimit =
  | {
      readonly kind: CountedKind;
      readonly limit: bigint;
      readonly model?: string;
    }
  | {
      readonly kind: 'budget';
      readonly window: BudgetWindow;
      readonly limit: PicoUsd;
      readonly model?: string;
    };

export interface ConfiguredUser {
  readonly email: string;
  /** null: the file does not say; a new member has the role `member`. */
  readonly role: Role | null;
  readonly teams: readonly string[];
}

export interface ConfiguredKey {
  readonly name: string;
  readonly team: string | null;
  readonly userEmail: string | null;
  /** null: one is generated when the key is first applied. */
  readonly secret: string | null;
}
