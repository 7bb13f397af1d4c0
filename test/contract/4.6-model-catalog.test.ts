// Spec 4.6 and 2.3: the catalog and its providers, in the shapes that clients read.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { getModel } from '../../src/control-plane/catalog/get-model.ts';
import { listModelProviders } from '../../src/control-plane/catalog/list-model-providers.ts';
import { listModels } from '../../src/control-plane/catalog/list-models.ts';
import type { ScopedPrincipal } from '../../src/domain/identity/principal.ts';
import type { Catalog, Model, ServedBy } from '../../src/domain/models/catalog.ts';
import type { Price } from '../../src/domain/models/price.ts';
import type { Provider } from '../../src/domain/models/provider.ts';
import { UNKNOWN_HEALTH } from '../../src/domain/models/provider-health.ts';
import { picoUsd } from '../../src/domain/money/pico-usd.ts';
import type { RoutingPolicy } from '../../src/domain/routing/routing-policy.ts';
import type { RoutingTable } from '../../src/domain/routing/routing-table.ts';
import { virtualModelOf } from '../../src/domain/routing/virtual-model.ts';
import { httpCall } from '../support/http-call.ts';
import { type HttpFront, startHttpFront } from '../support/http-front.ts';
import { NO_ROUTING } from '../support/no-routing.ts';
import { loadOpenapiSchemas } from '../support/openapi-schema.ts';

const EAST = provider('east');
const WEST = provider('west');
const ROUTED = '00000000-0000-4000-8000-000000000001';
const CREATED_AT_MS = Date.UTC(2026, 4, 1, 12, 30);
const NO_PRICE: Price = { version: '1', input: null, cachedInput: null, cacheWrite: null, output: null, image: null };
const TEXT_PRICE: Price = {
  ...NO_PRICE,
  input: picoUsd(1_250_000n),
  cachedInput: picoUsd(125_000n),
  output: picoUsd(10_000_000n),
};

const TEXT = model('acme/text', {
  aliases: ['acme/text[1m]'],
  contextLength: 400_000,
  maxOutputTokens: 128_000,
  servedBy: [
    { provider: EAST, providerModel: 'text-2026', apis: ['chat_completions', 'responses'], price: TEXT_PRICE },
    {
      provider: WEST,
      providerModel: 'text',
      apis: ['messages'],
      price: { ...TEXT_PRICE, output: picoUsd(11_000_000n) },
    },
  ],
});
const IMAGE = model('acme/image', {
  kind: 'image',
  servedBy: [
    {
      provider: EAST,
      providerModel: 'image',
      apis: ['images'],
      price: { ...NO_PRICE, image: picoUsd(40_000_000_000n) },
    },
  ],
});
const JUDGE = model('acme/judge-latest', {
  kind: 'evaluation',
  servedBy: [
    {
      provider: WEST,
      providerModel: 'judge',
      apis: ['systemone'],
      price: { ...NO_PRICE, input: picoUsd(42_000n), output: picoUsd(5n) },
    },
  ],
});
const UNPRICED = model('acme/unpriced', {
  servedBy: [{ provider: WEST, providerModel: 'free', apis: ['messages'], price: null }],
});
const SMALL = model('acme/small', { contextLength: 8_000, maxOutputTokens: 200_000, servedBy: TEXT.servedBy });
const RETIRED = model('acme/retired', {
  active: false,
  servedBy: [{ provider: provider('gone'), providerModel: 'old', apis: ['messages'], price: null }],
});

interface Entry {
  readonly id: string;
  readonly [field: string]: unknown;
}

interface List {
  readonly data: readonly Entry[];
  readonly models: readonly { readonly name: string }[];
  readonly [field: string]: unknown;
}

