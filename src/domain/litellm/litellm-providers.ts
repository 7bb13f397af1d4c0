// Finds the provider of a deployment in LiteLLM's file, in the terms of our file.

import { expandPreset } from '../configuration/expand-preset.ts';
import { PRESETS, type Preset, type PresetName } from '../configuration/presets.ts';
import type { ApiName } from '../models/apis.ts';
import { type KeyVariables, variablePart } from './key-variables.ts';
import { awsAccount, entraAccount, googleAccount } from './litellm-accounts.ts';
import { type Field, isReference, textOf, withReference } from './litellm-file.ts';

export interface ImportedProvider {
  /** The name from which the provider's id is made. */
  readonly name: string;
  readonly preset: PresetName | null;
  readonly baseUrl: string | null;
  /** The preset by which its listed prices are found; null: they are found by its address. */
  readonly pricedAs: PresetName | null;
  /** The provider's fields in the terms of our file, without `id`. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly providerModel: string;
  /** The APIs that serve it, if not those of its preset. */
  readonly apis?: readonly ApiName[];
  /** The names of the parameters that were taken over. */
  readonly taken: readonly string[];
  /** What the user has to know. */
  readonly notes: readonly string[];
}

export type FoundProvider = ImportedProvider | { readonly why: string };

const PREFIXES: Readonly<Record<string, PresetName>> = {
  openai: 'openai',
  anthropic: 'anthropic',
  azure: 'azure',
  gemini: 'gemini',
  bedrock: 'bedrock',
  openrouter: 'openrouter',
  mistral: 'mistral',
  groq: 'groq',
  xai: 'xai',
  deepseek: 'deepseek',
  together_ai: 'together',
  fireworks_ai: 'fireworks',
  cerebras: 'cerebras',
  cohere: 'cohere',
  cohere_chat: 'cohere',
  perplexity: 'perplexity',
  ollama: 'ollama',
  ollama_chat: 'ollama',
  lm_studio: 'lmstudio',
  hosted_vllm: 'vllm',
  vllm: 'vllm',
};
/** Models that LiteLLM accepts without a provider prefix. */
const BARE: readonly (readonly [RegExp, string])[] = [
  [/^(gpt-|chatgpt-|o\d|text-embedding-|dall-e|ft:)/, 'openai'],
  [/^claude-/, 'anthropic'],
  [/^command-/, 'cohere_chat'],
];
/** Providers whose API is none of ours, at whatever address. */
const ELSEWHERE =
  /^(vertex_ai_|sagemaker|text-completion-|auto_router|huggingface|replicate|watsonx|azure_ai|databricks)/;

export function findProvider(params: Field, keys: KeyVariables): FoundProvider {
  const whole = textOf(params, 'model');
  if (whole === null) return { why: 'it names no model' };
  const named = textOf(params, 'custom_llm_provider');
  const slash = whole.indexOf('/');
  const bare = BARE.find(([pattern]) => pattern.test(whole))?.[1];
  const hasPrefix = slash > 0 && (named === null || whole.startsWith(`${named}/`));
  const prefix = named ?? (hasPrefix ? whole.slice(0, slash) : (bare ?? ''));
  const model = hasPrefix ? whole.slice(slash + 1) : whole;
  if (whole.includes('*')) return { why: 'wildcards: each model has an entry of its own ("tollgate models add")' };
  if (model === '') return { why: 'it names no model' };
  const base = textOf(params, 'api_base') ?? textOf(params, 'base_url');
  if (prefix === 'azure_ai' && model.startsWith('claude-')) return azureClaude({ params, keys }, model, base);
  const elsewhere = ELSEWHERE.exec(prefix)?.[0];
  if (elsewhere !== undefined) return { why: whyNot(elsewhere) };
  const preset = Object.hasOwn(PREFIXES, prefix) ? (PREFIXES[prefix] ?? null) : null;
  if (prefix === 'vertex_ai') return vertex({ params, keys }, model);
  if (preset === 'azure') return azure({ params, keys }, model, base);
  if (preset === 'bedrock') return bedrock({ params, keys }, model);
  if (base !== null && (preset === null || preset === 'openai'))
    return writtenOut({ params, keys }, { prefix, model, base });
  if (preset === null)
    return {
      why: prefix === '' ? 'its model has no provider in front' : `"${prefix}" is no known provider: give its api_base`,
    };
  const found = ofPreset({ params, keys }, { name: preset, model, base });
  return preset === 'perplexity' && model.startsWith(AGENT_PRESET) ? agentPreset(found, model) : found;
}

function whyNot(prefix: string): string {
  if (prefix === 'auto_router') return 'a routing policy chooses among models: docs/routing.md';
  return `the API of ${prefix.replace(/[-_]$/, '')} is not relayed`;
}

interface Entry {
  readonly params: Field;
  readonly keys: KeyVariables;
}

