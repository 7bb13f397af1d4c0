// `tollgate init`: what it writes runs as it is, whoever is asked or not, and nothing is overwritten.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, type TestContext, test } from 'node:test';
import { type Prompt, promptOn } from '../../src/commands/command/prompt.ts';
import { loadPriceList } from '../../src/commands/configuration-file/price-list.ts';
import { USUAL_MODELS } from '../../src/commands/init/usual-models.ts';
import { initialize } from '../../src/commands/init.ts';
import { pricesCommand } from '../../src/commands/prices.ts';
import type { Configuration } from '../../src/domain/configuration/configuration.ts';
import { parseConfigurationFile } from '../../src/domain/configuration/parse-configuration-file.ts';
import { PRESET_NAMES, PRESETS, type Preset, type PresetName } from '../../src/domain/configuration/presets.ts';
import { writeListedPrices } from '../../src/domain/list-prices/listed-price.ts';
import { startFakeUpstream } from '../support/fake-upstream.ts';
import { SERVICE_ACCOUNT_KEY } from '../support/google-account-key.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const ACCOUNT = { type: 'service_account', client_email: 'g@acme-1.test', private_key: SERVICE_ACCOUNT_KEY };
const KEYS: Readonly<Record<string, string>> = Object.fromEntries([
  ['GOOGLE_CREDENTIALS', JSON.stringify(ACCOUNT)],
  ...PRESET_NAMES.flatMap((name) => {
    const { keyVariable }: Preset = PRESETS[name];
    return keyVariable === null ? [] : [[keyVariable, 'sk-secret']];
  }),
]);
/** What presets need that nobody can guess. */
const NEEDED: Readonly<Partial<Record<PresetName, string>>> = {
  azure: ',resource=acme',
  'azure-classic': ',resource=acme',
  'azure-anthropic': ',resource=acme',
  bedrock: ',region=eu-west-1',
  'bedrock-mantle': ',region=eu-west-1',
  vertex: ',project=acme-1',
  'vertex-anthropic': ',project=acme-1',
};

interface Written {
  readonly path: string;
  readonly printed: string;
  readonly text: string;
  readonly configuration: Configuration;
}

async function init(
  context: TestContext,
  args: readonly string[],
  { environment = {}, prompt = null }: { environment?: Readonly<Record<string, string>>; prompt?: Prompt | null } = {},
): Promise<Written> {
  const path = join(temporaryDirectory(context), 'tollgate.yaml');
  const lines: string[] = [];
  const print = (text: string): void => void lines.push(text);
  assert.equal(await initialize([...args, '--file', path], { environment, print }, () => prompt), 0);
  const text = readFileSync(path, 'utf8');
  // As "tollgate start" reads it, with every variable that it names.
  const parsed = parseConfigurationFile(text, KEYS);
  assert.ok(parsed.ok, parsed.ok ? '' : `${parsed.errors.join('\n')}\n${text}`);
  return { path, printed: lines.join('\n'), text, configuration: parsed.configuration };
}