describe('the model catalog', () => {
  let catalog: Catalog;
  let allowedModels: ReadonlySet<string> | null = null;
  let front: HttpFront;
  const schemas = loadOpenapiSchemas();

  before(async () => {
    const [models, one, providers] = [
      listModels(() => catalog, virtualModelOf('Service')),
      getModel(() => catalog, virtualModelOf('Service')),
      listModelProviders(
        () => catalog,
        () => UNKNOWN_HEALTH,
      ),
    ];
    const caller = () => ({ allowedModels, organizationId: ROUTED }) as ScopedPrincipal;
    front = await startHttpFront([
      { method: 'GET', path: '/v1/models', envelope: 'platform', handle: (exchange) => models(exchange, caller()) },
      {
        method: 'GET',
        path: '/v1/models/providers',
        envelope: 'platform',
        handle: (exchange) => providers(exchange, caller()),
      },
      {
        method: 'GET',
        path: '/v1/models/:id',
        takesRest: true,
        envelope: 'platform',
        handle: (exchange) => one(exchange, caller()),
      },
    ]);
  });

  after(() => front?.stop());

  async function list(path: string, headers: Readonly<Record<string, string>> = {}): Promise<List> {
    const answer = await httpCall(`${front.url}${path}`, { headers });
    assert.equal(answer.status, 200);
    assert.equal(answer.headers['content-type'], 'application/json');
    return JSON.parse(answer.body.toString('utf8')) as List;
  }

  test('is a success when it is empty', async () => {
    catalog = catalogOf();
    const empty = { object: 'list', data: [], first_id: null, last_id: null, has_more: false, models: [] };
    assert.deepEqual(await list('/v1/models'), empty);
    assert.deepEqual(await list('/v1/models', { 'x-provider-data': 'true' }), empty);
    assert.deepEqual(await list('/v1/models/providers'), { object: 'list', data: [] });
  });

  test('has each entry written once, whatever keys with models of their own ask', async () => {
    let written = 0;
    const watched = (id: string): Model => ({
      ...TEXT,
      id,
      aliases: [],
      get displayName() {
        written += 1;
        return id;
      },
    });
    catalog = catalogOf(...Array.from({ length: 50 }, (_, index) => watched(`acme/${index}`)));
    for (const ids of [
      ['acme/0', 'acme/1'],
      ['acme/1', 'acme/2'],
      ['acme/0', 'acme/1', 'acme/2'],
    ]) {
      allowedModels = new Set(ids);
      const { data, first_id, last_id } = await list('/v1/models');
      assert.deepEqual([data.map(({ id }) => id), first_id, last_id], [ids, ids[0], ids.at(-1)]);
    }
    allowedModels = null;
    // An entry has it twice: in the list of OpenAI and Anthropic, and in that of TypeSafe.
    assert.equal(written, 6);
  });

  describe('one of it', () => {
    const FOUND = [
      'acme/text',
      'acme%2Ftext',
      'acme/text[1m]',
      'acme%2Ftext%5B1m%5D',
      'service/auto',
      'plain',
      'a/b/c',
    ];
    for (const id of FOUND) {
      test(`${id} is its entry of the list`, async () => {
        catalog = routedCatalog(
          model('plain', { servedBy: TEXT.servedBy }),
          model('a/b/c', { servedBy: TEXT.servedBy }),
        );
        const answer = await httpCall(`${front.url}/v1/models/${id}`);
        assert.equal(answer.status, 200, answer.body.toString());
        const { data } = await list('/v1/models');
        const entry = data.find((found) => found.id === decodeURIComponent(id));
        assert.ok(entry !== undefined);
        assert.deepEqual(JSON.parse(answer.body.toString()), entry);
      });
    }

    for (const id of ['acme/none', 'acme', 'acme/text/', 'acme/retired', 'acme/%E0%A4%A', 'providers/x', 'toString']) {
      test(`${id} does not exist`, async () => {
        catalog = routedCatalog();
        const answer = await httpCall(`${front.url}/v1/models/${id}`);
        assert.equal(answer.status, 404);
        assert.match(
          (JSON.parse(answer.body.toString()) as { error: string }).error,
          /does not exist or is not available/,
        );
      });
    }

    test('that the principal may not use does not exist', async () => {
      catalog = catalogOf(TEXT, IMAGE);
      allowedModels = new Set(['acme/image']);
      const statusOf = async (id: string) => (await httpCall(`${front.url}/v1/models/${id}`)).status;
      assert.deepEqual([await statusOf('acme/text'), await statusOf('acme/image')], [404, 200]);
      allowedModels = null;
    });

    test('is not what a slash behind the list asks for, and cannot be made by a POST', async () => {
      assert.match((await httpCall(`${front.url}/v1/models/`)).body.toString(), /without a slash at its end/);
      const posted = await httpCall(`${front.url}/v1/models/acme/text:generate`, { body: '{}' });
      assert.deepEqual([posted.status, posted.body.includes('There is no endpoint')], [404, true]);
      assert.equal((await httpCall(`${front.url}/v1/models/acme/text`, { method: 'DELETE' })).status, 405);
    });
  });

  test('has an entry for each name that can be called, of active models only', async () => {
    catalog = catalogOf(TEXT, RETIRED, IMAGE, JUDGE, UNPRICED);
    const { data, ...page } = await list('/v1/models');
    const ids = ['acme/text', 'acme/text[1m]', 'acme/image', 'acme/judge-latest', 'acme/unpriced'];
    assert.deepEqual(
      data.map(({ id }) => id),
      ids,
    );
    assert.deepEqual(data[0], {
      id: 'acme/text',
      object: 'model',
      type: 'model',
      created: CREATED_AT_MS / 1_000,
      created_at: '2026-05-01T12:30:00.000Z',
      display_name: 'The acme/text',
      kind: 'text',
      context_length: 400_000,
      max_output_tokens: 128_000,
      apis: ['chat_completions', 'responses', 'messages'],
      pricing: { currency: 'USD', input: '1.25', cached_input: '0.125', output: '10' },
      pricing_by_api: { messages: { currency: 'USD', input: '1.25', cached_input: '0.125', output: '11' } },
      owned_by: 'east',
    });
    assert.deepEqual(data[1], { ...data[0], id: 'acme/text[1m]' });
    assert.deepEqual(page, {
      object: 'list',
      first_id: 'acme/text',
      last_id: 'acme/unpriced',
      has_more: false,
      models: ids.map((name) => ({ name, description: `The ${name.replace('[1m]', '')}`, release_date: '2026-05-01' })),
    });
  });

  test(
    'says whose streams are asked for usage: the deployment itself, and the model where that deployment ' +
      'comes first for chat',
    async () => {
      const [chat, messages] = TEXT.servedBy as [ServedBy, ServedBy];
      const asking: ServedBy = { ...chat, provider: WEST, streamUsage: 'request' };
      const listed = async (servedBy: readonly ServedBy[], headers = {}): Promise<unknown[]> => {
        catalog = catalogOf(model('acme/text', { servedBy }));
        return (await list('/v1/models', headers)).data.map((entry) => entry['stream_usage']);
      };
      assert.deepEqual(await listed([asking, chat]), ['request']);
      assert.deepEqual(await listed([messages, asking]), ['request']);
      assert.deepEqual(await listed([chat, asking]), [undefined]);
      assert.deepEqual(await listed([chat, asking, messages], { 'x-provider-data': 'true' }), [
        undefined,
        'request',
        undefined,
      ]);
    },
  );

  test('says what an API costs that is served for another price, by who is called for it first', async () => {
    const [chat, messages] = TEXT.servedBy as [ServedBy, ServedBy];
    const pricedBy = async (...servedBy: readonly ServedBy[]): Promise<unknown> => {
      catalog = catalogOf(model('acme/text', { servedBy }));
      return (await list('/v1/models')).data[0]?.['pricing_by_api'];
    };
    assert.equal(await pricedBy(chat), undefined);
    assert.equal(await pricedBy(chat, { ...messages, apis: ['chat_completions'] }), undefined);
    assert.equal(await pricedBy(chat, { ...messages, apis: ['count_tokens'] }), undefined);
    assert.deepEqual(await pricedBy(chat, { ...messages, price: null }), { messages: null });
    const both = { ...messages, apis: ['chat_completions', 'messages'] } as const;
    assert.deepEqual(Object.keys((await pricedBy(chat, both)) as object), ['messages']);
  });

  test('prices images each, and the output of evaluation models at nothing', async () => {
    catalog = catalogOf(IMAGE, JUDGE, UNPRICED);
    const { data } = await list('/v1/models');
    assert.deepEqual(
      data.map(({ pricing }) => pricing),
      [{ currency: 'USD', image: '0.04' }, { currency: 'USD', input: '0.042', output: '0' }, null],
    );
  });

  test(
    'with X-PROVIDER-DATA has an entry for each provider, under the ' + 'canonical id with the alias beside it',
    async () => {
      catalog = catalogOf(TEXT, RETIRED, JUDGE);
      const { data } = await list('/v1/models', { 'X-PROVIDER-DATA': 'true' });
      assert.deepEqual(
        data.map(({ id, alias, provider: from, apis }) => [id, alias, from, apis]),
        [
          ['acme/text', undefined, 'east', ['chat_completions', 'responses']],
          ['acme/text', 'acme/text[1m]', 'east', ['chat_completions', 'responses']],
          ['acme/text', undefined, 'west', ['messages']],
          ['acme/text', 'acme/text[1m]', 'west', ['messages']],
          ['acme/judge-latest', undefined, 'west', ['systemone']],
        ],
      );
      assert.deepEqual(
        data[2]?.['pricing'],
        { currency: 'USD', input: '1.25', cached_input: '0.125', output: '11' },
        'of this provider',
      );
      assert.deepEqual(await list('/v1/models', { 'X-PROVIDER-DATA': 'false' }), await list('/v1/models'));
    },
  );

  test('names the providers that serve something, each with what it serves', async () => {
    catalog = catalogOf(TEXT, RETIRED, IMAGE, JUDGE);
    const { data } = await list('/v1/models/providers');
    assert.deepEqual(
      data.map(({ id, models }) => ({ id, models })),
      [
        { id: 'east', models: ['acme/text', 'acme/image'] },
        { id: 'west', models: ['acme/text', 'acme/judge-latest'] },
      ],
    );
  });

  test('shows a caller what it may use, and nothing else', async () => {
    catalog = catalogOf(TEXT, IMAGE, JUDGE);
    allowedModels = new Set([TEXT.id]);
    try {
      const shown = await list('/v1/models');
      assert.deepEqual(
        shown.data.map(({ id }) => id),
        [TEXT.id, ...TEXT.aliases],
      );
      assert.deepEqual(
        shown.models.map(({ name }) => name),
        [TEXT.id, ...TEXT.aliases],
      );
      for (const provider of (await list('/v1/models/providers')).data) assert.deepEqual(provider.models, [TEXT.id]);
    } finally {
      allowedModels = null;
    }
    assert.ok((await list('/v1/models')).data.length > 1 + TEXT.aliases.length);
  });

  test('lists the virtual model last where requests are routed, as large as the smallest candidate', async () => {
    catalog = routedCatalog();
    const { routing } = catalog;
    const [merged, separate] = [await list('/v1/models'), await list('/v1/models', { 'x-provider-data': 'true' })];
    assert.deepEqual(merged.data.at(-1), {
      id: 'service/auto',
      object: 'model',
      type: 'model',
      created: CREATED_AT_MS / 1_000,
      created_at: '2026-05-01T12:30:00.000Z',
      display_name: 'Service Auto',
      kind: 'text',
      context_length: 8_000,
      max_output_tokens: 128_000,
      apis: ['chat_completions', 'responses', 'messages', 'count_tokens'],
      pricing: null,
      owned_by: 'service',
    });
    assert.deepEqual([merged['last_id'], merged.models.at(-1)?.name], ['service/auto', 'service/auto']);
    assert.deepEqual([separate.data.at(-1)?.id, separate.data.at(-1)?.['provider']], ['service/auto', 'service']);
    // Of what this caller may use.
    allowedModels = new Set([TEXT.id]);
    try {
      assert.equal((await list('/v1/models')).data.at(-1)?.['context_length'], 400_000);
      allowedModels = new Set([IMAGE.id]);
      assert.deepEqual(
        (await list('/v1/models')).data.map(({ id }) => id),
        [IMAGE.id],
      );
    } finally {
      allowedModels = null;
    }
    catalog = { ...catalog, routing: { ...routing, policyOf: new Map([['another organization', 'default']]) } };
    assert.ok((await list('/v1/models')).data.every(({ id }) => id !== 'service/auto'));
  });

  test('follows a change at once', async () => {
    catalog = catalogOf(TEXT);
    await list('/v1/models');
    catalog = catalogOf(IMAGE);
    assert.deepEqual(
      (await list('/v1/models')).data.map(({ id }) => id),
      ['acme/image'],
    );
    const [only, ...others] = (await list('/v1/models/providers')).data;
    assert.deepEqual([only?.id, only?.['models'], others], ['east', ['acme/image'], []]);
  });

  test("fits OpenAI's own description, in both forms", {
    skip: schemas === null && 'the description is not there',
  }, async () => {
    catalog = catalogOf(TEXT, IMAGE, JUDGE, UNPRICED);
    for (const separate of ['false', 'true']) {
      assert.deepEqual(
        schemas?.problems('ListModelsResponse', await list('/v1/models', { 'x-provider-data': separate })),
        [],
      );
    }
  });
});