function ofPreset(
  entry: Entry,
  { name, model, base }: { readonly name: PresetName; readonly model: string; readonly base: string | null },
): ImportedProvider {
  const preset: Preset = PRESETS[name];
  const isKeyless = preset.provider['auth'] === 'none';
  const key = isKeyless ? { fields: {}, notes: [] } : keyOf(entry, preset.keyVariable ?? 'API_KEY', 'needed');
  return {
    name,
    preset: name,
    pricedAs: name,
    baseUrl: base === null ? null : withReference(base),
    fields: {
      preset: name,
      ...(base === null ? {} : { base_url: name === 'gemini' ? geminiAddress(base) : withReference(trimmed(base)) }),
      ...key.fields,
    },
    providerModel: model,
    taken: ['model', 'custom_llm_provider', 'api_base', 'base_url', 'api_key', 'api_version'],
    notes: [...key.notes, ...variantNotes(name, model)],
  };
}

/** LiteLLM calls Gemini's own API, in some versions at the address of a model; ours is behind the same and /openai. */
function geminiAddress(base: string): string {
  return `${withReference(trimmed(base).replace(/\/models\/[^/]+$/, ''))}/openai`;
}

/** LiteLLM's name of a preset of Perplexity's, which a request names as `preset` instead of a model. */
const AGENT_PRESET = 'preset/';

function agentPreset(found: ImportedProvider, model: string): ImportedProvider {
  return {
    ...found,
    name: 'perplexity-presets',
    fields: { ...found.fields, apis: { responses: { instead_of_model: { preset: '{model}' } } } },
    providerModel: model.slice(AGENT_PRESET.length),
    apis: ['responses'],
    notes: [
      ...found.notes,
      `"${model}" is a preset of Perplexity's: its models and tools may cost otherwise tomorrow, so look at its price`,
    ],
  };
}

/** OpenRouter's `:free`, `:nitro` and `~vendor/model-latest`. */
const VARIANT = /:(?:free|nitro|floor|online|thinking|extended|exacto)$|^~/;

function variantNotes(name: PresetName, model: string): readonly string[] {
  if (name !== 'openrouter' || !VARIANT.test(model)) return [];
  return [`"${model}" is a variant that OpenRouter chooses by: it may cost otherwise tomorrow, so look at its price`];
}

/** A provider at any address that has chat completions. */
function writtenOut(
  entry: Entry,
  { prefix, model, base }: { readonly prefix: string; readonly model: string; readonly base: string },
): ImportedProvider {
  const host = URL.canParse(base) ? new URL(base).hostname : '';
  const name = prefix === 'openai' || prefix === '' ? nameOfHost(host) : prefix;
  const key = keyOf(entry, `${variablePart(name)}_API_KEY`, 'optional');
  const address = withReference(trimmed(base));
  return {
    name,
    preset: null,
    pricedAs: null,
    baseUrl: address,
    fields: { base_url: address, ...key.fields },
    providerModel: model,
    taken: ['model', 'custom_llm_provider', 'api_base', 'base_url', 'api_key'],
    notes: key.notes,
  };
}

const AZURE_RESOURCE = /^https:\/\/([a-z0-9-]+)\.openai\.azure\.com$/i;
/** How the addresses that Azure shows may end; both presets add what they need of it. */
const AZURE_ENDING = /\/openai(?:\/v1)?$/;
/** API versions with a date need the deployment in the path; others do not. */
const DATED = /^\d{4}-\d{2}-\d{2}/;

function azure(entry: Entry, model: string, written: string | null): FoundProvider {
  if (written === null) return { why: 'its api_base is missing' };
  const base = isReference(written) ? written : trimmed(written).replace(AZURE_ENDING, '');
  const version = textOf(entry.params, 'api_version');
  const isClassic = version === null ? isReference(base) : DATED.test(version) || isReference(version);
  const name = isClassic ? 'azure-classic' : 'azure';
  const account = entraAccount(entry);
  const key = account ?? keyOf(entry, 'AZURE_API_KEY', 'needed');
  const resource = AZURE_RESOURCE.exec(base)?.[1]?.toLowerCase();
  const versionText = version === null ? null : withReference(version);
  const common = {
    name: resource === undefined ? 'azure' : `azure-${resource}`,
    providerModel: model,
    pricedAs: name,
    taken: ['model', 'custom_llm_provider', 'api_base', 'base_url', 'api_version', ...(account?.taken ?? ['api_key'])],
    notes: key.notes,
  } as const;
  if (resource !== undefined) {
    const values = { resource, ...(isClassic && versionText !== null ? { api_version: versionText } : {}) };
    return { ...common, preset: name, baseUrl: null, fields: { preset: name, with: values, ...key.fields } };
  }
  // The address is not a resource's, so the preset's settings are written out for this address.
  const expanded = expandPreset(name, { resource: 'x' });
  const { base_url: usual, query, auth, ...fields } = (expanded.ok ? expanded.provider : {}) as Record<string, unknown>;
  const path = new URL(String(usual)).pathname.replace(/^\/$/, '');
  const ownQuery = query !== undefined && versionText !== null ? { 'api-version': versionText } : query;
  return {
    ...common,
    preset: null,
    baseUrl: withReference(base),
    fields: {
      base_url: withReference(base) + path,
      // A token is sent as a bearer token, which is the default.
      ...(account === null ? { auth } : {}),
      ...fields,
      ...(ownQuery === undefined ? {} : { query: ownQuery }),
      ...key.fields,
    },
    notes: key.notes,
  };
}

