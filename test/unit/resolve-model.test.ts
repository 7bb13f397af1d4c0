// A model that a caller may not use looks exactly like one that does not exist, whatever name or API it is asked for
// by.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Catalog, Model } from '../../src/domain/models/catalog.ts';
import { resolveModel } from '../../src/generation/catalog/resolve-model.ts';
import { type Deployment, prepareCatalog } from '../../src/generation/catalog/serving-catalog.ts';

const model = { id: 'm/a', aliases: ['m/alias'], servedBy: [] } as unknown as Model;
const catalog: Catalog = {
  version: 1,
  models: [model],
  byName: new Map([
    ['m/a', model],
    ['m/alias', model],
  ]),
} as unknown as Catalog;
const serving = prepareCatalog(catalog);
const served = serving.byName.get('m/a');
assert.ok(served !== undefined);
(served.deployments as Map<string, readonly Deployment[]>).set('chat_completions', [{} as Deployment]);

describe('allowed models', () => {
  test('null allows every model; a listed one is served by its id and by its aliases', () => {
    for (const allowed of [null, new Set(['m/a'])]) {
      for (const name of ['m/a', 'm/alias'])
        assert.ok('served' in resolveModel(serving, 'chat_completions', name, allowed));
    }
  });

  test('an unlisted one is an unknown one, also on an API that does not serve it', () => {
    for (const allowed of [new Set<string>(), new Set(['m/b']), new Set(['m/alias'])]) {
      for (const api of ['chat_completions', 'messages'] as const) {
        for (const name of ['m/a', 'm/alias', 'm/none'])
          assert.deepEqual(resolveModel(serving, api, name, allowed), { kind: 'unknown_model', model: name });
      }
    }
    assert.deepEqual(resolveModel(serving, 'messages', 'm/a', null), {
      kind: 'api_not_supported',
      model: 'm/a',
      api: 'messages',
    });
  });
});