function provider(id: string): Provider {
  return { id, baseUrl: `https://${id}.test`, apiKey: 'sk-canary', auth: 'bearer', onDisconnect: 'cancel' };
}

function model(id: string, changes: Partial<Model>): Model {
  return {
    id,
    displayName: `The ${id}`,
    kind: 'text',
    aliases: [],
    contextLength: null,
    maxOutputTokens: null,
    maxCompletionTokensCap: null,
    attachmentTokensMax: null,
    tokenizer: 'o200k_base',
    active: true,
    createdAtMs: CREATED_AT_MS,
    servedBy: [],
    ...changes,
  };
}

function namesOf(found: Model): [string, Model][] {
  return [found.id, ...found.aliases].map((name) => [name, found]);
}

function catalogOf(...models: readonly Model[]): Catalog {
  return { version: 1, models, byName: new Map(), routing: NO_ROUTING };
}

/** Where the caller's requests are routed. */
function routedCatalog(...more: readonly Model[]): Catalog {
  const candidates = (...ids: string[]) =>
    ({ tiers: ids.map((id) => ({ name: id, models: [{ id }] })) }) as unknown as RoutingPolicy;
  const routing: RoutingTable = {
    policies: new Map([['default', candidates(TEXT.aliases[0] ?? '', SMALL.id, UNPRICED.id, RETIRED.id, 'gone')]]),
    policyOf: new Map([[ROUTED, 'default']]),
  };
  return {
    ...catalogOf(TEXT, SMALL, IMAGE, UNPRICED, RETIRED, ...more),
    byName: new Map([TEXT, SMALL, UNPRICED].flatMap(namesOf)),
    routing,
  };
}
