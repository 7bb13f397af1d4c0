// `tollgate models add`: writes a model into the configuration file, with prices from the price list that Tollgate
// ships and limits from its provider.

import type { Environment } from '../config.ts';
import type { ConfigurationText } from '../domain/configuration-text/configuration-text.ts';
import { deploymentLines, modelLines } from '../domain/configuration-text/entry-text.ts';
import {
  isForText,
  isKeyless,
  isPerplexityAgent,
  type ModelLimits,
  PERPLEXITYS_OWN_AGENT,
  type PlannedModel,
  planModel,
} from '../domain/configuration-text/plan-model.ts';
import type { ListedModel } from '../domain/list-prices/listed-model.ts';
import { nearestNames } from '../domain/list-prices/nearest-names.ts';
import { StartFault } from '../installation/start-fault.ts';
import { systemClock } from '../platform/clock.ts';
import { listModels, type ProviderModel } from '../upstream/list-models.ts';
import {
  type Command,
  type CommandContext,
  expectPositionals,
  parseArguments,
  takeAction,
  UsageFault,
} from './command/command.ts';
import { openPrompt } from './command/prompt.ts';
import { callableProvider, withProviders } from './configuration-file/call-providers.ts';
import {
  configurationPath,
  type FileProvider,
  listOf,
  openConfigurationText,
  providersOf,
  writeChangedText,
} from './configuration-file/configuration-text.ts';
import { type ListedProvider, loadPriceList, PRICE_LIST_TEXT } from './configuration-file/price-list.ts';

export const modelsCommand: Command = {
  usage: [
    'tollgate models add VENDOR/MODEL [--provider ID] [--provider-model NAME] [--file FILE] ' +
      '[--context TOKENS] [--max-output TOKENS] [--offline]',
  ],
  summary:
    'Writes a model into the configuration file (tollgate.yaml): its prices, with their date, from the price ' +
    'list that comes with Tollgate; its limits from its provider, which is asked once with its key, or from the ' +
    "options. --offline asks nobody. --provider-model is the provider's name of the model, such as a deployment " +
    'of Azure.',
  run,
};

const OPTIONS = {
  provider: { type: 'string' },
  'provider-model': { type: 'string' },
  file: { type: 'string' },
  context: { type: 'string' },
  'max-output': { type: 'string' },
  offline: { type: 'boolean', default: false },
} as const;

async function run(args: readonly string[], { environment, print }: CommandContext): Promise<number> {
  const { values, positionals } = parseArguments(args, OPTIONS);
  const [, others] = takeAction(positionals, ['add']);
  const [id = ''] = expectPositionals(others, ['VENDOR/MODEL']);
  const options: ModelLimits = {
    contextLength: readTokens(values.context, 'context'),
    maxOutputTokens: readTokens(values['max-output'], 'max-output'),
  };
  const path = configurationPath(values.file, environment);
  const file = openConfigurationText(path);
  const provider = findProvider(providersOf(file), id, values.provider);
  const list = (await loadPriceList()).provider(provider);
  const ofProvider = values.offline ? null : await askProvider(provider, environment, print);
  const known = [
    ...(ofProvider === null && provider.preset === 'perplexity' ? [PERPLEXITYS_OWN_AGENT] : []),
    ...[...(list?.models ?? []), ...(ofProvider ?? [])].map((model) => model.id),
  ];
  const providerModel = values['provider-model'] ?? nameAtProvider(id, provider, known);
  const listed = findListed(id, providerModel, provider, list);
  const lists = listsWithout(provider, ofProvider, values.offline);
  if (!isKnown(providerModel, listed, ofProvider, provider))
    throw new StartFault(unknownModel(providerModel, lists, known));
  const described = ofProvider?.find((model) => model.id === providerModel);
  if (ofProvider !== null && described === undefined)
    print(`warning: provider "${provider.id}" does not list "${providerModel}"${namesLike(providerModel, ofProvider)}`);
  if (!isForText(providerModel))
    throw new StartFault(
      `"${providerModel}" is no model for text: write its entry by hand, as docs/configuration.md describes`,
    );
  const limits = await completeLimits(options, described, listed, id);
  const plan = planModel({
    id,
    provider,
    providerModel,
    listed,
    limits,
    source: PRICE_LIST_TEXT,
    nowMs: systemClock.nowMs(),
  });
  const { text, what } = addToFile(file, plan, limits);
  writeChangedText(path, file.text, text);
  print(`${what} is written to ${path}`);
  const unlisted =
    listed === null && ofProvider === null ? [`no list says that "${providerModel}" exists: ${lists}`] : [];
  for (const note of [...unlisted, ...plan.notes, ...missingOf(plan)]) print(`note: ${note}`);
  print(`see it: tollgate apply ${path} --dry-run`);
  return 0;
}

