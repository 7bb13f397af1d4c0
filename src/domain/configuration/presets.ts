// The providers that are known by name, each as a row of data in the terms of the configuration file. A preset means
// exactly the same as its settings written out, so a provider that is not here needs no code.

import type { ApiName } from '../models/apis.ts';

/** A parameter that `with` sets; a preset's texts refer to it as `{name}`. */
interface Parameter {
  /** Absent: `with` must set it. */
  readonly default?: string;
}

/** A parameter that is derived from another one. */
interface Derived {
  readonly from: string;
  /** Its value for each value of the other parameter. */
  readonly is: Readonly<Record<string, string>>;
  readonly otherwise: string;
}

export interface Preset {
  /** The APIs that this provider has. */
  readonly serves: readonly ApiName[];
  /**
   * The environment variable from which the provider's own tools read the key; null: it needs none, or takes a token.
   */
  readonly keyVariable: string | null;
  /** The kind of token that it takes instead of a key. */
  readonly token?: 'google';
  readonly parameters?: Readonly<Record<string, Parameter>>;
  readonly derived?: Readonly<Record<string, Derived>>;
  /** The provider, without its id and key. */
  readonly provider: { readonly base_url: string } & Readonly<Record<string, unknown>>;
}

const BEHIND_BASE = { path: '/{path}' };
/** For providers with OpenAI's and Anthropic's APIs under different prefixes. */
const OPENAI_PREFIXED = { path: '/openai/v1/{path}' };
const ANTHROPIC_PREFIXED = { path: '/anthropic/v1/{path}' };
/** The addresses of Google's regions; `us` and `eu` are multi-regions with addresses of their own form. */
const VERTEX_HOST = {
  from: 'region',
  is: {
    global: 'aiplatform.googleapis.com',
    us: 'aiplatform.us.rep.googleapis.com',
    eu: 'aiplatform.eu.rep.googleapis.com',
  },
  otherwise: '{region}-aiplatform.googleapis.com',
};
const VERTEX_ANTHROPIC_VERSION = 'vertex-2023-10-16';
const AZURE_DEPLOYMENT = { path: '/openai/deployments/{model}/{path}' };

function local(port: number, serves: readonly ApiName[]): Preset {
  return {
    serves,
    keyVariable: null,
    parameters: { address: { default: `127.0.0.1:${port}` } },
    provider: { base_url: 'http://{address}/v1', auth: 'none' },
  };
}

