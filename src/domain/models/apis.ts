// The table of provider APIs that this gateway speaks, and of the kinds of models that serve them: what every process
// knows of an API. The dialects (src/generation/dialects) read its requests and replies.

import { chatCompletionsText } from '../usage/chat-completions-text.ts';
import type { CountableDialect } from '../usage/countable-text.ts';
import { inputTexts } from '../usage/input-texts.ts';
import { messagesText } from '../usage/messages-text.ts';
import { responsesText } from '../usage/responses-text.ts';

interface ModelKindRow {
  /** Without these prices the usage of such a model cannot be rated. */
  readonly neededPrices: readonly ('input' | 'output' | 'image')[];
  /** Output tokens cost nothing, whatever price the catalog has for them (spec 2.3, 8). */
  readonly outputIsFree: boolean;
}

export const MODEL_KINDS = {
  text: { neededPrices: ['input', 'output'], outputIsFree: false },
  image: { neededPrices: ['image'], outputIsFree: false },
  embedding: { neededPrices: ['input'], outputIsFree: true },
  evaluation: { neededPrices: ['input'], outputIsFree: true },
} as const satisfies Record<string, ModelKindRow>;

export type ModelKind = keyof typeof MODEL_KINDS;
export const MODEL_KIND_NAMES = Object.keys(MODEL_KINDS) as ModelKind[];

interface ApiRow {
  /** The path of the API's requests at a service's address; a pattern if there are several paths. */
  readonly path: string;
  /**
   * True if requests use more than one path, such as image edits and operations on saved responses. A path that the
   * configuration puts in its place must then contain `{path}`.
   */
  readonly hasSeveralPaths: boolean;
  /** The kind of models that can be served on this API. */
  readonly kind: ModelKind;
  /**
   * The company whose format this is, where several companies' models are served on it: auto routing can prefer a
   * model's native API.
   */
  readonly family: 'openai' | 'anthropic' | null;
  /**
   * Whether refusals of credit and limits can be written in the API's own error format instead of the flat one (spec
   * 7.4).
   */
  readonly hasOwnRefusalForm: boolean;
  /**
   * Finds the API's texts, so that tokens which a provider does not report can be counted; null: they cannot be
   * counted.
   */
  readonly countable: CountableDialect | null;
}

/** One upstream API a row; the catalog says which of them a provider serves for a model. */
export const APIS = {
  chat_completions: {
    path: '/v1/chat/completions',
    hasSeveralPaths: false,
    kind: 'text',
    family: 'openai',
    hasOwnRefusalForm: true,
    countable: chatCompletionsText,
  },
  responses: {
    path: '/v1/responses',
    hasSeveralPaths: true,
    kind: 'text',
    family: 'openai',
    hasOwnRefusalForm: true,
    countable: responsesText,
  },
  messages: {
    path: '/v1/messages',
    hasSeveralPaths: false,
    kind: 'text',
    family: 'anthropic',
    hasOwnRefusalForm: true,
    countable: messagesText,
  },
  count_tokens: {
    path: '/v1/messages/count_tokens',
    hasSeveralPaths: false,
    kind: 'text',
    family: 'anthropic',
    hasOwnRefusalForm: true,
    countable: null,
  },
  images: {
    path: '/v1/images/{operation}',
    hasSeveralPaths: true,
    kind: 'image',
    family: null,
    hasOwnRefusalForm: true,
    countable: null,
  },
  embeddings: {
    path: '/v1/embeddings',
    hasSeveralPaths: false,
    kind: 'embedding',
    family: null,
    hasOwnRefusalForm: true,
    countable: inputTexts('input'),
  },
  systemone: {
    path: '/v1/systemone',
    hasSeveralPaths: false,
    kind: 'evaluation',
    family: null,
    hasOwnRefusalForm: false,
    countable: null,
  },
} as const satisfies Record<string, ApiRow>;

export type ApiName = keyof typeof APIS;
export const API_NAMES = Object.keys(APIS) as ApiName[];

export type CountableApi = {
  [Name in ApiName]: (typeof APIS)[Name]['countable'] extends null ? never : Name;
}[ApiName];

/** The APIs that text models are served on: their requests may name the virtual model (spec 4.11). */
export type RoutedApi = {
  [Name in ApiName]: (typeof APIS)[Name]['kind'] extends 'text' ? Name : never;
}[ApiName];

export function isRoutedApi(api: ApiName): api is RoutedApi {
  return APIS[api].kind === 'text';
}

export const ROUTED_APIS: readonly RoutedApi[] = API_NAMES.filter(isRoutedApi);

export function isCountable(api: ApiName): api is CountableApi {
  return APIS[api].countable !== null;
}
