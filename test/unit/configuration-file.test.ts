// The configuration file: what it becomes, and how each mistake is reported with its line.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import type { Configuration } from '../../src/domain/configuration/configuration.ts';
import { parseConfigurationFile } from '../../src/domain/configuration/parse-configuration-file.ts';
import { BROKEN_VALUES, QUOTED_SECRET } from '../support/broken-yaml.ts';

/** A configuration file that uses every part of the format. */
const EXAMPLE = `providers:
  - id: openai
    base_url: https://api.openai.com          # paths of the dialects are appended to it
    api_key: \${OPENAI_API_KEY}
    auth: bearer                               # bearer | x-api-key
    on_disconnect: cancel                      # cancel | drain
models:
  - id: openai/gpt-x                           # public id
    display_name: GPT X
    kind: text                                 # text | image | evaluation
    aliases: ["openai/gpt-x[1m]"]
    context_length: 400000
    max_output_tokens: 128000                  # what the model can produce
    max_completion_tokens_cap: 128000          # optional: makes a missing output limit boundable
    tokenizer: o200k_base
    served_by:                                 # first to last; the next one on failure before the first byte
      - provider: openai
        model: gpt-x-2026-05-01                # the provider's own id
        apis: [chat_completions, responses]    # + messages, count_tokens, images, systemone
        price: { input: "1.25", cached_input: "0.125", cache_write: "1.25", output: "10.00" }  # USD per million tokens
  - id: openai/image-x
    kind: image
    served_by: [{ provider: openai, model: image-x, apis: [images], price: { image: "0.04" } }]
organizations:
  - slug: acme
    billing: prepaid                           # prepaid = "billed organization" | none
    opening_credit: "25.00"
    limits: [{ kind: requests_per_minute, limit: 600 }, { kind: budget, window: month, limit: "100.00" }]
    teams: [{ slug: research }]
    users: [{ email: a@acme.test, role: owner, teams: [research] }]
    keys: [{ name: ci, user: a@acme.test, secret: \${ACME_KEY} }]   # without secret: generated, printed once
`;
const ENVIRONMENT = { OPENAI_API_KEY: 'sk-"quoted", {odd}: #value', ACME_KEY: 'tg-acme' };

function parse(text: string, environment: Record<string, string> = ENVIRONMENT): Configuration {
  const result = parseConfigurationFile(text, environment);
  assert.deepEqual(result.ok ? [] : result.errors, []);
  assert.ok(result.ok);
  return result.configuration;
}

function errorsOf(text: string, environment: Record<string, string> = {}): readonly string[] {
  const result = parseConfigurationFile(text, environment);
  return result.ok ? [] : result.errors;
}