export const PRESETS = {
  openai: {
    serves: ['chat_completions', 'responses', 'images', 'embeddings'],
    keyVariable: 'OPENAI_API_KEY',
    parameters: { region: { default: '' } },
    derived: { host: { from: 'region', is: { '': 'api.openai.com' }, otherwise: '{region}.api.openai.com' } },
    provider: { base_url: 'https://{host}/v1' },
  },
  anthropic: {
    serves: ['messages', 'count_tokens'],
    keyVariable: 'ANTHROPIC_API_KEY',
    provider: { base_url: 'https://api.anthropic.com/v1', auth: 'x-api-key' },
  },
  azure: {
    serves: ['chat_completions', 'responses', 'images', 'embeddings'],
    keyVariable: 'AZURE_OPENAI_API_KEY',
    parameters: { resource: {} },
    provider: { base_url: 'https://{resource}.openai.azure.com/openai/v1', auth: { header: 'api-key' } },
  },
  'azure-classic': {
    serves: ['chat_completions', 'images', 'embeddings'],
    keyVariable: 'AZURE_OPENAI_API_KEY',
    parameters: { resource: {}, api_version: { default: '2024-10-21' } },
    provider: {
      base_url: 'https://{resource}.openai.azure.com',
      auth: { header: 'api-key' },
      query: { 'api-version': '{api_version}' },
      apis: { chat_completions: AZURE_DEPLOYMENT, images: AZURE_DEPLOYMENT, embeddings: AZURE_DEPLOYMENT },
      verify: { path: '/openai/models' },
    },
  },
  'azure-anthropic': {
    serves: ['messages'],
    keyVariable: 'AZURE_OPENAI_API_KEY',
    parameters: { resource: {} },
    provider: { base_url: 'https://{resource}.services.ai.azure.com/anthropic/v1', auth: 'x-api-key' },
  },
  gemini: {
    serves: ['chat_completions', 'images', 'embeddings'],
    keyVariable: 'GEMINI_API_KEY',
    provider: {
      base_url: 'https://generativelanguage.googleapis.com/v1beta/openai',
      apis: { chat_completions: BEHIND_BASE, images: BEHIND_BASE, embeddings: BEHIND_BASE },
      verify: { path: '/models' },
    },
  },
  vertex: {
    serves: ['chat_completions'],
    keyVariable: null,
    token: 'google',
    parameters: { project: {}, region: { default: 'global' } },
    derived: { host: VERTEX_HOST },
    provider: {
      base_url: 'https://{host}/v1/projects/{project}/locations/{region}/endpoints/openapi',
      apis: { chat_completions: BEHIND_BASE },
      verify: 'token',
    },
  },
  'vertex-anthropic': {
    serves: ['messages', 'count_tokens'],
    keyVariable: null,
    token: 'google',
    parameters: { project: {}, region: { default: 'global' } },
    derived: { host: VERTEX_HOST },
    provider: {
      base_url: 'https://{host}/v1/projects/{project}/locations/{region}/publishers/anthropic/models',
      drop_headers: ['anthropic-version'],
      apis: {
        messages: {
          path: '/{model}:rawPredict',
          path_stream: '/{model}:streamRawPredict',
          model_in: 'path',
          instead_of_model: { anthropic_version: VERTEX_ANTHROPIC_VERSION },
        },
        count_tokens: {
          path: '/count-tokens:rawPredict',
          instead_of_model: { model: '{model}', anthropic_version: VERTEX_ANTHROPIC_VERSION },
        },
      },
      verify: 'token',
    },
  },
  bedrock: {
    serves: ['chat_completions', 'responses', 'messages'],
    keyVariable: 'AWS_BEARER_TOKEN_BEDROCK',
    parameters: { region: {} },
    provider: {
      base_url: 'https://bedrock-runtime.{region}.amazonaws.com',
      apis: { chat_completions: OPENAI_PREFIXED, responses: OPENAI_PREFIXED, messages: ANTHROPIC_PREFIXED },
      verify: { path: '/openai/v1/models' },
    },
  },
  'bedrock-mantle': {
    serves: ['chat_completions', 'responses', 'messages'],
    keyVariable: 'AWS_BEARER_TOKEN_BEDROCK',
    parameters: { region: {} },
    provider: {
      base_url: 'https://bedrock-mantle.{region}.api.aws',
      apis: { messages: ANTHROPIC_PREFIXED },
    },
  },
  openrouter: {
    serves: ['chat_completions', 'responses', 'messages', 'systemone'],
    keyVariable: 'OPENROUTER_API_KEY',
    // OpenRouter's list of models is public, so it proves no key. With its /v1 the path is right also where a base_url
    // has none, as in OpenRouter's instructions for Claude Code.
    provider: { base_url: 'https://openrouter.ai/api/v1', verify: { path: '/v1/key' } },
  },
  mistral: {
    serves: ['chat_completions', 'embeddings'],
    keyVariable: 'MISTRAL_API_KEY',
    provider: { base_url: 'https://api.mistral.ai/v1' },
  },
  groq: {
    serves: ['chat_completions', 'responses'],
    keyVariable: 'GROQ_API_KEY',
    provider: { base_url: 'https://api.groq.com/openai/v1' },
  },
  xai: {
    serves: ['chat_completions', 'responses', 'images'],
    keyVariable: 'XAI_API_KEY',
    parameters: { region: { default: '' } },
    derived: { host: { from: 'region', is: { '': 'api.x.ai' }, otherwise: '{region}.api.x.ai' } },
    provider: { base_url: 'https://{host}/v1' },
  },
  deepseek: {
    serves: ['chat_completions', 'messages'],
    keyVariable: 'DEEPSEEK_API_KEY',
    provider: {
      base_url: 'https://api.deepseek.com',
      ignores: ['max_completion_tokens'],
      apis: { messages: ANTHROPIC_PREFIXED },
    },
  },
  together: {
    serves: ['chat_completions', 'images', 'embeddings'],
    keyVariable: 'TOGETHER_API_KEY',
    provider: { base_url: 'https://api.together.ai/v1' },
  },
  fireworks: {
    serves: ['chat_completions', 'messages'],
    keyVariable: 'FIREWORKS_API_KEY',
    provider: { base_url: 'https://api.fireworks.ai/inference/v1' },
  },
  cerebras: {
    serves: ['chat_completions'],
    keyVariable: 'CEREBRAS_API_KEY',
    provider: { base_url: 'https://api.cerebras.ai/v1' },
  },
  cohere: {
    serves: ['chat_completions', 'embeddings'],
    keyVariable: 'COHERE_API_KEY',
    provider: { base_url: 'https://api.cohere.ai/compatibility/v1' },
  },
  perplexity: {
    serves: ['chat_completions', 'responses', 'messages'],
    keyVariable: 'PERPLEXITY_API_KEY',
    provider: {
      base_url: 'https://api.perplexity.ai',
      apis: { chat_completions: BEHIND_BASE, messages: { path: '/router/v1/{path}' } },
    },
  },
  ollama: local(11_434, ['chat_completions', 'responses', 'messages', 'embeddings']),
  lmstudio: local(1_234, ['chat_completions', 'responses', 'messages', 'embeddings']),
  vllm: local(8_000, ['chat_completions', 'responses', 'messages', 'embeddings']),
  llamacpp: local(8_080, ['chat_completions', 'responses', 'messages', 'embeddings']),
  typesafe: {
    serves: ['systemone'],
    keyVariable: 'TYPESAFE_API_KEY',
    provider: { base_url: 'https://api.typesafe.ai/v1' },
  },
} as const satisfies Readonly<Record<string, Preset>>;

export type PresetName = keyof typeof PRESETS;
export const PRESET_NAMES = Object.keys(PRESETS) as PresetName[];
