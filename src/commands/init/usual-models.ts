// The models that `tollgate init` writes if none is named: a few of each provider, all of them in the price list.
// Others can be named, or added later.

import type { PresetName } from '../../domain/configuration/presets.ts';

/**
 * The provider's own names. Presets without a row have deployments or models of the operator's own, or models that the
 * price list does not have.
 */
export const USUAL_MODELS: Readonly<Partial<Record<PresetName, readonly string[]>>> = {
  openai: ['gpt-6-sol', 'gpt-6-luna', 'text-embedding-3-small'],
  anthropic: ['claude-opus-5-5', 'claude-sonnet-5', 'claude-haiku-4-5'],
  gemini: ['gemini-3.8-flash', 'gemini-3.1-pro-preview'],
  bedrock: ['global.anthropic.claude-opus-5-5', 'openai.gpt-oss-120b-1:0'],
  openrouter: ['anthropic/claude-opus-5.5', 'deepseek/deepseek-v4-flash'],
  mistral: ['mistral-medium-latest', 'mistral-small-latest', 'mistral-embed'],
  groq: ['openai/gpt-oss-120b', 'llama-3.3-70b-versatile'],
  xai: ['grok-4.6', 'grok-4-1-fast-reasoning'],
  deepseek: ['deepseek-v4-pro', 'deepseek-v4-flash'],
  fireworks: ['deepseek-v4-pro', 'gpt-oss-120b'],
  cerebras: ['gpt-oss-120b'],
  cohere: ['command-a'],
  typesafe: ['jev-1.13.0'],
};
