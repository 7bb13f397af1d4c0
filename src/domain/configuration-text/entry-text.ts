// Writes providers and models as text of a configuration file, with comments for its readers.

import type { PriceWords } from '../list-prices/listed-price.ts';
import type { ApiName, ModelKind } from '../models/apis.ts';
import { commentText, flowText } from './flow-text.ts';

export interface DeploymentText {
  readonly provider: string;
  /** The provider's own name of the model. */
  readonly providerModel: string;
  readonly apis: readonly ApiName[];
  /** One price, or several of which the last valid one counts. Empty: the deployment has no price. */
  readonly prices: readonly PriceWords[];
  /** Where the price is from. */
  readonly source: string | null;
}

export interface ModelText {
  readonly id: string;
  readonly displayName: string | null;
  readonly kind: ModelKind;
  readonly aliases: readonly string[];
  readonly contextLength: number | null;
  readonly maxOutputTokens: number | null;
  readonly deployments: readonly DeploymentText[];
}

export interface ProviderText {
  readonly id: string;
  /** In the terms and the order of the file, without `id`. */
  readonly fields: Readonly<Record<string, unknown>>;
}

const LINE_LENGTH_MAX = 120;

/** The entry with its dash, every line indented by `indent`. */
export function modelLines(model: ModelText, indent: string): readonly string[] {
  const { kind, contextLength, maxOutputTokens } = model;
  const lines = [
    `- id: ${flowText(model.id)}`,
    ...(model.displayName === null ? [] : [`  display_name: ${flowText(model.displayName)}`]),
    ...(kind === 'text' ? [] : [`  kind: ${kind}`]),
    ...(model.aliases.length === 0 ? [] : [`  aliases: ${flowText(model.aliases)}`]),
    ...limitLines(kind, contextLength, maxOutputTokens).map((line) => `  ${line}`),
    '  served_by:',
    ...model.deployments.flatMap((deployment) => deploymentLines(deployment, '    ')),
  ];
  return lines.map((line) => indent + line);
}

function limitLines(kind: ModelKind, contextLength: number | null, maxOutputTokens: number | null): readonly string[] {
  if (kind === 'image') return [];
  const context =
    contextLength === null
      ? ['# context_length: MISSING. Say how many tokens the model reads, or attachments are refused under billing.']
      : [`context_length: ${contextLength}`];
  if (kind !== 'text') return context;
  return [
    ...context,
    ...(maxOutputTokens === null
      ? [
          '# max_output_tokens, max_completion_tokens_cap: MISSING. Say how many tokens the model writes at most, or',
          '# requests of billed organizations that set no limit of their own are refused.',
        ]
      : [`max_output_tokens: ${maxOutputTokens}`, `max_completion_tokens_cap: ${maxOutputTokens}`]),
  ];
}

export function deploymentLines(deployment: DeploymentText, indent: string): readonly string[] {
  const { provider, providerModel, apis, prices, source } = deployment;
  return [
    `- provider: ${flowText(provider)}`,
    `  model: ${flowText(providerModel)}`,
    `  apis: ${flowText(apis)}`,
    ...(source === null ? [] : [`  # ${commentText(source)}`]),
    ...priceLines(prices).map((line) => `  ${line}`),
  ].map((line) => indent + line);
}

function priceLines(prices: readonly PriceWords[]): readonly string[] {
  const [first] = prices;
  if (first === undefined) return [];
  if (prices.length > 1) return ['price:', ...prices.map((price) => `  - ${flowText(price)}`)];
  const line = `price: ${flowText(first)}`;
  if (line.length < LINE_LENGTH_MAX - 12) return [line];
  return ['price:', ...Object.entries(first).map(([name, value]) => `  ${name}: ${flowText(value)}`)];
}

export function providerLines({ id, fields }: ProviderText, indent: string): readonly string[] {
  const whole = `- ${flowText({ id, ...fields })}`;
  if (whole.length < LINE_LENGTH_MAX - indent.length) return [indent + whole];
  return [
    `${indent}- id: ${flowText(id)}`,
    ...Object.entries(fields).map(([name, value]) => `${indent}  ${name}: ${flowText(value)}`),
  ];
}
