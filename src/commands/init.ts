// `tollgate init`: writes a configuration file that runs as it is, for the providers that the operator has.

import { existsSync } from 'node:fs';
import { basename, relative, resolve } from 'node:path';
import type { Environment } from '../config.ts';
import { expandPreset } from '../domain/configuration/expand-preset.ts';
import { PRESET_NAMES, type PresetName } from '../domain/configuration/presets.ts';
import { slugSchema } from '../domain/configuration/schema/name-schemas.ts';
import type { ModelText, ProviderText } from '../domain/configuration-text/entry-text.ts';
import { isForText, isKeyless, isPerplexityAgent, planModel } from '../domain/configuration-text/plan-model.ts';
import { wholeFileText } from '../domain/configuration-text/whole-file.ts';
import { StartFault } from '../installation/start-fault.ts';
import { systemClock } from '../platform/clock.ts';
import { listModels, type ModelList } from '../upstream/list-models.ts';
import { type Command, type CommandContext, expectPositionals, parseArguments, UsageFault } from './command/command.ts';
import { openPrompt, type Prompt } from './command/prompt.ts';
import { callableProvider, withProviders } from './configuration-file/call-providers.ts';
import { mistakesOf, USUAL_FILE, writeWhole } from './configuration-file/configuration-text.ts';
import { loadPriceList, PRICE_LIST_TEXT, type PriceList } from './configuration-file/price-list.ts';
import {
  askProviders,
  type ChosenProvider,
  checkModels,
  keyVariable,
  readProviderOption,
  takesToken,
} from './init/choices.ts';
import { VENDORS } from './models.ts';

export const initCommand: Command = {
  usage: [
    'tollgate init [--provider PRESET[,NAME=VALUE]]... [--model PRESET/NAME]... [--file FILE] ' +
      '[--organization SLUG] [--offline] [--yes] [--force]',
  ],
  summary:
    'Asks which providers you have and writes a configuration file (tollgate.yaml) that runs: models with prices ' +
    'and limits, an organization with a key. With --provider it does not ask; with --yes it takes the providers ' +
    'whose key is in the environment. It asks providers for the limits of their models, unless --offline. ' +
    '--force overwrites the file.',
  run: (args, context) => initialize(args, context, openPrompt),
};

const OPTIONS = {
  provider: { type: 'string', multiple: true, default: [] as string[] },
  model: { type: 'string', multiple: true, default: [] as string[] },
  file: { type: 'string', default: USUAL_FILE },
  organization: { type: 'string', default: 'main' },
  offline: { type: 'boolean', default: false },
  yes: { type: 'boolean', default: false },
  force: { type: 'boolean', default: false },
} as const;

/** `open` returns the prompt at the terminal; null: there is no terminal. */
export async function initialize(
  args: readonly string[],
  { environment, print }: CommandContext,
  open: () => Prompt | null,
): Promise<number> {
  const { values, positionals } = parseArguments(args, OPTIONS);
  expectPositionals(positionals, []);
  const path = resolve(values.file);
  if (existsSync(path) && !values.force)
    throw new StartFault(`${path} exists already: --force overwrites it, "tollgate models add" adds to it`);
  if (!slugSchema.safeParse(values.organization).success)
    throw new UsageFault('--organization: must be lower-case letters, digits, hyphens or underscores');
  const chosen = await choose(values, environment, open);
  const list = await loadPriceList();
  const providers = providersOf(chosen);
  const offered = await askAll(providers, { environment, print, isOffline: values.offline });
  const models = providers.flatMap((provider) => modelsOf(provider, { list, offered: offered.get(provider), print }));
  if (models.length === 0) throw new StartFault('there is no model to write: name some by --model PRESET/NAME');
  const text = wholeFileText({
    intro: [
      'Configuration of Tollgate, written by "tollgate init". docs/configuration.md explains every part of it.',
      `Prices are those of ${PRICE_LIST_TEXT}; "tollgate prices diff" compares them with newer ones.`,
    ],
    providers: providers.map(({ text: provider }) => provider),
    models: merged(models),
    organization: values.organization,
  });
  const mistakes = mistakesOf(text, basename(path));
  if (mistakes.length > 0)
    throw new StartFault(['the chosen options do not make a valid configuration:', ...mistakes].join('\n'));
  writeWhole(path, text);
  print(`written: ${path}, with ${models.length} model${models.length === 1 ? '' : 's'}`);
  for (const line of nextSteps(providers, relative(process.cwd(), path) || path, environment)) print(line);
  return 0;
}

async function choose(
  { provider, model, yes }: { readonly provider: string[]; readonly model: string[]; readonly yes: boolean },
  environment: Environment,
  open: () => Prompt | null,
): Promise<readonly ChosenProvider[]> {
  if (provider.length > 0) {
    const chosen = provider.map((one) => readProviderOption(one, model));
    checkModels(
      model,
      chosen.map(({ preset }) => preset),
    );
    return chosen;
  }
  if (yes) return ofEnvironment(environment, model);
  const prompt = open();
  if (prompt === null)
    throw new UsageFault('--provider is missing, and there is no terminal to ask at: --provider openai, for example');
  try {
    return await askProviders(prompt, environment);
  } finally {
    prompt.close();
  }
}