describe('a right file', () => {
  test('keeps the timeouts that a provider sets, and no others', () => {
    const provider =
      'providers: [{ id: p, base_url: "http://p", api_key: k, timeouts: { first_byte_ms: 300000, total_ms: 600000 } }]';
    assert.deepEqual(parse(provider).providers[0]?.timeouts, { firstByteMs: 300_000, totalMs: 600_000 });
    const wrong = 'providers:\n  - { id: p, base_url: "http://p", api_key: k, timeouts: { idle_ms: 0, first: 1 } }';
    assert.match(errorsOf(wrong).join('\n'), /idle_ms: must be at least 1/);
    assert.match(errorsOf(wrong).join('\n'), /first/);
  });

  test('becomes plain data with exact prices', () => {
    const { providers, models, organizations } = parse(EXAMPLE, { ...ENVIRONMENT, OPENAI_API_KEY: 'sk-1' });
    assert.deepEqual(providers, [
      {
        id: 'openai',
        baseUrl: 'https://api.openai.com',
        apiKey: 'sk-1',
        auth: 'bearer',
        onDisconnect: 'cancel',
        requests: null,
      },
    ]);
    assert.deepEqual(models[0]?.servedBy[0], {
      provider: 'openai',
      providerModel: 'gpt-x-2026-05-01',
      apis: ['chat_completions', 'responses'],
      price: { input: 1_250_000n, cachedInput: 125_000n, cacheWrite: 1_250_000n, output: 10_000_000n, image: null },
    });
    assert.deepEqual(models[0]?.aliases, ['openai/gpt-x[1m]']);
    assert.equal(models[1]?.servedBy[0]?.price?.image, 40_000_000_000n);
    assert.equal(models[1]?.displayName, 'openai/image-x');
    const [acme] = organizations;
    assert.equal(acme?.openingCredit, 25_000_000_000_000n);
    assert.deepEqual(acme?.limits, [
      { kind: 'requests_per_minute', limit: 600n },
      { kind: 'budget', window: 'month', limit: 100_000_000_000_000n },
    ]);
    assert.deepEqual(acme?.keys, [{ name: 'ci', team: null, userEmail: 'a@acme.test', secret: 'tg-acme' }]);
  });

  test('the shape of routing policies is accepted and kept', () => {
    const policy = `
      - name: default
        classifier: { model: openai/judge, timeout_ms: 800, confidence_floor: 0.6 }
        tiers:
          - { name: light, description: "easy", models: [{ id: openai/gpt-x }, { id: "openai/gpt-x[1m]", strengths: [code] }] }
        fallback_tier: light
        kinds: { code: "writing or repairing code" }
        follow_up: { corrections: true, threshold: 0.7 }
        sticky: { min_tokens: 20000 }
        prefer_native_api: true
`;
    const judge =
      '  - { id: openai/judge, kind: evaluation, served_by: [{ provider: openai, model: judge, apis: ' +
      '[systemone], price: { input: "0.042" } }] }\n';
    const text = EXAMPLE.replace('organizations:', `${judge}routing_policies:${policy}organizations:`).replace(
      '    limits:',
      '    auto_routing: { policy: default }\n    limits:',
    );
    const { routingPolicies, organizations } = parse(text, { ...ENVIRONMENT, OPENAI_API_KEY: 'k' });
    assert.equal(routingPolicies[0]?.name, 'default');
    assert.deepEqual(routingPolicies[0]?.definition.sticky, { min_tokens: 20000 });
    assert.equal(organizations[0]?.autoRouting?.policy, 'default');
    const unnamed = parse(text.replace('auto_routing: { policy: default }', 'auto_routing: {}'), {
      ...ENVIRONMENT,
      OPENAI_API_KEY: 'k',
    });
    assert.equal(
      unnamed.organizations[0]?.autoRouting?.policy,
      'default',
      'who names none routes by the platform’s default',
    );
  });

  test('who is routed by the platform’s default needs one in the file', () => {
    assert.deepEqual(errorsOf('organizations:\n  - { slug: acme, billing: none, auto_routing: {} }\n'), [
      'tollgate.yaml:2: organizations[0].auto_routing: there is no routing policy "default" in this file',
    ]);
  });

  test('a file without any section is an error; a section may be empty', () => {
    const empty = 'the file is empty: it has none of providers, models, routing_policies, guardrails, organizations';
    for (const text of ['', '# nothing\n', '{}']) assert.deepEqual(errorsOf(text), [`tollgate.yaml:1: ${empty}`]);
    const nothing = { providers: [], models: [], routingPolicies: [], guardrails: [], organizations: [] };
    assert.deepEqual(parse('models: []'), { sections: ['models'], ...nothing });
  });

  test('a second document is refused in words for the reader of the file', () => {
    assert.deepEqual(errorsOf('models: []\n---\nproviders: []\n'), [
      'tollgate.yaml:2: The file has several documents ("---" begins another): only one can be read',
    ]);
  });

  test('the demo file is right', () => {
    const demo = readFileSync(new URL('../../deploy/demo.yaml', import.meta.url), 'utf8');
    const { models, organizations } = parse(demo, { SIMULATED_PROVIDER_URL: 'http://127.0.0.1:9/' });
    assert.ok(models.some(({ aliases }) => aliases.includes('sim/large[1m]')));
    assert.equal(organizations[0]?.keys?.[0]?.secret, null);
  });
});

describe('the environment', () => {
  test('a variable that is not set is named with its line', () => {
    assert.deepEqual(errorsOf(EXAMPLE, { ACME_KEY: '' }), [
      'tollgate.yaml:4: the environment variable OPENAI_API_KEY is not set',
      'tollgate.yaml:31: the environment variable ACME_KEY is not set',
    ]);
  });

  test('what a variable holds is a value, never YAML, and is not repeated in an error', () => {
    const errors = errorsOf(EXAMPLE, ENVIRONMENT);
    assert.deepEqual(errors, [
      'tollgate.yaml:4: providers[0].api_key: must be visible ASCII characters without spaces',
    ]);
    const { providers } = parse('providers: [{ id: a, base_url: "http://${HOST}:${PORT}/v1/", api_key: "${KEY}" }]', {
      HOST: 'h',
      PORT: '1',
      KEY: '},#\'"',
    });
    assert.deepEqual([providers[0]?.baseUrl, providers[0]?.apiKey], ['http://h:1/v1', `},#'"`]);
  });

  test('a variable in a comment is not asked for', () => {
    assert.deepEqual(errorsOf('# ${NOWHERE}\nproviders: []\n'), []);
  });
});

