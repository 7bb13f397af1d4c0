// `tollgate models add` and `tollgate prices diff` on files as people write them, with a provider that is asked for its
// list of models over a real socket.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import { mistakesOf } from '../../src/commands/configuration-file/configuration-text.ts';
import { modelsCommand } from '../../src/commands/models.ts';
import { pricesCommand } from '../../src/commands/prices.ts';
import { ConfigurationText } from '../../src/domain/configuration-text/configuration-text.ts';
import { type FakeUpstream, type Script, startFakeUpstream } from '../support/fake-upstream.ts';
import { findFreePort } from '../support/free-port.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const FILE = `# Mine
providers:
  - { id: openai, preset: openai, base_url: "\${URL}", api_key: "\${OPENAI_API_KEY}" }   # the first
  - { id: claude, preset: anthropic, base_url: "\${URL}", api_key: "\${ANTHROPIC_API_KEY}" }
  - { id: router, preset: openrouter, base_url: "\${URL}/api/v1", api_key: k }
  - { id: deployments, preset: azure, with: { resource: acme }, base_url: "\${URL}", api_key: k }
  - { id: own, base_url: "\${URL}", auth: none }
organizations: [{ slug: acme, billing: none, keys: [{ name: ci }] }]
`;
const WITH_AGENTS = FILE.replace(
  'organizations:',
  '  - { id: agents, preset: perplexity, base_url: "${URL}/v1", api_key: k }\n$&',
);
const KEYS = { OPENAI_API_KEY: 'sk-secret', ANTHROPIC_API_KEY: 'sk-ant-secret' };

const models = (data: readonly unknown[]): Script => ({
  status: 200,
  headers: [['content-type', 'application/json']],
  body: JSON.stringify({ data }),
});

interface Answer {
  readonly code: number;
  readonly printed: string;
  readonly text: string;
}

describe('commands on prices', () => {
  let upstream: FakeUpstream;
  let script: Script = models([]);
  before(async () => {
    upstream = await startFakeUpstream(() => script);
  });
  after(() => upstream.close());

  function fileIn(context: TestContext, text = FILE): string {
    const path = join(temporaryDirectory(context), 'tollgate.yaml');
    writeFileSync(path, text);
    return path;
  }

  async function run(
    command: typeof modelsCommand,
    path: string,
    args: readonly string[],
    environment: Readonly<Record<string, string>> = {},
  ): Promise<Answer> {
    const lines: string[] = [];
    const code = await command.run([...args, '--file', path], {
      environment: { URL: upstream.url, ...KEYS, ...environment },
      print: (text) => lines.push(text),
    });
    return { code, printed: lines.join('\n'), text: readFileSync(path, 'utf8') };
  }

  function modelOf(text: string): Readonly<Record<string, unknown>> {
    assert.deepEqual(mistakesOf(text), []);
    const opened = ConfigurationText.open(text, 'tollgate.yaml');
    assert.ok(opened.ok);
    return (opened.file.values['models'] as Record<string, unknown>[]).at(-1) as Record<string, unknown>;
  }

  test('models add: prices from the list, limits from the provider, everything else as it was', async (context) => {
    script = models([{ id: 'claude-opus-5', max_input_tokens: 900_000, max_tokens: 128_000 }]);
    const { code, printed, text } = await run(modelsCommand, fileIn(context), ['add', 'anthropic/claude-opus-5']);
    assert.equal(code, 0);
    assert.ok(text.startsWith(FILE), text);
    assert.match(text, /# Prices: genai-prices 0\.1\.8 of 2026-09-23\./);
    assert.deepEqual(modelOf(text), {
      id: 'anthropic/claude-opus-5',
      display_name: 'Claude Opus 5',
      context_length: 900_000,
      max_output_tokens: 128_000,
      max_completion_tokens_cap: 128_000,
      served_by: [
        {
          provider: 'claude',
          model: 'claude-opus-5',
          apis: ['messages', 'count_tokens'],
          price: {
            input: '5',
            cached_input: '0.5',
            cache_write: '6.25',
            cache_write_1h: '10',
            output: '25',
            calls: { web_search: { usd: '0.01', max: 10 } },
          },
        },
      ],
    });
    assert.match(printed, /is written to .*\nsee it: tollgate apply .* --dry-run$/);
    const asked = upstream.requests.at(-1);
    assert.deepEqual([asked?.method, asked?.path], ['GET', '/v1/models?limit=1000']);
    assert.equal(asked?.header('x-api-key'), KEYS.ANTHROPIC_API_KEY);
    assert.equal(asked?.header('anthropic-version'), '2023-06-01');
  });

  test('models add: limits as other providers say them, asked where the list is', async (context) => {
    script = models([
      { id: 'anthropic/claude-opus-5', context_length: 1_000_000, top_provider: { max_completion_tokens: 64_000 } },
    ]);
    const path = fileIn(context);
    await run(modelsCommand, path, ['add', 'anthropic/claude-opus-5', '--offline', '--max-output', '1000']);
    const { text } = await run(modelsCommand, path, ['add', 'anthropic/claude-opus-5', '--provider', 'router']);
    const { served_by: servedBy } = modelOf(text) as { served_by: { provider: string; model: string }[] };
    assert.deepEqual(
      servedBy.map(({ provider, model }) => [provider, model]),
      [
        ['claude', 'claude-opus-5'],
        ['router', 'anthropic/claude-opus-5'],
      ],
    );
    assert.equal(upstream.requests.at(-1)?.path, '/api/v1/models');
    await assert.rejects(
      run(modelsCommand, path, ['add', 'anthropic/claude-opus-5', '--provider', 'router']),
      /has "anthropic\/claude-opus-5" of provider "router" already \(line \d+\)/,
    );
  });

  for (const base of ['/api', '/api/v1/'])
    test(`models add: OpenRouter at an address that ends in ${base} is asked for its list as well`, async (context) => {
      script = models([]);
      const path = fileIn(context, FILE.replace('/api/v1', base));
      await run(modelsCommand, path, ['add', 'anthropic/claude-opus-5', '--provider', 'router']);
      assert.equal(upstream.requests.at(-1)?.path, '/api/v1/models');
    });

  test('models add: what is missing is said; options go before what the provider says', async (context) => {
    script = models([{ id: 'gpt-5.6-terra', context_window: 5, max_completion_tokens: 6 }]);
    const path = fileIn(context);
    const offline = await run(modelsCommand, path, ['add', 'openai/gpt-5.6-luna', '--offline']);
    assert.match(offline.printed, /note: max_output_tokens and max_completion_tokens_cap are not known/);
    assert.match(offline.text, /# max_output_tokens, max_completion_tokens_cap: MISSING/);
    const given = await run(modelsCommand, path, [
      'add',
      'openai/gpt-5.6-terra',
      '--max-output',
      '7',
      '--context',
      '9',
    ]);
    assert.deepEqual([modelOf(given.text)['context_length'], modelOf(given.text)['max_output_tokens']], [9, 7]);
  });

  test('models add: a deployment has a name of its own, and is priced as its model', async (context) => {
    script = models([]);
    const args = ['add', 'openai/gpt-5.6-terra', '--provider', 'deployments', '--provider-model', 'terra-eu'];
    const { text } = await run(modelsCommand, fileIn(context), args);
    const {
      served_by: [deployment],
    } = modelOf(text) as { served_by: { model: string; price: { input: string } }[] };
    assert.deepEqual([deployment?.model, deployment?.price.input], ['terra-eu', '2']);
    assert.match(text, /where it is gpt-5\.6-terra\./);
  });

  for (const [args, model] of [
    [['meta/llama-x', '--provider', 'own'], 'meta/llama-x'],
    [['meta/llama-y', '--provider', 'own'], 'llama-y'],
    [['openrouter/auto', '--provider', 'router'], 'openrouter/auto'],
  ] as const)
    test(`models add: ${args.join(' ')} is named as the provider lists it, with or without its vendor`, async (context) => {
      script = models([{ id: 'meta/llama-x' }, { id: 'llama-y' }, { id: 'openrouter/auto' }]);
      const { text } = await run(modelsCommand, fileIn(context), ['add', ...args]);
      assert.equal((modelOf(text) as { served_by: { model: string }[] }).served_by[0]?.model, model);
    });

  for (const [args, model, note] of [
    [['openai/gpt-5.5', '--provider', 'agents'], 'openai/gpt-5.5', /no price is known/],
    [
      ['openai/gpt-5.5', '--provider', 'agents', '--offline'],
      'openai/gpt-5.5',
      /no list says .*"agents" was not asked$/m,
    ],
    [['perplexity/openai/gpt-5.5'], 'openai/gpt-5.5', /no price is known/],
    [['perplexity/sonar'], 'perplexity/sonar', /no price is known/],
    [['mine', '--provider', 'agents', '--provider-model', 'perplexity/sonar'], 'perplexity/sonar', /no price is known/],
  ] as const)
    test(`models add: ${args.join(' ')} is Perplexity's agent, which has no chat model's price`, async (context) => {
      script = models([{ id: 'openai/gpt-5.5' }, { id: 'perplexity/sonar' }]);
      const { printed, text } = await run(modelsCommand, fileIn(context, WITH_AGENTS), ['add', ...args]);
      assert.deepEqual(modelOf(text)['served_by'], [{ provider: 'agents', model, apis: ['responses', 'messages'] }]);
      assert.match(printed, note);
    });

  for (const [name, args, expected] of [
    ['a model that nobody knows', ['add', 'openai/gpt-5.6-tera'], /is not known: .*\nnames like it: gpt-5\.6-terra, /],
    [
      'a model that is not listed of a provider that is not asked',
      ['add', 'openai/gpt-9', '--offline'],
      /genai-prices .* does not have it, and provider "openai" was not asked\n/,
    ],
    [
      'an agent that Perplexity does not list',
      ['add', 'openai/gpt-9', '--provider', 'agents'],
      /"openai\/gpt-9" is not known: neither .*\n(?:names like it: .*\n)?if the provider has it under another name, give that by --provider-model$/,
    ],
    [
      'an agent that Perplexity does not have, without asking it',
      ['add', 'perplexity/sonar-pro', '--offline'],
      /"perplexity\/sonar-pro" is not known: genai-prices .* does not have it, and provider "agents" was not asked\nnames like it: perplexity\/sonar, sonar-pro, /,
    ],
    [
      'a vendor that the file does not have',
      ['add', 'foo/bar'],
      /no provider of the file is "foo"; it has openai, claude/,
    ],
    ['a provider that the file does not have', ['add', 'a/b', '--provider', 'x'], /the file has no provider "x"/],
    ['no vendor', ['add', 'gpt-5'], /does not begin with a provider/],
    ['a model for images', ['add', 'openai/gpt-image-2'], /is no model for text/],
    ['tokens that are none', ['add', 'openai/gpt-5', '--context', '1k'], /--context: must be a whole number/],
    ['another action', ['remove', 'openai/gpt-5'], /unknown action "remove"/],
  ] as const)
    test(`models add refuses ${name}, and leaves the file`, async (context) => {
      script = models([{ id: 'gpt-5' }]);
      const path = fileIn(context, WITH_AGENTS);
      await assert.rejects(run(modelsCommand, path, args), expected);
      assert.equal(readFileSync(path, 'utf8'), WITH_AGENTS);
    });

  for (const [name, answer] of [
    ['refuses the key', { status: 401, headers: [], body: '{"error":{"message":"Incorrect API key provided"}}' }],
    ['is not well', { status: 503, headers: [], body: 'x' }],
    ['answers with a page', { status: 200, headers: [['content-type', 'text/html']], body: '<html>' }],
    ['answers with something else', { status: 200, headers: [], body: '{"data":{"a":[1,null,"x"]}}' }],
    ['hangs up', { instead: 'close' }],
  ] as const satisfies readonly (readonly [string, Script])[])
    test(`models add goes on where the provider ${name}`, async (context) => {
      script = answer;
      const { code, printed, text } = await run(modelsCommand, fileIn(context), ['add', 'openai/gpt-5.6-terra']);
      assert.equal(code, 0);
      assert.match(printed, /^provider "openai" [^\n]+: the model's limits are not known from it\n/);
      assert.ok(!printed.includes('secret'));
      assert.equal(modelOf(text)['context_length'], 1_050_000);
    });

  test('models add goes on where nobody listens, and where the key is not set', async (context) => {
    const path = fileIn(context);
    const nowhere = { URL: `http://127.0.0.1:${await findFreePort()}` };
    assert.match((await run(modelsCommand, path, ['add', 'openai/gpt-5'], nowhere)).printed, /ECONNREFUSED/);
    const keyless = await run(modelsCommand, path, ['add', 'openai/gpt-5-mini'], { OPENAI_API_KEY: '' });
    assert.match(keyless.printed, /needs OPENAI_API_KEY, which the environment does not have/);
  });

  test('prices diff: names what differs, writes it when told, and then all is as listed', async (context) => {
    const text = `${FILE}models:
  - id: a
    served_by:
      - provider: openai
        model: gpt-5.6-terra
        apis: [responses]
        # Prices: genai-prices 0.1.2 of 2026-07-01, by Ann.
        price: { input: "2.5", cached_input: "0.20", output: "12", factor: "1.1" }   # keep me
      - { provider: claude, model: claude-opus-5, apis: [messages] }
  - id: b
    served_by: [{ provider: own, model: gpt-5, apis: [responses], price: { input: "1", output: "1" } }]
  - id: c
    served_by: [{ provider: openai, model: gpt-7-nova, apis: [responses], price: { input: "1", output: "1" } }]
`;
    const path = fileIn(context, text);
    const shown = await run(pricesCommand, path, ['diff']);
    assert.deepEqual([shown.code, shown.text], [1, text]);
    assert.match(shown.printed, /^a at openai \(line \d+\), in the list gpt-5\.6-terra:\n {2}input +2\.5 -> 2\n/);
    assert.match(shown.printed, /\na at claude .*\n {2}price +none -> \{"input":"5"/);
    assert.match(shown.printed, /\nb at own .*: genai-prices has no prices of this provider\n/);
    assert.match(shown.printed, /\nc at openai .*: not listed; names like it: gpt-/);
    assert.match(shown.printed, /\n0 as in genai-prices 0\.1\.8 of 2026-09-23, 2 different, 2 not compared; /);

    const written = await run(pricesCommand, path, ['diff', '--write']);
    assert.equal(written.code, 0);
    assert.match(
      written.text,
      /# Prices: genai-prices 0\.1\.8 of 2026-09-23, by Ann\.\n {8}price: \{ input: "2", cached_input: "0\.20", /,
    );
    assert.match(written.text, / {3}# keep me\n/);
    assert.deepEqual(mistakesOf(written.text), []);
    const again = await run(pricesCommand, path, ['diff']);
    assert.deepEqual([again.code, again.text], [0, written.text]);
    assert.match(again.printed, /\n2 as in /);
  });

  const served = (model: string, price: string, provider = 'openai'): string =>
    `{ provider: ${provider}, model: ${model}, apis: [responses], price: ${price} }`;
  for (const [name, lines, expected] of [
    [
      'a price that an alias also stands for',
      [
        `  - { id: a, served_by: [${served('gpt-6-sol', '&p { input: "9", output: "10" }')}] }`,
        `  - { id: b, served_by: [${served('m', '*p', 'own')}] }`,
      ],
      /\n {2}shared by an anchor: change it by hand\n/,
    ],
    [
      'a price that is an alias',
      [
        `  - { id: a, served_by: [${served('m', '&p { input: "9", output: "10" }', 'own')}] }`,
        `  - { id: b, served_by: [${served('gpt-6-sol', '*p')}] }`,
      ],
      /\n {2}shared by an anchor: change it by hand\n/,
    ],
    [
      'an amount that an alias also stands for',
      [
        `  - { id: a, served_by: [${served('gpt-6-sol', '{ input: &i "77", output: "10" }')}] }`,
        `  - { id: b, served_by: [${served('m', '{ input: *i, output: "10" }', 'own')}] }`,
      ],
      /\n {2}shared by an anchor: change it by hand\n/,
    ],
    [
      'deployments that an alias also stands for',
      [
        `  - { id: a, served_by: &s [${served('gpt-6-sol', '{ input: "9", output: "10" }')}] }`,
        '  - { id: b, served_by: *s }',
      ],
      /\n {2}shared by an anchor: change it by hand\nb at openai \(line 10\)/,
    ],
    [
      'prices by date, one of them of the future',
      [
        '  - id: a',
        '    served_by:',
        '      - provider: openai',
        '        model: gpt-6-sol',
        '        apis: [responses]',
        '        price:',
        '          - { input: "9", output: "10" }   # now',
        '          - { from: 2099-01-01, input: "5", output: "6" }   # agreed',
      ],
      /\n {2}of dates or hours of its own: change it by hand\n/,
    ],
  ] as const)
    test(`prices diff does not write ${name}, and says so`, async (context) => {
      const text = `${FILE}models:\n${lines.join('\n')}\n`;
      assert.deepEqual(mistakesOf(text), []);
      const shown = await run(pricesCommand, fileIn(context, text), ['diff', '--write']);
      assert.deepEqual([shown.code, shown.text], [1, text]);
      assert.match(shown.printed, expected);
      assert.match(shown.printed, / to be changed by hand\), /);
    });

  test('models add calls the file by its name where the change would make mistakes', async (context) => {
    const path = join(temporaryDirectory(context), 'mine.yaml');
    writeFileSync(path, FILE.replace('organizations:', 'models: { a: 1 }\norganizations:'));
    await assert.rejects(run(modelsCommand, path, ['add', 'openai/gpt-6-sol', '--offline']), (error: Error) => {
      assert.match(error.message, /\nmine\.yaml:\d+: /);
      return true;
    });
  });

  test('models add does not add to what an alias also stands for', async (context) => {
    const text = `${FILE}models:
  - { id: openai/gpt-6-sol, served_by: &s [${served('m', '{ input: "1", output: "1" }', 'own')}] }
  - { id: openai/gpt-6-luna, served_by: *s }
`;
    const path = fileIn(context, text);
    for (const name of ['openai/gpt-6-sol', 'openai/gpt-6-luna'])
      await assert.rejects(run(modelsCommand, path, ['add', name, '--offline']), /shared by an anchor: add to it by/);
    assert.equal(readFileSync(path, 'utf8'), text);
  });

  test('prices diff of a file without models, and of one that is none', async (context) => {
    assert.equal((await run(pricesCommand, fileIn(context, ''), ['diff'])).code, 0);
    assert.equal((await run(pricesCommand, fileIn(context, 'models: 7\n'), ['diff'])).code, 0);
    await assert.rejects(run(pricesCommand, fileIn(context, 'models: ['), ['diff']), /tollgate\.yaml:1: /);
    await assert.rejects(run(pricesCommand, join(temporaryDirectory(context), 'none'), ['diff']), /"tollgate init"/);
  });
});
