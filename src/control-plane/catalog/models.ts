// The models of the catalog and their prices, for platform administrators.

import { z } from 'zod';
import { basedOn, requestedModel } from '../../domain/configuration/schema/catalog-schema.ts';
import { modelNameSchema } from '../../domain/configuration/schema/name-schemas.ts';
import { pricesSchema } from '../../domain/configuration/schema/price-schema.ts';
import type { PriceVersion } from '../../domain/models/price-version.ts';
import { answerOf, removedAnswer, shownOrRefused } from '../answers.ts';
import { showMoment, shownMoment } from '../identity/fields.ts';
import { actorOf, idOf } from '../identity/tenancy.ts';
import { type Operation, operation } from '../operation.ts';
import { changedModel, showChangedModel, showModel, shownModel, shownPrice } from './catalog-fields.ts';
import type { CatalogStore } from './catalog-store.ts';
import { basedOnQuery } from './providers.ts';

export function listModels(store: CatalogStore): Operation {
  return operation({
    id: 'listCatalogModels',
    summary: 'Lists all models with the providers that serve them and their prices, inactive ones too.',
    answer: z.object({ data: z.array(shownModel) }),
    run: async () => ({ data: (await store.list('model')).map(showModel) }),
  });
}

export function getModel(store: CatalogStore): Operation {
  return operation({
    id: 'getCatalogModel',
    summary: 'Shows a model by its id, whose slashes may be escaped.',
    answer: answerOf(shownModel),
    run: async ({ ids }) => shownOrRefused(await store.get({ kind: 'model', id: idOf(ids, 'modelName') }), showModel),
  });
}

export function putModel(store: CatalogStore): Operation {
  return operation({
    id: 'putCatalogModel',
    summary:
      'Makes a model, or replaces what is said of one; gateways follow within a second. Without `active` it stays as ' +
      'it is.',
    body: requestedModel,
    answer: answerOf(changedModel),
    run: async ({ principal, ids, body: { version, model } }) => {
      const change = { version, model: model(idOf(ids, 'modelName')) };
      return shownOrRefused(await store.putModel(actorOf(principal), change), showChangedModel);
    },
  });
}

export function removeModel(store: CatalogStore): Operation {
  return operation({
    id: 'removeCatalogModel',
    summary: 'Removes a model that no routing policy names. Its prices stay for the records that name them.',
    query: basedOnQuery,
    answer: removedAnswer,
    run: async ({ principal, ids, query: { version = null } }) => {
      const target = { kind: 'model', id: idOf(ids, 'modelName'), version } as const;
      return shownOrRefused(await store.remove(actorOf(principal), target), (done) => done);
    },
  });
}

const shownVersion = z.object({
  version: z.string().meta({ description: 'The name of this price in the records of requests.' }),
  provider: z.string(),
  provider_model: z.string(),
  price: shownPrice,
  created_at: shownMoment,
  present: z.boolean().meta({ description: 'Whether requests are charged by this price now.' }),
});

function showVersion({ version, provider, providerModel, price, createdAtMs, isPresent }: PriceVersion) {
  const created_at = showMoment(createdAtMs);
  return { version, provider, provider_model: providerModel, price, created_at, present: isPresent };
}

export function listPrices(store: CatalogStore): Operation {
  return operation({
    id: 'listCatalogPrices',
    summary: 'Lists the prices that a model has had, newest first; a removed model’s too.',
    query: z.object({ model: modelNameSchema }),
    answer: z.object({ data: z.array(shownVersion) }),
    run: async ({ query }) => ({ data: (await store.listPrices(query.model)).map(showVersion) }),
  });
}

export function putPrice(store: CatalogStore): Operation {
  return operation({
    id: 'putCatalogPrice',
    summary: 'Sets the price of a model at a provider; requests that begin afterwards are charged by it.',
    body: z.strictObject({
      model: modelNameSchema,
      provider: modelNameSchema,
      provider_model: modelNameSchema
        .optional()
        .meta({ description: 'Needed where the provider serves the model under several names.' }),
      price: pricesSchema.nullable().meta({ description: 'null: the model has no price there any more.' }),
      version: basedOn.meta({
        description: 'The version of the model that was read. If it is not the present one, the answer is 409.',
      }),
    }),
    answer: answerOf(changedModel),
    run: async ({ principal, body: { model, provider, provider_model, price, version } }) => {
      const change = { model, provider, providerModel: provider_model ?? null, price, version: version ?? null };
      return shownOrRefused(await store.putPrice(actorOf(principal), change), showChangedModel);
    },
  });
}
