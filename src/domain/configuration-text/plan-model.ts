// Plans a model's entry in a configuration file, from the list of prices and from what its provider reports about it.

import { PRESETS, type Preset, type PresetName } from '../configuration/presets.ts';
import type { ListedModel } from '../list-prices/listed-model.ts';
import { type PriceWords, writeListedPrices } from '../list-prices/listed-price.ts';
import { APIS, type ApiName, type ModelKind } from '../models/apis.ts';
import type { DeploymentText, ModelText } from './entry-text.ts';

/** A provider in the file. */
export interface PlannedProvider {
  readonly id: string;
  readonly preset: PresetName | null;
}

export interface ModelLimits {
  readonly contextLength: number | null;
  readonly maxOutputTokens: number | null;
}

export interface ModelParams {
  readonly id: string;
  readonly displayName?: string | null;
  readonly provider: PlannedProvider;
  readonly providerModel: string;
  /** Absent: those that its provider has for such a model. */
  readonly apis?: readonly ApiName[] | undefined;
  /** null: the list does not have it. */
  readonly listed: ListedModel | null;
  readonly limits: ModelLimits;
  /** The name of the list, with its version and date. */
  readonly source: string;
  readonly nowMs: number;
}

export interface PlannedModel {
  readonly model: ModelText;
  readonly deployment: DeploymentText;
  readonly notes: readonly string[];
  /** Those of the notes that say that the provider has ended the model, or will. */
  readonly endNotes: readonly string[];
}

/**
 * Matches names of models that make or read something other than text, on APIs that are not served or priced by tokens.
 */
const NO_TEXT = /(?:^|[/.-])(?:gpt-image|dall-e|imagen|tts|whisper|transcribe|realtime|moderation|sora|veo|rerank)/i;

export function isForText(model: string): boolean {
  return !NO_TEXT.test(model);
}

/** A provider without a preset is assumed to have the APIs that nearly all providers have. */
const USUAL_APIS: readonly ApiName[] = ['chat_completions', 'embeddings'];
/** The only agent with Perplexity's own name; the others have the name of another company. */
export const PERPLEXITYS_OWN_AGENT = 'perplexity/sonar';
const SONAR_ENDED =
  'Perplexity announced the end of its chat completions for 27 September 2026; its agents have names with a company, ' +
  `such as ${PERPLEXITYS_OWN_AGENT}`;
const FREE: readonly PriceWords[] = [{ input: '0', output: '0' }];

export function planModel(params: ModelParams): PlannedModel {
  const { id, provider, providerModel, listed, limits, nowMs } = params;
  const serves = servedBy(provider.preset);
  const isFree = isKeyless(provider.preset);
  const written = listed === null ? null : writeListedPrices(listed, nowMs);
  const kind = kindOf(providerModel, serves, written?.kind ?? null);
  const usualApis = params.apis ?? apisOf(provider.preset, providerModel, serves);
  const apis = usualApis.filter((api) => APIS[api].kind === kind);
  const ofTokens = written?.prices ?? (isFree ? FREE : []);
  const prices = kind === 'text' ? ofTokens : ofTokens.map(withoutOutput);
  const deployment: DeploymentText = {
    provider: provider.id,
    providerModel,
    apis,
    prices,
    source: sourceText(params, written !== null, isFree),
  };
  const endNotes = [
    ...(listed?.isDeprecated === true ? [`${listed.id} is deprecated, the list says`] : []),
    ...(provider.preset === 'perplexity' && apis.includes('chat_completions') ? [SONAR_ENDED] : []),
  ];
  return {
    model: {
      id,
      displayName: params.displayName ?? listed?.name ?? null,
      kind,
      aliases: [],
      contextLength: limits.contextLength ?? listed?.contextLength ?? null,
      maxOutputTokens: limits.maxOutputTokens,
      deployments: [deployment],
    },
    deployment,
    notes: [
      ...(written?.notes ?? []),
      ...endNotes,
      ...(listed !== null && written === null ? [`${listed.id} is not priced by tokens, so it has no price here`] : []),
      ...(apis.length === 0 ? [`provider "${provider.id}" has no API for a model of kind ${kind}`] : []),
    ],
    endNotes,
  };
}

/** Vectors and typed answers are not priced by token. */
function withoutOutput(price: PriceWords): PriceWords {
  const { output: _, ...ofInput } = price;
  return ofInput;
}

function sourceText({ listed, source, providerModel }: ModelParams, isPriced: boolean, isFree: boolean): string {
  if (isPriced && listed !== null)
    return `Prices: ${source}${listed.id === providerModel ? '' : `, where it is ${listed.id}`}.`;
  if (isFree) return 'It runs on machines of your own, so its tokens cost nothing.';
  return `price: MISSING, also in ${source}. Without one it serves only organizations that are not billed.`;
}

function servedBy(preset: PresetName | null): readonly ApiName[] {
  return preset === null ? USUAL_APIS : PRESETS[preset].serves;
}

/** Whether the provider runs on the operator's own machines, so that nobody is paid for tokens. */
export function isKeyless(preset: PresetName | null): boolean {
  const found: Preset | null = preset === null ? null : PRESETS[preset];
  return found !== null && found.keyVariable === null && found.provider['auth'] === 'none';
}

function kindOf(model: string, serves: readonly ApiName[], listed: ModelKind | null): ModelKind {
  if (serves.every((api) => api === 'systemone')) return 'evaluation';
  if (serves.includes('embeddings') && /embed/i.test(model)) return 'embedding';
  return listed ?? 'text';
}

/** If a provider has models of several companies, not every API serves all of them. */
function apisOf(preset: PresetName | null, model: string, serves: readonly ApiName[]): readonly ApiName[] {
  if (preset === 'bedrock' || preset === 'bedrock-mantle') {
    if (/(^|\.)anthropic\./.test(model)) return ['messages'];
    return /(^|\.)openai\./.test(model) ? ['chat_completions', 'responses'] : ['chat_completions'];
  }
  if (preset === 'perplexity')
    return isPerplexityAgent(preset, model) ? ['responses', 'messages'] : ['chat_completions'];
  return serves;
}

/**
 * Whether Perplexity serves it as an agent: these are named with a company, such as perplexity/sonar. Its other models
 * are those of its chat completions, which were to end on 27 September 2026, and the list of prices has only them.
 */
export function isPerplexityAgent(preset: PresetName | null, model: string): boolean {
  return preset === 'perplexity' && model.includes('/');
}