function readTokens(text: string | undefined, name: string): number | null {
  if (text === undefined) return null;
  const count = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(count) || count < 1)
    throw new UsageFault(`--${name}: must be a whole number of tokens, got "${text}"`);
  return count;
}

/** The provider with this name or, without a name, the one whose id, preset or vendor the model's id begins with. */
function findProvider(providers: readonly FileProvider[], id: string, named: string | undefined): FileProvider {
  const ids = providers.map((provider) => provider.id).join(', ') || 'none';
  if (named !== undefined) {
    const found = providers.find((provider) => provider.id === named);
    if (found === undefined) throw new StartFault(`the file has no provider "${named}"; it has ${ids}`);
    return found;
  }
  const vendor = id.includes('/') ? id.slice(0, id.indexOf('/')) : '';
  const found = providers.filter((provider) => vendorNames(provider).includes(vendor));
  const [first] = found;
  if (first !== undefined && found.length === 1) return first;
  if (found.length > 1)
    throw new UsageFault(`--provider: say which of ${found.map((provider) => provider.id).join(', ')} is meant`);
  throw new StartFault(
    vendor === ''
      ? `"${id}" does not begin with a provider: write it as VENDOR/MODEL, or name one of ${ids} by --provider`
      : `no provider of the file is "${vendor}"; it has ${ids}: name one by --provider, or add it to the file`,
  );
}

/** The vendor with which public names of a preset's models usually begin. */
export const VENDORS: Readonly<Record<string, string>> = { gemini: 'google', vertex: 'google', xai: 'x-ai' };

function vendorNames({ id, preset }: FileProvider): readonly string[] {
  return [id, ...(preset === null ? [] : [preset, ...(VENDORS[preset] === undefined ? [] : [VENDORS[preset]])])];
}

function modelPart(id: string): string {
  return id.slice(id.indexOf('/') + 1);
}

/** OpenRouter's models and Perplexity's agents have names that contain a vendor. */
function nameAtProvider(id: string, provider: FileProvider, known: readonly string[]): string {
  const names = vendorNames(provider).some((name) => id.startsWith(`${name}/`))
    ? [modelPart(id), id]
    : [id, modelPart(id)];
  const agent = names.find((name) => isPerplexityAgent(provider.preset, name));
  if (agent !== undefined) return agent;
  const exact = names.find((name) => known.includes(name));
  const [first = id] = names;
  return exact ?? (provider.preset === 'openrouter' ? first : modelPart(id));
}

/** A deployment with a name of its own is priced as the model of the id; an agent of Perplexity's only by its name. */
function findListed(
  id: string,
  providerModel: string,
  { preset }: FileProvider,
  list: ListedProvider | null,
): ListedModel | null {
  const found = list?.find(providerModel) ?? null;
  return found !== null || isPerplexityAgent(preset, providerModel) ? found : (list?.find(modelPart(id)) ?? null);
}

async function askProvider(
  { id, entry }: FileProvider,
  environment: Environment,
  print: (text: string) => void,
): Promise<readonly ProviderModel[] | null> {
  const callable = await callableProvider(entry, environment);
  if (!callable.ok) {
    print(`provider "${id}" is not asked for the model's limits: it ${callable.reason}`);
    return null;
  }
  const { models, reason } = await withProviders(environment, (providers) => listModels(callable.provider, providers));
  if (models === null) print(`provider "${id}" ${reason}: the model's limits are not known from it`);
  return models;
}

/**
 * Whether the model exists at its provider, as far as lists can tell. A model on an own server, or a deployment with a
 * name of its own, need not be listed, and the list of prices has no agents of Perplexity's.
 */
