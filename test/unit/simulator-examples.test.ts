// What the simulated provider's APIs give as an example of a good exchange is one: it answers the request, and the
// reply is what the OpenAPI document says of such answers.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { z } from 'zod';
import { createRoutes } from '../../src/simulator/routes.ts';
import { httpCall } from '../support/http-call.ts';
import { routeTable } from '../support/route-table.ts';
import { type SimulatedProvider, startSimulatedProvider } from '../support/simulated-provider.ts';

describe('the example of an API', () => {
  let provider: SimulatedProvider;

  before(async () => {
    provider = await startSimulatedProvider();
  });

  after(() => provider?.stop());

  for (const { method, path, api } of createRoutes()) {
    const { example } = api;
    if (example === undefined) continue;

    test(`${path}: its request is answered, and its reply is described`, async () => {
      const headers = {
        authorization: 'Bearer any',
        'content-type': 'application/json',
        'anthropic-version': '2023-06-01',
      };
      const body = JSON.stringify({ model: 'sim-small', ...example.request('hi') });
      const answer = await httpCall(`${provider.url}${path}`, { method, headers, body });
      assert.equal(answer.status, 200, answer.body.toString());
      const described = routeTable().find((route) => route.path === path && route.method === method)?.description;
      assert.ok(described?.answer, 'the product has this route');
      z.parse(described.answer, example.reply);
      z.parse(described.answer, JSON.parse(answer.body.toString()));
    });
  }
});
