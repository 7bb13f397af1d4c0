// The table of provider APIs that this gateway speaks, and of the kinds of models that serve them. A new dialect is a
// row here, its file in src/generation/dialects and its row in the route table.

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
  /** Of its requests, below the address of a service; where it has several, a pattern of them. */
  readonly path: string;
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
  /** The tokens that a provider does not report can be counted: COUNTABLE_APIS says where its texts are. */
  readonly isCountable: boolean;
}

/** One upstream API a row; the catalog says which of them a provider serves for a model. */
export const APIS = {
  chat_completions: {
    path: '/v1/chat/completions',
    kind: 'text',
    family: 'openai',
    hasOwnRefusalForm: true,
    isCountable: true,
  },
  responses: { path: '/v1/responses', kind: 'text', family: 'openai', hasOwnRefusalForm: true, isCountable: true },
  messages: { path: '/v1/messages', kind: 'text', family: 'anthropic', hasOwnRefusalForm: true, isCountable: true },
  count_tokens: {
    path: '/v1/messages/count_tokens',
    kind: 'text',
    family: 'anthropic',
    hasOwnRefusalForm: true,
    isCountable: false,
  },
  images: { path: '/v1/images/{operation}', kind: 'image', family: null, hasOwnRefusalForm: true, isCountable: false },
  embeddings: { path: '/v1/embeddings', kind: 'embedding', family: null, hasOwnRefusalForm: true, isCountable: true },
  systemone: { path: '/v1/systemone', kind: 'evaluation', family: null, hasOwnRefusalForm: false, isCountable: false },
} as const satisfies Record<string, ApiRow>;

export type ApiName = keyof typeof APIS;
export const API_NAMES = Object.keys(APIS) as ApiName[];

export type CountableApi = {
  [Name in ApiName]: (typeof APIS)[Name]['isCountable'] extends true ? Name : never;
}[ApiName];

export function isCountable(api: ApiName): api is CountableApi {
  return APIS[api].isCountable;
}