function isKnown(
  model: string,
  listed: ListedModel | null,
  ofProvider: readonly ProviderModel[] | null,
  { preset }: FileProvider,
): boolean {
  if (listed !== null || ofProvider?.some(({ id }) => id === model) === true) return true;
  const hasOwnNames = preset === null || isKeyless(preset) || preset === 'azure' || preset === 'azure-classic';
  const mayBeAgent =
    isPerplexityAgent(preset, model) && (model === PERPLEXITYS_OWN_AGENT || !model.startsWith('perplexity/'));
  return ofProvider === null && (hasOwnNames || mayBeAgent);
}

/** Says which lists do not have a model. */
function listsWithout({ id }: FileProvider, ofProvider: readonly ProviderModel[] | null, isOffline: boolean): string {
  if (ofProvider !== null) return `neither ${PRICE_LIST_TEXT} nor provider "${id}" has it`;
  const unasked = isOffline ? 'was not asked' : 'gave no list of its models';
  return `${PRICE_LIST_TEXT} does not have it, and provider "${id}" ${unasked}`;
}

function unknownModel(model: string, lists: string, known: readonly string[]): string {
  const near = nearestNames(model, [...new Set(known)]);
  return [
    `"${model}" is not known: ${lists}`,
    ...(near.length === 0 ? [] : [`names like it: ${near.join(', ')}`]),
    'if the provider has it under another name, give that by --provider-model',
  ].join('\n');
}

function namesLike(model: string, ofProvider: readonly ProviderModel[]): string {
  const near = nearestNames(
    model,
    ofProvider.map(({ id }) => id),
  );
  return near.length === 0 ? '' : `; names like it: ${near.join(', ')}`;
}

/** Options override the provider's limits; a person is asked for the rest. */
async function completeLimits(
  options: ModelLimits,
  described: ProviderModel | undefined,
  listed: ListedModel | null,
  id: string,
): Promise<ModelLimits> {
  const known = {
    contextLength: options.contextLength ?? described?.contextLength ?? listed?.contextLength ?? null,
    maxOutputTokens: options.maxOutputTokens ?? described?.maxOutputTokens ?? null,
  };
  const prompt = openPrompt();
  if (prompt === null) return known;
  try {
    const ask = async (what: string): Promise<number | null> => {
      const answer = await prompt.ask(`How many tokens does ${id} ${what} at most? (empty: not known)`, '');
      return /^[1-9]\d{0,9}$/.test(answer) ? Number(answer) : null;
    };
    return {
      contextLength: known.contextLength ?? (await ask('read')),
      maxOutputTokens: known.maxOutputTokens ?? (await ask('write')),
    };
  } finally {
    prompt.close();
  }
}

/** If the file has the model already, the model gets one more provider. */
function addToFile(
  file: ConfigurationText,
  { model, deployment }: PlannedModel,
  limits: ModelLimits,
): { readonly text: string; readonly what: string } {
  const models = listOf(file.values['models']);
  const at = models.findIndex(({ id }) => id === model.id);
  const place = at === -1 ? ['models'] : ['models', at, 'served_by'];
  if (file.isShared(place))
    throw new StartFault(`"${place.at(-1)}" (line ${file.lineOf(place)}) is shared by an anchor: add to it by hand`);
  if (at === -1) {
    const whole = { ...model, maxOutputTokens: limits.maxOutputTokens };
    return { text: file.addTo(place, (indent) => modelLines(whole, indent)), what: `model "${model.id}"` };
  }
  const line = file.lineOf(['models', at]);
  const deployments = listOf(models[at]?.['served_by']);
  if (deployments.some(({ provider }) => provider === deployment.provider))
    throw new StartFault(
      `the file has "${model.id}" of provider "${deployment.provider}" already (line ${line}); ` +
        '"tollgate prices diff" compares its prices',
    );
  return {
    text: file.addTo(place, (indent) => deploymentLines(deployment, indent)),
    what: `provider "${deployment.provider}" of model "${model.id}"`,
  };
}

function missingOf({ model, deployment }: PlannedModel): readonly string[] {
  return [
    ...(deployment.prices.length === 0
      ? ['no price is known: write one, or only organizations that are not billed can use it']
      : []),
    ...(model.contextLength === null ? ['context_length is not known: write it, or give --context'] : []),
    ...(model.kind === 'text' && model.maxOutputTokens === null
      ? ['max_output_tokens and max_completion_tokens_cap are not known: write them, or give --max-output']
      : []),
  ];
}
