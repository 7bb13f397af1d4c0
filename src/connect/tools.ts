// The table of tools that can be connected: which file in a person's home directory has the tool's settings, what is
// written into it, and which steps are left to do by hand.

import { type JsonValue, setInJson } from './json-settings.ts';
import { setInToml } from './toml-settings.ts';

export interface ConnectedGateway {
  /** Without a path. */
  readonly url: string;
  readonly key: string;
  /** The model that the tool begins with. */
  readonly model: string;
  /** All models that the key may use, including `model`. */
  readonly models: readonly ConnectedModel[];
}

export interface ConnectedModel {
  readonly id: string;
  readonly name: string;
  readonly contextLength: number | null;
  readonly maxOutputTokens: number | null;
  /** Empty: the gateway does not list them. */
  readonly apis: readonly string[];
}

export interface SettingsFile {
  /** Relative to the home directory. */
  readonly path: string;
  /** Whether the key is written into the file. */
  readonly hasKey: boolean;
  /** null: the text is no file of that format, or has no place for the settings. */
  readonly merge: (text: string, gateway: ConnectedGateway) => string | null;
}

export interface Tool {
  /** The gateway's API that the tool uses; `--check` uses it, too. */
  readonly api: 'chat_completions' | 'responses' | 'messages';
  /** null: the tool has no file that could be written. */
  readonly file: SettingsFile | null;
  /** The steps to do by hand after writing the file, or instead. */
  readonly steps: (gateway: ConnectedGateway) => readonly string[];
}

/** The variable from which tools read the key if it is not in a file. */
const KEY_VARIABLE = 'TOLLGATE_KEY';
/** Zed derives the name of its variable from the provider's name. */
const ZED_KEY_VARIABLE = 'TOLLGATE_API_KEY';
const CONTEXT_LENGTH_UNKNOWN = 128_000;

export const TOOLS: Readonly<Record<string, Tool>> = {
  'claude-code': {
    api: 'messages',
    file: {
      path: '.claude/settings.json',
      hasKey: true,
      merge: (text, gateway) => setInJson(text, claudeCodeValues(gateway)),
    },
    steps: () => ['start claude; /status shows the base URL'],
  },
  codex: {
    api: 'responses',
    file: { path: '.codex/config.toml', hasKey: false, merge: mergeCodex },
    steps: () => [exportKey(KEY_VARIABLE), 'start codex'],
  },
  opencode: {
    api: 'chat_completions',
    file: {
      path: '.config/opencode/opencode.json',
      hasKey: false,
      merge: (text, gateway) => setInJson(text, opencodeValues(gateway)),
    },
    steps: ({ model }) => [exportKey(KEY_VARIABLE), `start opencode --model tollgate/${model}`],
  },
  cline: {
    api: 'chat_completions',
    file: null,
    steps: ({ url, model }) => [
      `cline auth --provider openai --apikey "$${KEY_VARIABLE}" --modelid ${model} --baseurl ${url}/v1`,
      `in the editor: API Provider "OpenAI Compatible", Base URL ${url}/v1, the key, Model ID ${model}`,
    ],
  },
  zed: {
    api: 'chat_completions',
    file: {
      path: '.config/zed/settings.json',
      hasKey: false,
      merge: (text, gateway) => setInJson(text, zedValues(gateway)),
    },
    steps: () => [`${exportKey(ZED_KEY_VARIABLE)}, or enter the key in Zed: agent: open settings`],
  },
  cursor: {
    api: 'chat_completions',
    file: null,
    steps: ({ url, model }) => [
      'Cursor Settings, Models, API Keys: enter the key as OpenAI API Key',
      `Override OpenAI Base URL: ${url}/v1`,
      `Add custom model: ${model}`,
      "Cursor's own servers make the calls: the address must be reachable from the internet. Tab does not use it.",
    ],
  },
};

function exportKey(name: string): string {
  return `export ${name}=YOUR_KEY (in the profile of your shell)`;
}

function claudeCodeValues({ url, key, model }: ConnectedGateway): JsonValue[] {
  const variables = {
    // Claude Code adds /v1 by itself.
    ANTHROPIC_BASE_URL: url,
    ANTHROPIC_AUTH_TOKEN: key,
    // Claude Code would ask about an Anthropic key in the environment, and prefer it.
    ANTHROPIC_API_KEY: '',
    ANTHROPIC_DEFAULT_OPUS_MODEL: model,
    ANTHROPIC_DEFAULT_SONNET_MODEL: model,
    ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
    CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY: '1',
  };
  return Object.entries(variables).map(([name, value]) => ({ path: ['env', name], value }));
}

function mergeCodex(text: string, { url, model }: ConnectedGateway): string | null {
  return setInToml(
    text,
    { model_provider: 'tollgate', model },
    {
      name: 'model_providers.tollgate',
      values: { name: 'Tollgate', base_url: `${url}/v1`, env_key: KEY_VARIABLE, wire_api: 'responses' },
    },
  );
}

function opencodeValues({ url, models }: ConnectedGateway): JsonValue[] {
  const provider = {
    npm: '@ai-sdk/openai-compatible',
    name: 'Tollgate',
    options: { baseURL: `${url}/v1`, apiKey: `{env:${KEY_VARIABLE}}` },
    models: Object.fromEntries(models.map(({ id, name }) => [id, { name }])),
  };
  return [{ path: ['provider', 'tollgate'], value: provider }];
}

function zedValues({ url, models }: ConnectedGateway): JsonValue[] {
  const available = models.map(({ id, name, contextLength, maxOutputTokens }) => ({
    name: id,
    display_name: name,
    max_tokens: contextLength ?? CONTEXT_LENGTH_UNKNOWN,
    ...(maxOutputTokens === null ? {} : { max_output_tokens: maxOutputTokens }),
  }));
  const value = { api_url: `${url}/v1`, available_models: available };
  return [{ path: ['language_models', 'openai_compatible', 'Tollgate'], value }];
}