describe('a wrong file', () => {
  test('all mistakes are reported at once, in the order of the file', () => {
    const text = `providers:
  - { id: one, base_url: "ftp://x", api_key: k, colour: red }
  - { id: one, base_url: "http://x", auth: basic, api_key: "\${NOT_SET}" }
models:
  - id: a
    aliases: [b, a]
    context_length: many
    served_by:
      - { provider: two, model: m, apis: [images], price: { input: 1.25, output: "1.0000001" } }
  - id: b
    served_by: []
organizations:
  - slug: Acme Inc
    billing: none
    opening_credit: "1.00"
    auto_routing: { policy: missing }
    limits: [{ kind: budget, limit: "1" }, { kind: wishes, limit: 3 }]
    users: [{ email: a@x.test, teams: [nowhere] }, { email: A@x.test }]
    keys: [{ name: k, user: b@x.test, secret: s }, { name: k, secret: s }]
`;
    assert.deepEqual(errorsOf(text), [
      'tollgate.yaml:2: providers[0].base_url: must be an http:// or https:// address without query, ' +
        'fragment or credentials',
      'tollgate.yaml:2: providers[0].colour: unknown key',
      'tollgate.yaml:3: providers[1].id: the provider "one" stands twice',
      'tollgate.yaml:3: providers[1].auth: must be bearer, x-api-key, none, or { header: NAME }',
      'tollgate.yaml:3: the environment variable NOT_SET is not set',
      'tollgate.yaml:6: models[0].aliases[1]: the model or alias "a" stands twice',
      'tollgate.yaml:7: models[0].context_length: must be a whole number',
      'tollgate.yaml:9: models[0].served_by[0].provider: there is no provider "two" in this file',
      'tollgate.yaml:9: models[0].served_by[0].price.input: must be USD per million tokens as a decimal ' +
        'string in quotes with at most 6 decimals, such as "1.25"',
      'tollgate.yaml:9: models[0].served_by[0].price.output: must be USD per million tokens as a decimal ' +
        'string in quotes with at most 6 decimals, such as "1.25"',
      'tollgate.yaml:10: models[1].id: the model or alias "b" stands twice',
      'tollgate.yaml:11: models[1].served_by: must name at least one provider',
      'tollgate.yaml:13: organizations[0].slug: must be 1 to 63 lower-case letters, digits, hyphens or underscores',
      'tollgate.yaml:16: organizations[0].auto_routing.policy: there is no routing policy "missing" in this file',
      'tollgate.yaml:17: organizations[0].limits[0].window: is missing',
      'tollgate.yaml:17: organizations[0].limits[1].kind: must be requests_per_minute or tokens_per_minute or ' +
        'concurrent_requests or budget',
      'tollgate.yaml:18: organizations[0].users[0].teams[0]: there is no team "nowhere" in this file',
      'tollgate.yaml:18: organizations[0].users[1].email: the user "a@x.test" stands twice',
      'tollgate.yaml:19: organizations[0].keys[0].user: there is no user "b@x.test" in this file',
      'tollgate.yaml:19: organizations[0].keys[1].name: the key "k" stands twice',
      'tollgate.yaml:19: organizations[0].keys[1].secret: another key has the same secret',
    ]);
  });

  test('a webhook has an address and a secret that Standard Webhooks takes', () => {
    const fileWith = (webhook: string) =>
      `organizations:\n  - slug: acme\n    billing: none\n    webhook: ${webhook}\n`;
    const secret = `whsec_${'A'.repeat(32)}`;
    assert.deepEqual(parse(fileWith(`{ url: "https://hooks.test/a", secret: ${secret} }`)).organizations[0]?.webhook, {
      url: 'https://hooks.test/a',
      secret,
      active: null,
    });
    const [url = '', secretError = '', ...rest] = errorsOf(fileWith('{ url: "ftp://hooks.test", secret: short }'));
    assert.match(
      url,
      /^tollgate\.yaml:4: organizations\[0\]\.webhook\.url: must be an http:\/\/ or https:\/\/ address/,
    );
    assert.match(
      secretError,
      /^tollgate\.yaml:4: organizations\[0\]\.webhook\.secret: must be "whsec_" and 24 to 64 bytes in base64/,
    );
    assert.deepEqual(rest, []);
  });

  test('limits: one of each kind, window and model, and a model by its public id', () => {
    const fileWith = (limits: string): string => `
providers: [{ id: sim, base_url: "https://sim.test", api_key: k }]
models: [{ id: sim/large, aliases: [large], served_by: [{ provider: sim, model: l, apis: [chat_completions] }] }]
organizations: [{ slug: acme, billing: none, limits: [${limits}] }]
`;
    const distinct =
      '{ kind: budget, window: day, limit: "1" }, { kind: budget, window: day, limit: "1", model: ' +
      'sim/large }, { kind: budget, window: hour, limit: "1" }';
    assert.deepEqual(errorsOf(fileWith(distinct)), []);
    assert.deepEqual(errorsOf(fileWith(`${distinct}, { kind: budget, window: day, limit: "2", model: sim/large }`)), [
      'tollgate.yaml:4: organizations[0].limits[3]: the limit "budget day sim/large" stands twice',
    ]);
    assert.deepEqual(errorsOf(fileWith('{ kind: tokens_per_minute, limit: 5, model: large }')), [
      'tollgate.yaml:4: organizations[0].limits[0].model: there is no model "large" in this file',
    ]);
  });

  const cases: [string, string, RegExp][] = [
    ['a misspelt top-level key', 'providers: []\nmodles: []\n', /^tollgate\.yaml:2: modles: unknown key$/],
    [
      'a file of LiteLLM’s',
      'model_list: [{ model_name: m }]\n',
      /^tollgate\.yaml:1: model_list: is of LiteLLM's configuration, which "tollgate import litellm" converts$/,
    ],
    [
      'an unknown key in the price of an own model',
      'organizations:\n  - slug: acme\n    billing: none\n    model_prices: { a/b: { imput: "1" } }\n',
      /^tollgate\.yaml:4: organizations\[0\]\.model_prices\.a\/b\.imput: unknown key$/,
    ],
    ['broken YAML', 'providers: []\nmodels: [\n', /^tollgate\.yaml:[23]: /],
    ['a key that stands twice', 'providers: []\nproviders: []\n', /^tollgate\.yaml:2: .*unique/],
    ['a list where a mapping belongs', '- providers\n', /^tollgate\.yaml:1: must be a mapping/],
    [
      'a missing key, at its owner',
      'providers:\n\n  - id: a\n    api_key: k\n',
      /^tollgate\.yaml:3: providers\[0\]\.base_url: is missing$/,
    ],
    [
      'an API that the kind has not',
      'providers: [{ id: a, base_url: "http://x", api_key: k }]\nmodels:\n  - { id: m, served_by: [{ ' +
        'provider: a, model: m, apis: [images] }] }\n',
      /^tollgate\.yaml:3: .*apis: a model of kind text is not served on images$/,
    ],
    [
      'usage that is asked for where no chat is served',
      'providers: [{ id: a, base_url: "http://x", api_key: k }]\nmodels:\n  - { id: m, served_by: [{ ' +
        'provider: a, model: m, apis: [responses], stream_usage: request }] }\n',
      /^tollgate\.yaml:3: models\[0\]\.served_by\[0\]\.stream_usage: is for chat_completions, which this entry does not serve$/,
    ],
    [
      'usage that is asked for otherwise',
      'providers: [{ id: a, base_url: "http://x", api_key: k }]\nmodels:\n  - { id: m, served_by: [{ ' +
        'provider: a, model: m, apis: [chat_completions], stream_usage: always }] }\n',
      /^tollgate\.yaml:3: models\[0\]\.served_by\[0\]\.stream_usage: must be request$/,
    ],
    [
      'a price that cannot rate the kind',
      'providers: [{ id: a, base_url: "http://x", api_key: k }]\nmodels:\n  - { id: m, served_by: [{ ' +
        'provider: a, model: m, apis: [responses], price: { input: "1" } }] }\n',
      /^tollgate\.yaml:3: .*price: a model of kind text needs the price "output"$/,
    ],
    [
      'a cap above what the model can do',
      'providers: [{ id: a, base_url: "http://x", api_key: k }]\nmodels:\n  - id: m\n    ' +
        'max_output_tokens: 5\n    max_completion_tokens_cap: 6\n    served_by: [{ provider: a, model: m, ' +
        'apis: [responses] }]\n',
      /^tollgate\.yaml:5: models\[0\]\.max_completion_tokens_cap: must not be above/,
    ],
    [
      'opening credit without billing',
      'organizations:\n  - slug: a\n    billing: none\n    opening_credit: "1"\n',
      /^tollgate\.yaml:4: organizations\[0\]\.opening_credit: needs billing: prepaid$/,
    ],
  ];
  for (const [title, text, expected] of cases) {
    test(title, () => {
      const errors = errorsOf(text);
      assert.equal(errors.length, 1, errors.join('\n'));
      assert.match(errors[0] ?? '', expected);
    });
  }

  test('a routing policy that cannot work names each of its mistakes', () => {
    const price = 'price: { input: "1", output: "1" }';
    const text = `providers: [{ id: a, base_url: "http://x", api_key: k }]
models:
  - { id: small, served_by: [{ provider: a, model: m, apis: [responses], ${price} }] }
  - { id: free, served_by: [{ provider: a, model: m, apis: [responses], ${price} }, { provider: a, model: n, apis: [responses] }] }
  - { id: judge, kind: evaluation, aliases: [judge-latest], served_by: [{ provider: a, model: j, apis: [systemone] }] }
routing_policies:
  - name: default
    classifier: { model: small, timeout_ms: 0, confidence_floor: 2 }
    tiers:
      - { name: light, description: d, models: [] }
      - { name: light, description: d, models: [{ id: gone }, { id: judge-latest }, { id: free }, { id: free }] }
      - { name: third, description: d, models: [{ id: small, strengths: [code, cooking, code] }] }
    fallback_tier: heavy
    kinds: { code: writing code }
    sticky: { min_tokens: 0 }
    mood: good
  - { name: default, classifier: { model: judge-latest }, tiers: [{ name: one, description: d, models: [{ id: free }] }] }
  - { name: unbilled, classifier: { model: judge }, tiers: [{ name: one, description: d, models: [{ id: free }] }] }
  - { name: none, classifier: { model: judge }, tiers: [] }
organizations:
  - { slug: acme, billing: prepaid, auto_routing: { policy: default } }
  - { slug: open, billing: none, auto_routing: { policy: unbilled } }
`;
    const unpriced = 'needs a model with a price: "free" has none, and the organization "acme" is billed';
    assert.deepEqual(errorsOf(text), [
      'tollgate.yaml:8: routing_policies[0].classifier.model: must be a model of kind evaluation: "small" ' +
        'is of kind text',
      'tollgate.yaml:8: routing_policies[0].classifier.timeout_ms: must be at least 1',
      'tollgate.yaml:8: routing_policies[0].classifier.confidence_floor: must be from 0 to 1',
      'tollgate.yaml:10: routing_policies[0].tiers[0].models: must name at least one model',
      'tollgate.yaml:11: routing_policies[0].tiers[1].name: the tier "light" stands twice',
      'tollgate.yaml:11: routing_policies[0].tiers[1].models[0].id: there is no model "gone" in this file',
      'tollgate.yaml:11: routing_policies[0].tiers[1].models[1].id: must be a model of kind text: ' +
        '"judge-latest" is of kind evaluation',
      `tollgate.yaml:11: routing_policies[0].tiers[1].models[2].id: ${unpriced}`,
      'tollgate.yaml:11: routing_policies[0].tiers[1].models[3].id: the model "free" stands twice',
      `tollgate.yaml:11: routing_policies[0].tiers[1].models[3].id: ${unpriced}`,
      'tollgate.yaml:12: routing_policies[0].tiers[2].models[0].strengths[1]: there is no kind "cooking" in the policy',
      'tollgate.yaml:12: routing_policies[0].tiers[2].models[0].strengths[2]: the strength "code" stands twice',
      'tollgate.yaml:13: routing_policies[0].fallback_tier: there is no tier "heavy" in the policy',
      'tollgate.yaml:15: routing_policies[0].sticky.min_tokens: must be at least 1',
      'tollgate.yaml:16: routing_policies[0].mood: unknown key',
      'tollgate.yaml:17: routing_policies[1].name: the routing policy "default" stands twice',
      `tollgate.yaml:17: routing_policies[1].tiers[0].models[0].id: ${unpriced}`,
      'tollgate.yaml:19: routing_policies[3].tiers: must have at least one tier',
    ]);
  });

  test('a provider without a credential says so', () => {
    const { providers } = parse('providers: [{ id: local, base_url: "http://127.0.0.1:11434", auth: none }]');
    assert.deepEqual([providers[0]?.auth, providers[0]?.apiKey], ['none', '']);
    assert.deepEqual(
      errorsOf(
        'providers:\n  - { id: a, base_url: "http://x" }\n  - { id: b, base_url: "http://x", auth: none, ' +
          'api_key: k }\n',
      ),
      [
        'tollgate.yaml:2: providers[0].api_key: is missing',
        'tollgate.yaml:3: providers[1].api_key: is not sent with auth: none',
      ],
    );
  });

  test(
    'an evaluation model may be a chat model that is asked by log-probabilities, for as many options as ' +
      'it tells apart',
    () => {
      const tiers = Array.from(
        { length: 21 },
        (_, index) => `{ name: t${index}, description: d, models: [{ id: m }] }`,
      );
      const file = (kind: string, offered: string) => `providers: [{ id: p, base_url: "http://x", auth: none }]
models:
  - { id: m, served_by: [{ provider: p, model: m, apis: [responses] }] }
  - { id: judge, kind: ${kind}, served_by: [{ provider: p, model: chat, apis: [systemone], via: logprobs, price: { input: "1", output: "2" } }] }
routing_policies:
  - { name: default, classifier: { model: judge }, tiers: [${tiers.slice(0, Number(offered)).join(', ')}] }
`;
      const { models } = parse(file('evaluation', '20'));
      assert.deepEqual([models[1]?.servedBy[0]?.via, models[1]?.servedBy[0]?.price?.output], ['logprobs', 2_000_000n]);
      assert.deepEqual(errorsOf(file('evaluation', '21')), [
        'tollgate.yaml:6: routing_policies[0].classifier.model: "judge" is asked by log-probabilities, which ' +
          'tell at most 20 tiers or kinds apart',
      ]);
      assert.ok(
        errorsOf(file('text', '2')).includes(
          'tollgate.yaml:4: models[1].served_by[0].via: is for models of kind evaluation',
        ),
      );
    },
  );

  test('kinds of work that stand twice are refused', () => {
    assert.match(
      errorsOf('routing_policies:\n  - name: default\n    kinds: { code: a, code: b }\n').join('\n'),
      /^tollgate\.yaml:3: .*unique/,
    );
  });

  test('tiers and kinds are keys of what the classifier is asked: whole numbers would lose their order there', () => {
    const errors = errorsOf(`routing_policies:
  - name: '7'
    classifier: { model: judge }
    tiers: [{ name: '10', description: d, models: [{ id: m }] }, { name: 2nd, description: d, models: [{ id: m }] }]
    kinds: { '3': digits, 3d: fine }
`);
    assert.deepEqual(
      errors.filter((error) => error.includes('whole number')),
      [
        'tollgate.yaml:4: routing_policies[0].tiers[0].name: must not be a whole number',
        'tollgate.yaml:5: routing_policies[0].kinds.3: must not be a whole number',
      ],
    );
  });

  test('an alias within its own anchor is refused, with its line', () => {
    const message = 'an alias stands within its own anchor';
    assert.ok(errorsOf('providers: &a\n  - *a\n').includes(`tollgate.yaml:2: ${message}`));
    assert.ok(errorsOf('organizations:\n  - &a { slug: a, limits: [*a] }\n').includes(`tollgate.yaml:2: ${message}`));
  });

  test('what is wrong with the text is said without quoting it, which may hold a secret', () => {
    for (const value of BROKEN_VALUES) {
      const errors = errorsOf(`providers:\n  - id: a\n    api_key: ${value}\n`);
      assert.ok(errors.length > 0, value);
      assert.ok(!errors.join('\n').includes(QUOTED_SECRET.slice(0, 4)), errors.join('\n'));
    }
    assert.deepEqual(errorsOf('a: { "b" "c" }\n'), ['tollgate.yaml:1: Missing , or : between flow map items']);
    assert.deepEqual(errorsOf('a: [1] ]\n'), ['tollgate.yaml:1: Unexpected flow-seq-end token in YAML stream']);
  });

  test('an alias bomb is refused', () => {
    const bomb = [
      'a: &a [x,x,x,x,x,x,x,x,x,x]',
      ...'bcdefgh'.split('').map((name, index) => `${name}: &${name} [${`*${'abcdefg'[index]},`.repeat(10)}]`),
    ].join('\n');
    assert.ok(errorsOf(bomb).length > 0);
  });
});
