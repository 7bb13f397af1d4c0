// The catalog in the form that the data plane reads: names resolved, and body edits and upstream paths prepared once
// for each change of the catalog.

import type { ApiName } from '../../domain/models/apis.ts';
import { type Catalog, type Model, type ServedBy, STREAM_USAGE_API } from '../../domain/models/catalog.ts';
import { type Price, priceOn } from '../../domain/models/price.ts';
import type { Provider } from '../../domain/models/provider.ts';
import type { PassedOverKey } from '../../domain/own-keys/attempt-order.ts';
import type { ByokFee, ByokSettings } from '../../domain/own-keys/byok-settings.ts';
import { feePrice } from '../../domain/own-keys/fee-price.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { RoutingTable } from '../../domain/routing/routing-table.ts';
import { type Credential, providerCredential } from '../../upstream/credential.ts';
import { type WorstPrice, worstOf } from './worst-price.ts';

/** One provider's deployment of a model on one API, ready to be called. */
export interface Deployment {
  readonly provider: Provider;
  /** The origin of the provider's address. */
  readonly origin: string;
  readonly providerModel: string;
  /** The JSON string, quotes included, that replaces the client's `model` value. */
  readonly modelJson: Buffer;
  /** Members of the JSON body that replace the whole member `model`; null: only its value is replaced. */
  readonly insteadOfModel: Buffer | null;
  /** The model's name as plain text, for a form's part. */
  readonly modelText: Buffer;
  readonly price: Price | null;
  /**
   * The gateway asks for the usage of a stream, and removes it from the reply unless the client asked too
   * (`stream_usage: request`).
   */
  readonly asksForUsage: boolean;
  /** The key that the provider is called with. */
  readonly credential: Credential;
  /** Set when the key is the organization's own and its provider bills the organization; absent: the operator's key. */
  readonly ownKey?: OwnKeyUse;
}

/** The facts about an own key that a deployment needs. */
export interface OwnKeyUse {
  readonly keyId: string;
  readonly organizationId: string;
  /** The fingerprint of the present secret. */
  readonly fingerprint: string;
  /** What the platform charges for it; null: nothing. */
  readonly fee: ByokFee | null;
  readonly budgets: ByokSettings['budgets'];
  /** This is the secret before a rotation: it is tried only when the present one is refused. */
  readonly isPrevious: boolean;
}

export function isOwn({ ownKey }: Deployment): boolean {
  return ownKey !== undefined;
}

/**
 * The price that the wallet pays for a request on the deployment: its price, or the fee for an own key. null: it has
 * none.
 */
export function walletPrice({ price, ownKey }: Deployment): Price | null {
  return ownKey === undefined ? price : feePrice(ownKey.fee, price);
}

/** A model as it is served on each API. */
export interface ServedModel {
  readonly model: Model;
  /** Deployments by API, in the order of the catalog. */
  readonly deployments: ReadonlyMap<ApiName, readonly Deployment[]>;
  /**
   * The highest price among the deployments of an API, part by part: a hold must cover whichever of them serves. null:
   * a deployment has no price.
   */
  readonly worstPrice: ReadonlyMap<ApiName, WorstPrice | null>;
  /** The deployments of an evaluation model that routing may ask, including those that clients cannot call. */
  readonly classifiers: readonly ClassifierDeployment[];
  /** Why no deployment may serve the model on an API to a caller with own keys. Absent: some may. */
  readonly refusals?: ReadonlyMap<ApiName, Refusal>;
  /** The caller's own keys for the model that are not used for now. Absent: none. */
  readonly passedOver?: readonly PassedOverKey[];
  /** The same model served by the caller's own keys alone. Absent: only own keys serve anyway, or none does. */
  readonly ownOnly?: ServedModel;
}

export interface ClassifierDeployment extends Deployment {
  readonly via: 'systemone' | 'logprobs';
}

export interface ServingCatalog {
  readonly version: number;
  readonly models: readonly Model[];
  readonly byName: Pick<ReadonlyMap<string, ServedModel>, 'get'>;
  /** The providers that serve at least one model, by id. */
  readonly providers: ReadonlyMap<string, Provider>;
  readonly routing: RoutingTable;
  /**
   * Whether the caller's own keys serve a model (public id), or make it refused; null: no key is for it. Absent: the
   * caller has no own keys.
   */
  readonly ownKeysFor?: (modelId: string, api: ApiName) => 'serve' | 'refuse' | null;
}

/** Prepares a catalog snapshot for serving. Deployments keep the administrator's order. */
export function prepareCatalog(catalog: Catalog): ServingCatalog {
  const prepared = new Map<Model, ServedModel>();
  const byName = new Map<string, ServedModel>();
  for (const [name, model] of catalog.byName) {
    let served = prepared.get(model);
    if (served === undefined) {
      served = prepareModel(model);
      prepared.set(model, served);
    }
    byName.set(name, served);
  }
  const providers = new Map(
    catalog.models.flatMap((model) => model.servedBy.map(({ provider }) => [provider.id, provider] as const)),
  );
  return { version: catalog.version, models: catalog.models, byName, providers, routing: catalog.routing };
}

function prepareModel(model: Model): ServedModel {
  const deployments = new Map<ApiName, Deployment[]>();
  const classifiers: ClassifierDeployment[] = [];
  for (const served of model.servedBy) {
    if (served.apis.includes('systemone'))
      classifiers.push({ ...prepareDeployment(served, 'systemone'), via: served.via ?? 'systemone' });
    // A typed question cannot be relayed to a chat model unchanged.
    for (const api of served.via === undefined ? served.apis : []) {
      const ofApi = deployments.get(api) ?? [];
      ofApi.push(prepareDeployment(served, api));
      deployments.set(api, ofApi);
    }
  }
  const worstPrice = new Map<ApiName, WorstPrice | null>();
  for (const [api, ofApi] of deployments) worstPrice.set(api, worstOf(ofApi.map(({ price }) => price)));
  return { model, deployments, worstPrice, classifiers };
}

/** The model with other deployments for one API. */
export function withDeployments(served: ServedModel, api: ApiName, deployments: readonly Deployment[]): ServedModel {
  return {
    ...served,
    deployments: new Map([...served.deployments, [api, deployments]]),
    worstPrice: new Map([...served.worstPrice, [api, worstOf(deployments.map(walletPrice))]]),
  };
}

export function prepareDeployment(
  { provider, providerModel, price, streamUsage, via }: ServedBy,
  api: ApiName,
): Deployment {
  return {
    provider,
    origin: new URL(provider.baseUrl).origin,
    providerModel,
    modelJson: jsonModelId(providerModel),
    insteadOfModel: membersInsteadOfModel(provider.requests?.apis[api]?.insteadOfModel, providerModel),
    modelText: Buffer.from(providerModel),
    price: price !== null && via === undefined ? priceOn(api, price) : price,
    asksForUsage: streamUsage === 'request' && api === STREAM_USAGE_API,
    credential: providerCredential(provider),
  };
}

function membersInsteadOfModel(
  members: Readonly<Record<string, string>> | undefined,
  providerModel: string,
): Buffer | null {
  if (members === undefined) return null;
  const written = Object.entries(members).map(
    ([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value.replaceAll('{model}', providerModel))}`,
  );
  return Buffer.from(written.join(','));
}

/** The model id as JSON, quotes included. Made once for each catalog entry. */
export function jsonModelId(modelId: string): Buffer {
  return Buffer.from(JSON.stringify(modelId));
}