/** The providers whose key is in the environment, which need nothing else and have models to write. */
function ofEnvironment(environment: Environment, models: readonly string[]): readonly ChosenProvider[] {
  const found = PRESET_NAMES.filter(
    (preset) => (environment[keyVariable(preset) ?? ''] ?? '') !== '' && expandPreset(preset, {}).ok,
  ).map((preset) => readProviderOption(preset, models));
  if (found.length === 0)
    throw new UsageFault(
      '--yes: the environment has the key of no provider (OPENAI_API_KEY, ...): name one by --provider',
    );
  const presets = found.map(({ preset }) => preset);
  checkModels(models, presets);
  const chosen = found.filter((provider) => provider.models !== null);
  if (chosen.length === 0)
    throw new UsageFault(
      `--yes: no models are usual of ${presets.join(', ')}: name some by --model ${presets[0]}/NAME`,
    );
  return chosen;
}

interface InitProvider extends ChosenProvider {
  readonly text: ProviderText;
}

/** Two providers of one preset get different ids. */
function providersOf(chosen: readonly ChosenProvider[]): readonly InitProvider[] {
  return chosen.map((provider, at) => {
    const { preset, with: values } = provider;
    const before = chosen.slice(0, at).filter((other) => other.preset === preset).length;
    const fields = {
      preset,
      ...(Object.keys(values).length === 0 ? {} : { with: values }),
      ...credentialFields(preset),
    };
    return { ...provider, text: { id: before === 0 ? preset : `${preset}-${before + 1}`, fields } };
  });
}

function credentialFields(preset: PresetName): Readonly<Record<string, unknown>> {
  const variable = keyVariable(preset);
  if (variable === null) return {};
  return takesToken(preset)
    ? { token: { kind: 'google', credentials: `\${${variable}}` } }
    : { api_key: `\${${variable}}` };
}

interface Asking {
  readonly environment: Environment;
  readonly print: (text: string) => void;
  readonly isOffline: boolean;
}

/** The models that each provider lists, if its key is known. */
async function askAll(
  providers: readonly InitProvider[],
  { environment, print, isOffline }: Asking,
): Promise<ReadonlyMap<InitProvider, ModelList>> {
  if (isOffline) return new Map();
  return withProviders(environment, async (through) => {
    const answers = await Promise.all(
      providers.map(async (provider) => {
        const { id, fields } = provider.text;
        const callable = await callableProvider({ id, ...fields }, environment);
        if (!callable.ok) {
          if (callable.lacks === 'token') print(`warning: ${id} ${callable.reason}`);
          return [];
        }
        const answer = await listModels(callable.provider, through);
        if (answer.models === null) print(`warning: ${id} ${answer.reason}`);
        return [[provider, answer] as const];
      }),
    );
    return new Map(answers.flat());
  });
}

/** If no model of an own server is named, at most so many of its models are written. */
const OWN_MODELS_MAX = 5;

function modelsOf(
  { preset, models: named, text: { id: provider } }: InitProvider,
  {
    list,
    offered,
    print,
  }: { readonly list: PriceList; readonly offered: ModelList | undefined; readonly print: (text: string) => void },
): readonly ModelText[] {
  const ids = offered?.models?.map(({ id }) => id) ?? null;
  const names = named ?? ids?.slice(0, OWN_MODELS_MAX) ?? [];
  if (names.length === 0)
    throw new StartFault(
      `${preset}: name its models by --model ${preset}/NAME; none is usual, and it cannot be asked which it has`,
    );
  const ofProvider = list.provider({ preset, baseUrl: null });
  return names.flatMap((name) => {
    const listed = ofProvider?.find(name) ?? null;
    if (ids !== null && !ids.includes(name)) print(`warning: ${provider} does not list ${name} for this key`);
    if (listed === null && ofProvider !== null && ids?.includes(name) !== true) {
      const near = ofProvider.nearest(name);
      print(
        `warning: ${name} is not in the price list${near.length === 0 ? '' : `; names like it: ${near.join(', ')}`}`,
      );
    }
    if (!isForText(name)) {
      print(`warning: ${name} is left out, since it is no model for text`);
      return [];
    }
    const found = offered?.models?.find((model) => model.id === name);
    const limits = { contextLength: found?.contextLength ?? null, maxOutputTokens: found?.maxOutputTokens ?? null };
    const vendor = VENDORS[preset] ?? preset;
    // The names of OpenRouter's models and of Perplexity's agents begin with the vendor already.
    const hasVendor = preset === 'openrouter' || isPerplexityAgent(preset, name);
    const id = hasVendor ? name : `${vendor}/${name}`;
    const plan = planModel({
      id,
      provider: { id: provider, preset },
      providerModel: name,
      listed,
      limits,
      source: PRICE_LIST_TEXT,
      nowMs: systemClock.nowMs(),
    });
    for (const note of plan.notes) print(`note: ${id}: ${note}`);
    return [plan.model];
  });
}

/** A model that two providers serve becomes one entry with both. */
function merged(models: readonly ModelText[]): readonly ModelText[] {
  const byId = new Map<string, ModelText>();
  for (const model of models) {
    const present = byId.get(model.id);
    byId.set(
      model.id,
      present === undefined ? model : { ...present, deployments: [...present.deployments, ...model.deployments] },
    );
  }
  return [...byId.values()];
}

function nextSteps(providers: readonly InitProvider[], file: string, environment: Environment): readonly string[] {
  const variables = new Set(providers.flatMap(({ preset }) => keyVariable(preset) ?? []));
  const missing = [...variables].filter((name) => (environment[name] ?? '') === '');
  const exports = missing.map((name) => `  export ${name}=...`);
  const hasOwn = providers.some(({ preset }) => isKeyless(preset));
  return [
    'next:',
    ...exports,
    `  tollgate doctor --config ${file}    # asks each provider${hasOwn ? ', your own servers too' : ''}`,
    `  tollgate start --config ${file}`,
  ];
}