describe('tollgate init', () => {
  for (const preset of PRESET_NAMES)
    test(`--provider ${preset}: the file runs, with an organization and its key`, async (context) => {
      const named = USUAL_MODELS[preset] === undefined ? ['--model', `${preset}/some-model`] : [];
      const provider = `${preset}${NEEDED[preset] ?? ''}`;
      const { configuration, text } = await init(context, ['--provider', provider, ...named, '--offline', '--yes']);
      const { providers, models, organizations } = configuration;
      assert.deepEqual(
        providers.map(({ id }) => id),
        [preset],
      );
      assert.ok(models.length > 0 && models.every(({ servedBy }) => servedBy.every(({ apis }) => apis.length > 0)));
      assert.deepEqual(
        organizations.map(({ slug, billing, keys }) => [slug, billing, keys?.length]),
        [['main', 'none', 1]],
      );
      assert.ok(!text.includes('sk-secret'));
    });

  test("Perplexity's agents are served by Responses; whoever names an ended model is told", async (context) => {
    const args = [
      '--provider',
      'perplexity',
      '--model',
      'perplexity/perplexity/sonar',
      '--model',
      'perplexity/sonar-pro',
    ];
    const { configuration, printed } = await init(context, [...args, '--offline', '--yes']);
    assert.deepEqual(
      configuration.models.map(({ id, servedBy }) => [id, servedBy[0]?.providerModel, servedBy[0]?.apis]),
      [
        ['perplexity/sonar', 'perplexity/sonar', ['responses', 'messages']],
        ['perplexity/sonar-pro', 'sonar-pro', ['chat_completions']],
      ],
    );
    assert.match(printed, /^note: perplexity\/sonar-pro: Perplexity announced the end of its chat completions/m);
    assert.doesNotMatch(printed, /^note: perplexity\/sonar:/m);
  });

  test('the models that it takes where nobody names any are on the list, with a price', async () => {
    const list = await loadPriceList();
    for (const [preset, names] of Object.entries(USUAL_MODELS))
      for (const name of names) {
        const listed = list.provider({ preset, baseUrl: null })?.find(name);
        assert.ok(listed?.id === name && !listed.isDeprecated, `${preset} ${name}`);
        assert.notEqual(writeListedPrices(listed, Date.now()), null, `${preset} ${name}`);
      }
  });

  test('its prices are those that "prices diff" knows, and it ends with the next command', async (context) => {
    const { path, printed } = await init(context, ['--provider', 'openai', '--provider', 'anthropic', '--offline'], {
      environment: { OPENAI_API_KEY: 'k' },
    });
    const diff = await pricesCommand.run(['diff', '--file', path], { environment: {}, print: () => undefined });
    assert.equal(diff, 0);
    assert.match(
      printed,
      /\nnext:\n {2}export ANTHROPIC_API_KEY=\.\.\.\n {2}tollgate doctor --config .+\n {2}tollgate start --config .+$/,
    );
    assert.ok(!printed.includes('export OPENAI_API_KEY'));
  });

  test('a server of one’s own is asked for its models, and their limits are written', async (context) => {
    const upstream = await startFakeUpstream(() => ({
      headers: [['content-type', 'application/json']],
      body: JSON.stringify({ data: [{ id: 'qwen', max_model_len: 40_960 }, { id: 'embedder' }] }),
    }));
    context.after(() => upstream.close());
    const address = upstream.url.replace('http://', '');
    const { configuration } = await init(context, ['--provider', `vllm,address=${address}`]);
    assert.deepEqual(
      configuration.models.map(({ id, kind, contextLength }) => [id, kind, contextLength]),
      [
        ['vllm/qwen', 'text', 40_960],
        ['vllm/embedder', 'embedding', null],
      ],
    );
    assert.equal(configuration.models[0]?.servedBy[0]?.price?.input, 0n);
  });

  test('a person is asked, and asked again after a wrong answer', async (context) => {
    const input = new PassThrough();
    const output = new PassThrough();
    let asked = '';
    const answers = ['opena', 'openai azure', '', 'not a name!', 'acme', 'gpt-5'];
    output.on('data', (chunk: Buffer) => {
      asked += chunk.toString();
      if (chunk.toString().endsWith(': ')) input.write(`${answers.shift() ?? ''}\n`);
    });
    const { configuration } = await init(context, ['--offline'], { prompt: promptOn(input, output) });
    assert.match(asked, /there is no preset "opena"\. Is openai meant\?/);
    assert.deepEqual(
      configuration.models.map(({ id }) => id),
      [...(USUAL_MODELS.openai ?? []).map((name) => `openai/${name}`), 'azure/gpt-5'],
    );
    assert.equal(configuration.providers[1]?.baseUrl, 'https://acme.openai.azure.com/openai/v1');
    assert.deepEqual(answers, []);
  });

  test('--yes takes the providers whose keys the environment has', async (context) => {
    const { configuration } = await init(context, ['--yes', '--offline'], { environment: { GROQ_API_KEY: 'k' } });
    assert.deepEqual(
      configuration.providers.map(({ id }) => id),
      ['groq'],
    );
  });

  test('--yes takes a provider whose models nobody can guess where they are named, and says so where not', async (context) => {
    const environment = { PERPLEXITY_API_KEY: 'k' };
    const args = ['--yes', '--offline', '--model', 'perplexity/perplexity/sonar'];
    const { configuration } = await init(context, args, { environment });
    assert.deepEqual(
      configuration.models.map(({ id }) => id),
      ['perplexity/sonar'],
    );
    await assert.rejects(
      init(context, ['--yes', '--offline'], { environment }),
      /no models are usual of perplexity: name some by --model perplexity\/NAME/,
    );
  });

  for (const [name, args, expected] of [
    ['nobody to ask', [], /--provider is missing, and there is no terminal/],
    ['no key in the environment', ['--yes'], /the environment has the key of no provider/],
    ['an unknown provider', ['--provider', 'opena'], /there is no preset "opena"\. Is openai meant\?/],
    ['what a preset needs', ['--provider', 'azure'], /--provider azure: must say resource, .*azure,resource=/],
    ['a value that is none', ['--provider', 'azure,resource=a/b'], /resource must be letters/],
    ['a pair that is none', ['--provider', 'azure,acme'], /must be NAME=VALUE behind the comma, got "acme"/],
    ['what a preset does not take', ['--provider', 'groq,region=eu'], /says region, and preset groq takes nothing/],
    ['deployments without names', ['--provider', 'azure,resource=a', '--offline'], /--model azure\/NAME/],
    [
      'a model of another provider',
      ['--provider', 'groq', '--model', 'openai/x'],
      /--model openai\/x: must be PRESET\/NAME/,
    ],
    ['an organization that is no name', ['--provider', 'groq', '--organization', 'A b'], /--organization: must be/],
    [
      'only models that are not for text',
      ['--provider', 'openai', '--model', 'openai/whisper-1', '--offline'],
      /there is no model to write/,
    ],
  ] as const)
    test(`refuses ${name}`, async (context) => {
      await assert.rejects(init(context, args), expected);
    });

  test('never overwrites without being told', async (context) => {
    const path = join(temporaryDirectory(context), 'mine.yaml');
    writeFileSync(path, '# mine\n');
    const run = (...args: string[]) =>
      initialize(
        ['--provider', 'groq', '--offline', '--file', path, ...args],
        { environment: {}, print: () => undefined },
        () => null,
      );
    await assert.rejects(run(), /mine\.yaml exists already: --force overwrites it/);
    assert.equal(readFileSync(path, 'utf8'), '# mine\n');
    assert.equal(await run('--force'), 0);
    assert.match(readFileSync(path, 'utf8'), /preset: groq/);
  });
});
