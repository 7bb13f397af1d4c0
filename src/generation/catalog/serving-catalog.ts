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
  /** Of the provider's address. */
  readonly origin: string;
  readonly providerModel: string;
  /** The JSON string, quotes included, that replaces the client's `model` value. */
  readonly modelJson: Buffer;
  /** Members of the JSON body that stand there instead of the whole member `model`; null: only its value changes. */
  readonly insteadOfModel: Buffer | null;
  /** The model's name as plain text, for a form's part. */
  readonly modelText: Buffer;
  readonly price: Price | null;
  /**
   * The gateway asks for the usage of a stream, and removes it from the reply unless the client asked too
   * (`stream_usage: request`).
   */
  readonly asksForUsage: boolean;
  /** Whose key the provider is called with. */
  readonly credential: Credential;
  /** The key is the organization's own, whose provider bills it. Absent: the operator's. */
  readonly ownKey?: OwnKeyUse;
}

/** What is known of an own key where it serves. */
export interface OwnKeyUse {
  readonly keyId: string;
  readonly organizationId: string;
  /** Of the present secret. */
  readonly fingerprint: string;
  /** What the platform charges for it; null: nothing. */
  readonly fee: ByokFee | null;
  readonly budgets: ByokSettings['budgets'];
  /** The secret before a rotation: it is tried where the present one is refused. */
  readonly isPrevious: boolean;
}

export function isOwn({ ownKey }: Deployment): boolean {
  return ownKey !== undefined;
}

/** What a request on the deployment costs the wallet: its price, or the fee for an own key. null: it has no price. */
export function walletPrice({ price, ownKey }: Deployment): Price | null {
  return ownKey === undefined ? price : feePrice(ownKey.fee, price);
}

/** A model as it is served on each API. */
export interface ServedModel {
  readonly model: Model;
  /** Deployments by API, first to last as the catalog lists them. */
  readonly deployments: ReadonlyMap<ApiName, readonly Deployment[]>;
  /**
   * The highest price among the deployments of an API, part by part: a hold must cover whichever of them serves. null:
   * a deployment has no price.
   */
  readonly worstPrice: ReadonlyMap<ApiName, WorstPrice | null>;
  /** The deployments of an evaluation model that routing may ask, including those that clients cannot call. */
  readonly classifiers: readonly ClassifierDeployment[];
  /** Why nobody may serve the model on an API to the caller, who has keys of its own. Absent: somebody may. */
  readonly refusals?: ReadonlyMap<ApiName, Refusal>;
  /** Own keys of the caller that are for the model and are not called for now. Absent: none. */
  readonly passedOver?: readonly PassedOverKey[];
  /** The same by the caller's own keys alone. Absent: nobody else serves, or no own key does. */
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
  /** Whether the caller's own keys serve a model, by its public id, or refuse; null: none is for it. Absent: no key. */
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

/** The model as other deployments serve it on an API. */
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

/** The model id as JSON, quotes included: made once per catalog entry. */
export function jsonModelId(modelId: string): Buffer {
  return Buffer.from(JSON.stringify(modelId));
}
