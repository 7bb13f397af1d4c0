// What models cost an organization at its own providers, by which requests on its own keys are rated.

import { z } from 'zod';
import { priceSchema } from '../../domain/configuration/schema/price-schema.ts';
import type { OwnModelPrice } from '../../domain/own-keys/own-model-price.ts';
import { answerOf, removedAnswer, shownOrRefused } from '../answers.ts';
import { shownPrice } from '../catalog/catalog-fields.ts';
import { ACTIVE, actorOf, idOf } from '../identity/tenancy.ts';
import { type Operation, operation } from '../operation.ts';
import type { OwnKeysStore } from './own-keys-store.ts';

const shown = z.object({ model: z.string(), price: shownPrice }).meta({ id: 'OwnModelPrice' });

function show({ model, words }: OwnModelPrice): z.output<typeof shown> {
  return { model, price: words as z.output<typeof shownPrice> };
}

export function listModelPrices(store: OwnKeysStore): Operation {
  return operation({
    id: 'listModelPrices',
    summary: 'Lists what models cost the organization at its own providers.',
    answer: z.object({ data: z.array(shown) }),
    run: async (input) => ({ data: (await store.listPrices(ACTIVE.organizationId(input))).map(show) }),
  });
}

export function getModelPrice(store: OwnKeysStore): Operation {
  return operation({
    id: 'getModelPrice',
    summary: 'Shows what a model costs the organization at its own providers.',
    answer: answerOf(shown),
    run: async (input) => {
      const found = await store.getPrice(ACTIVE.organizationId(input), idOf(input.ids, 'modelName'));
      return found === null ? { kind: 'not_found' } : { data: show(found) };
    },
  });
}

export function putModelPrice(store: OwnKeysStore): Operation {
  return operation({
    id: 'putModelPrice',
    summary: 'Sets what a model costs the organization at its own providers. It rates requests on own keys only.',
    body: priceSchema.refine(({ from, between }) => from === undefined && between === undefined, {
      message: 'must not be dated',
    }),
    answer: answerOf(shown),
    run: async (input) => {
      const price = {
        organizationId: ACTIVE.organizationId(input),
        model: idOf(input.ids, 'modelName'),
        fields: input.body,
      };
      return shownOrRefused(await store.putPrice(actorOf(input.principal), price), show);
    },
  });
}

export function removeModelPrice(store: OwnKeysStore): Operation {
  return operation({
    id: 'removeModelPrice',
    summary: 'Removes a price of the organization’s own; requests on own keys are rated by the catalog’s then.',
    answer: removedAnswer,
    run: async (input) => {
      const price = { organizationId: ACTIVE.organizationId(input), model: idOf(input.ids, 'modelName') };
      return shownOrRefused(await store.removePrice(actorOf(input.principal), price), (done) => done);
    },
  });
}