const CLAUDE_RESOURCE = /^https:\/\/([a-z0-9-]+)\.services\.ai\.azure\.com(?:\/anthropic(?:\/v1)?)?$/i;

/** Claude on Azure, at an address with or without the steps that LiteLLM adds where they are missing. */
function azureClaude(entry: Entry, model: string, written: string | null): FoundProvider {
  if (written === null) return { why: 'its api_base is missing' };
  const base = trimmed(written).replace(/\/messages$/, '');
  const resource = CLAUDE_RESOURCE.exec(base)?.[1]?.toLowerCase();
  const account = entraAccount(entry);
  const key = account ?? keyOf(entry, 'AZURE_AI_API_KEY', 'needed');
  const address =
    resource === undefined
      ? {
          base_url: withReference(base),
          // A token is sent as a bearer token, which is the default.
          ...(account === null ? { auth: 'x-api-key' } : {}),
          // Neither path is doubled behind a base_url that has its beginning.
          apis: { messages: { path: '/anthropic/v1/{path}' } },
          verify: { path: '/anthropic/v1/models' },
        }
      : { preset: 'azure-anthropic', with: { resource } };
  return {
    name: 'azure-anthropic',
    preset: resource === undefined ? null : 'azure-anthropic',
    pricedAs: 'azure-anthropic',
    baseUrl: resource === undefined ? withReference(base) : null,
    fields: { ...address, ...key.fields },
    providerModel: model,
    apis: ['messages'],
    taken: ['model', 'custom_llm_provider', 'api_base', 'base_url', 'api_version', ...(account?.taken ?? ['api_key'])],
    notes: key.notes,
  };
}

const BEDROCK_ROUTE = /^(?:converse|converse_like|invoke|openai)\//;
const REGION = /^([a-z]{2}(?:-[a-z]+)+-\d)\//;

function bedrock(entry: Entry, model: string): FoundProvider {
  const plain = model.replace(BEDROCK_ROUTE, '');
  const [, inPath] = REGION.exec(plain) ?? [];
  const region = inPath ?? withReference(textOf(entry.params, 'aws_region_name') ?? 'os.environ/AWS_REGION_NAME');
  const account = awsAccount(entry, region);
  const key = account ?? keyOf(entry, 'AWS_BEARER_TOKEN_BEDROCK', 'needed');
  return {
    name: inPath === undefined ? 'bedrock' : `bedrock-${inPath}`,
    preset: 'bedrock',
    pricedAs: 'bedrock',
    baseUrl: null,
    fields: { preset: 'bedrock', with: { region }, ...key.fields },
    providerModel: plain.replace(REGION, ''),
    taken: ['model', 'custom_llm_provider', 'aws_region_name', ...(account?.taken ?? ['api_key'])],
    notes: key.notes,
  };
}

function vertex(entry: Entry, model: string): ImportedProvider {
  const [project, region] = ['vertex_project', 'vertex_location'].map((name) => textOf(entry.params, name));
  const account = googleAccount(entry);
  const isClaude = model.startsWith('claude-');
  const name = isClaude ? 'vertex-anthropic' : 'vertex';
  const values = {
    project: withReference(project ?? 'os.environ/VERTEXAI_PROJECT'),
    ...(region == null ? {} : { region: withReference(region) }),
  };
  return {
    name,
    preset: name,
    pricedAs: name,
    baseUrl: null,
    fields: { preset: name, with: values, ...account.fields },
    // Vertex needs the publisher before the model's name; LiteLLM assumes Google if there is none.
    providerModel: isClaude || model.includes('/') ? model : `google/${model}`,
    taken: ['model', 'custom_llm_provider', 'vertex_project', 'vertex_location', ...account.taken],
    notes: [
      ...account.notes,
      ...(region == null ? ['no vertex_location: it is called at "global", where LiteLLM takes a region'] : []),
    ],
  };
}

/** A secret in LiteLLM's file is not copied into ours: the result refers to a variable for it. */
function keyOf(
  { params, keys }: Entry,
  usual: string,
  key: 'needed' | 'optional',
): { readonly fields: Readonly<Record<string, string>>; readonly notes: readonly string[] } {
  const written = textOf(params, 'api_key');
  if (written !== null && isReference(written)) return { fields: { api_key: withReference(written) }, notes: [] };
  if (written !== null) {
    const variable = keys.variableOf(usual, written);
    return { fields: { api_key: `\${${variable}}` }, notes: [`its key stands in the file: put it into ${variable}`] };
  }
  return key === 'needed'
    ? { fields: { api_key: `\${${keys.usualOf(usual)}}` }, notes: [] }
    : { fields: { auth: 'none' }, notes: [] };
}

function trimmed(address: string): string {
  return address.replace(/\/+$/, '');
}

/** llm.acme.test becomes "acme"; an IP address becomes "local". */
function nameOfHost(host: string): string {
  if (host === '' || /^[\d.:[\]]+$/.test(host) || host === 'localhost') return 'local';
  return host.split('.').at(-2) ?? host;
}
