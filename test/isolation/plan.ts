// Draws one exchange from the seed and its number: the bytes of its request, what its providers do with it, and what
// its client does.

import { SeededRandom } from '../simulation/seeded-random.ts';
import { writeForm } from '../support/multipart-forms.ts';
import { filled, markOf } from './marks.ts';
import { type GuardedEnd, type Planted, plantedIn } from './planted.ts';
import { GUARDED_TENANTS, hasOwnKeys, hasPolicy, MODELS, TENANTS, warmKey } from './world.ts';

/** What a provider does with a call. A stalled provider reads on when some dozens of other exchanges are over. */
export const PROVIDER_STEPS = [
  'serves',
  'refuses the whole request',
  'refuses before it has read the body',
  'sends the head of a 503 and stalls',
  'sends a whole 503 and stalls',
  'refuses and closes',
  'asks for a pause',
  'does not know its credential',
  'closes a kept connection',
  'resets without an answer',
  'answers before the body is whole',
  'answers before the body is whole and stalls',
  'cuts its reply in the middle',
  'stalls within its reply',
  'sends a second reply that nobody asked for',
  'sends an interim reply',
  'reads slowly',
] as const;
export type ProviderStep = (typeof PROVIDER_STEPS)[number];

/** What a client does besides sending its request and reading the reply. */
export const CLIENT_STEPS = [
  'stays',
  'sends its body slowly',
  'leaves within its head',
  'leaves within its body',
  'leaves with the last byte of its request',
  'leaves before the first byte',
  'leaves within the reply',
  'leaves at the last byte',
  'reads slowly',
  'pipelines',
] as const;
export type ClientStep = (typeof CLIENT_STEPS)[number];

export type ExchangeKind =
  | 'chat'
  | 'responses'
  | 'messages'
  | 'count'
  | 'image'
  | 'edit'
  | 'systemone'
  | 'auto'
  | 'saved'
  | 'continued';

export interface SentReply {
  readonly status: number;
  /** The bytes of the body that the client must get. */
  readonly content: Buffer;
  /** The provider has sent the whole reply, and it was a good one. */
  whole: boolean;
  /** The client must get only the beginning, or nothing. */
  readonly isBlocked: boolean;
}

/** One request of one tenant. It is kept until no byte of it can be seen any more. */
export interface Exchange {
  readonly index: number;
  readonly tenant: number;
  readonly kind: ExchangeKind;
  readonly mark: string;
  readonly replyMark: string;
  readonly head: string;
  readonly body: Buffer;
  /** The position of the model's value in the body; null: the body has none. */
  readonly modelAt: { readonly start: number; readonly end: number } | null;
  /** The texts that guardrails act on; null: none. */
  readonly planted: Planted | null;
  /** The public names under which it may be served: the one it names, or those of the tiers. */
  readonly models: readonly string[];
  readonly isStream: boolean;
  readonly isForm: boolean;
  readonly providerSteps: readonly ProviderStep[];
  readonly client: ClientStep;
  readonly reply: { readonly bytes: number; readonly framing: 'length' | 'chunked' | 'close'; readonly pieces: number };
  /** The replies in the order in which calls were answered. */
  readonly replies: SentReply[];
  /** The providers that were called, in order, each with the owner of the credential. */
  readonly calledProviders: string[];
  /** How often a kept connection was closed on the request, so that it may come once more. */
  retries: number;
  /** Why no provider may ever see the exchange; null: a provider may be called. */
  forbidden: string | null;
  /** Why the classifier must not be called for it. */
  unclassifiable: string | null;
  /** The name under which an allowed call for it is counted; null: it is not counted. */
  countedAs: string | null;
  /** The execution id from the reply; empty before. */
  executionId: string;
}

const SIZES: readonly (readonly [weight: number, sizes: readonly number[]])[] = [
  [60, [200, 300, 500, 1_000, 1_024]],
  // Edges of the size classes of the buffer pool, by the length of the whole body.
  [22, [2_047, 2_048, 2_049, 4_096, 4_097, 16_384, 16_385, 32_768]],
  [10, [65_535, 65_536, 65_537]],
  [6, [200_000, 262_144, 262_145]],
  [4, [600_000, 1_000_000, 1_048_576]],
  [0.4, [1_048_577, 2_000_000]],
];
const LIGHT_SIZES: typeof SIZES = SIZES.map(([weight, sizes], place) => [place < 2 ? weight : weight / 8, sizes]);
/** Sizes beyond the system's own buffers of a connection: a stalled reader leaves the rest in the gateway. */
const LARGE_SIZES = [65_536, 200_000, 262_144, 600_000, 1_000_000, 1_048_576] as const;
const REPLY_SIZES: readonly (readonly [weight: number, sizes: readonly number[]])[] = [
  [70, [120, 400, 1_500, 3_000]],
  [20, [8_000, 8_191, 8_192, 8_193, 20_000]],
  [8, [65_536, 100_000, 262_144, 262_145]],
  [2, [300_000, 600_000]],
];
const KINDS: readonly (readonly [weight: number, kinds: readonly ExchangeKind[]])[] = [
  [58, ['chat', 'responses', 'messages']],
  [6, ['count', 'systemone']],
  [14, ['image', 'edit']],
  [6, ['auto']],
  [10, ['saved', 'continued']],
];
const BIG_PROVIDER_STEPS: ReadonlySet<ProviderStep> = new Set([
  'sends the head of a 503 and stalls',
  'sends a whole 503 and stalls',
  'answers before the body is whole and stalls',
  'refuses before it has read the body',
]);
/** The share of exchanges in which a provider, or a client, does something other than its part. */
const PROVIDER_FAULTS = 0.3;
const CLIENT_FAULTS = 0.25;
const NOT_FOR_FAULTS: ReadonlySet<ExchangeKind> = new Set(['saved']);
const BOUNDARY = 'isolation-form-boundary';

/** By tenant: responses that it has had, which saved and continued exchanges name. */
export type SavedIds = ReadonlyMap<number, readonly string[]>;

function weighted<T>(random: SeededRandom, table: readonly (readonly [number, readonly T[]])[]): T {
  let at = random.next() * table.reduce((sum, [weight]) => sum + weight, 0);
  for (const [weight, values] of table) {
    at -= weight;
    if (at < 0) return random.pick(values);
  }
  return random.pick(table[0]?.[1] ?? []);
}

/** The share of exchanges of plain tenants in a run whose tenants have own provider keys or policies. */
const PLAIN = 0.2;
const BLOCKED_REQUESTS = 0.06;
const BLOCKED_REPLIES = 0.1;

export interface PlanParams {
  readonly seed: number;
  readonly index: number;
  /** Few large bodies and half of the faults, so that a million exchanges can run. */
  readonly isLight: boolean;
  /** The tenants with own provider keys that take part. */
  readonly ownTenants: readonly number[];
  /** Tenants with guardrail policies take part, and every text has planted what the policies act on. */
  readonly isGuarded: boolean;
}

/** Draws the tenant. Without guardrails nothing is drawn for them, so that old seeds keep their exchanges. */
function drawTenant({ ownTenants, isGuarded }: PlanParams, random: SeededRandom): number {
  const plain = random.whole(1, TENANTS);
  const others = isGuarded ? [...GUARDED_TENANTS, ...ownTenants] : ownTenants;
  return others.length === 0 || random.chance(PLAIN) ? plain : random.pick(others);
}

function drawGuardedEnd(random: SeededRandom): GuardedEnd {
  if (random.chance(BLOCKED_REQUESTS)) return 'blocks the request';
  return random.chance(BLOCKED_REPLIES) ? 'blocks the reply' : 'passes';
}

export function planExchange(params: PlanParams, saved: SavedIds): Exchange {
  const { seed, index, isLight, isGuarded } = params;
  const random = new SeededRandom(seed * 100_000_007 + index);
  const tenant = drawTenant(params, random);
  const drawnKind = weighted(random, KINDS);
  const known = saved.get(tenant) ?? [];
  const kind = (drawnKind === 'saved' || drawnKind === 'continued') && known.length === 0 ? 'responses' : drawnKind;
  const hasProviderFault = random.chance(isLight ? PROVIDER_FAULTS / 2 : PROVIDER_FAULTS) && !NOT_FOR_FAULTS.has(kind);
  const providerSteps = hasProviderFault ? drawProviderSteps(random) : [];
  const isBig = providerSteps.some((step) => BIG_PROVIDER_STEPS.has(step)) && random.chance(isLight ? 0.3 : 0.7);
  const client = random.chance(isLight ? CLIENT_FAULTS / 2 : CLIENT_FAULTS) ? random.pick(CLIENT_STEPS) : 'stays';
  const bytes = isBig ? random.pick(LARGE_SIZES) : weighted(random, isLight ? LIGHT_SIZES : SIZES);
  const replyBytes =
    client === 'reads slowly' && random.chance(isLight ? 0.05 : 0.3) ? 3_000_000 : weighted(random, REPLY_SIZES);
  return buildExchange(
    {
      index,
      tenant,
      kind,
      key: warmKey(tenant, random.chance(0.5)),
      bytes,
      providerSteps,
      client,
      isStream: random.chance(0.4),
      savedId: known.length === 0 ? '' : random.pick(known),
      ...(isGuarded && kind !== 'saved' ? { guarded: drawGuardedEnd(random) } : {}),
      reply: {
        bytes: replyBytes,
        framing: random.pick(['length', 'length', 'chunked', 'close'] as const),
        pieces: random.pick([1, 1, 2, 5, 12]),
      },
    },
    random,
  );
}

function drawProviderSteps(random: SeededRandom): ProviderStep[] {
  const first = random.chance(0.2) ? 'sends the head of a 503 and stalls' : random.pick(PROVIDER_STEPS);
  return random.chance(0.3) ? [first, random.pick(PROVIDER_STEPS)] : [first];
}

export interface ExchangeParts {
  readonly index: number;
  readonly tenant: number;
  readonly kind: ExchangeKind;
  readonly key: string;
  readonly bytes: number;
  readonly providerSteps: readonly ProviderStep[];
  readonly client: ClientStep;
  readonly isStream: boolean;
  /** The id of a response; empty: none. */
  readonly savedId: string;
  readonly reply: Exchange['reply'];
  readonly guarded?: GuardedEnd;
}

export function buildExchange(parts: ExchangeParts, random: SeededRandom): Exchange {
  const { index, tenant, kind } = parts;
  const mark = markOf(tenant, 'p', index);
  const models = modelsOf(parts, random);
  const named = kind === 'auto' ? 'service/auto' : (models[0] ?? '');
  const isStream = parts.isStream && STREAMED.has(kind);
  const isForm = kind === 'edit' && random.chance(0.7);
  const planted = parts.guarded === undefined || isForm ? null : plantedIn(tenant, index, parts.guarded);
  const body =
    kind === 'saved'
      ? EMPTY
      : isForm
        ? formBody(named, mark, parts.bytes, random)
        : jsonBody({ ...parts, isStream }, { model: named, mark, planted: planted?.text ?? '' }, random);
  const value = isForm ? named : JSON.stringify(named);
  const start =
    kind === 'saved'
      ? 0
      : body.indexOf(isForm ? `name="model"\r\n\r\n${named}` : `"model":${value}`) +
        (isForm ? 'name="model"\r\n\r\n'.length : '"model":'.length);
  return {
    index,
    tenant,
    kind,
    mark,
    replyMark: markOf(tenant, 'r', index),
    head: requestHead(parts, { mark, isForm, bodyBytes: body.length }, random),
    body,
    modelAt: kind === 'saved' ? null : { start, end: start + value.length },
    planted,
    models,
    isStream,
    isForm,
    providerSteps: parts.providerSteps,
    client: parts.client,
    reply: parts.reply,
    replies: [],
    calledProviders: [],
    retries: 0,
    ...(planted?.end === 'blocks the request' && hasPolicy(tenant)
      ? BLOCKED
      : { forbidden: null, unclassifiable: null }),
    countedAs: null,
    executionId: '',
  };
}

const EMPTY = Buffer.alloc(0);
const BLOCKED = { forbidden: 'its request was to be blocked', unclassifiable: 'its request was to be blocked' };
const STREAMED: ReadonlySet<ExchangeKind> = new Set(['chat', 'responses', 'messages', 'auto', 'continued']);

function modelsOf({ kind, tenant, providerSteps }: ExchangeParts, random: SeededRandom): readonly string[] {
  if (kind === 'auto') return ['iso/light', 'iso/strong'];
  if (kind === 'image' || kind === 'edit') return ['iso/image'];
  if (kind === 'systemone') return ['iso/eval'];
  // A pause of an own key affects nobody else, so the model may be any.
  if (providerSteps.includes('asks for a pause') && !hasOwnKeys(tenant)) return ['iso/cool'];
  const texts = MODELS.filter(
    ({ id, kind: of }) => of === 'text' && !OWN_MODELS.has(id) && (id !== 'iso/ask' || kind === 'chat'),
  );
  return [random.pick(texts).id];
}

/** Models that serve one purpose each. */
const OWN_MODELS: ReadonlySet<string> = new Set(['iso/cool', 'iso/light', 'iso/strong']);

/** The JSON around the filling, by kind; `#` is the filling. The model and the other fields go before or after it. */
function jsonBody(
  { kind, bytes, isStream, savedId }: ExchangeParts,
  { model, mark, planted }: { model: string; mark: string; planted: string },
  random: SeededRandom,
): Buffer {
  const content = {
    chat: '"messages":[{"role":"user","content":"#"}]',
    auto: '"messages":[{"role":"user","content":"#"}]',
    responses: '"input":"#"',
    continued: `"previous_response_id":"${savedId}","input":"#"`,
    messages: '"messages":[{"role":"user","content":"#"}]',
    count: '"messages":[{"role":"user","content":"#"}]',
    image: '"prompt":"#"',
    edit: '"prompt":"#","images":[]',
    systemone:
      '"state":"#","questions":{"q":{"type":"choice","instructions":"Is it?","criteria":{"yes":null,"no":null}}}',
    saved: '',
  }[kind];
  const limit = {
    chat: ',"max_tokens":9',
    auto: ',"max_tokens":9',
    messages: ',"max_tokens":9',
    responses: ',"max_output_tokens":9',
    continued: ',"max_output_tokens":9',
  };
  const fields = `${(limit as Record<string, string>)[kind] ?? ''}${isStream ? ',"stream":true' : ''}`;
  const first = `"user":"${mark}"`;
  const withModel = `"model":${JSON.stringify(model)}`;
  const [before = '', behind = ''] = (
    random.chance(0.6) ? `{${withModel},${first},${content}${fields}}` : `{${first},${content}${fields},${withModel}}`
  ).split('#');
  return Buffer.concat([
    Buffer.from(before + planted),
    filled(mark, Math.max(16, bytes - before.length - planted.length - behind.length)),
    Buffer.from(behind),
  ]);
}

function formBody(model: string, mark: string, bytes: number, random: SeededRandom): Buffer {
  const image = {
    name: 'image[]',
    filename: `${mark}.png`,
    headers: ['Content-Type: image/png'],
    value: filled(mark, Math.max(16, bytes - 400)),
  };
  const others = [
    { name: 'prompt', value: mark },
    { name: 'model', value: model },
  ];
  return writeForm(BOUNDARY, random.chance(0.5) ? [...others, image] : [image, ...others]);
}

const PATHS: Readonly<Record<ExchangeKind, string>> = {
  chat: '/v1/chat/completions',
  auto: '/v1/chat/completions',
  responses: '/v1/responses',
  continued: '/v1/responses',
  messages: '/v1/messages',
  count: '/v1/messages/count_tokens',
  image: '/v1/images/generations',
  edit: '/v1/images/edits',
  systemone: '/v1/systemone',
  saved: '/v1/responses/',
};

/**
 * The head of the request. Some exchanges of a tenant share their headers, so that remembered headers are used; the
 * others have their own mark in them.
 */
function requestHead(
  { index, tenant, kind, key, savedId }: ExchangeParts,
  body: { mark: string; isForm: boolean; bodyBytes: number },
  random: SeededRandom,
): string {
  const { mark, isForm, bodyBytes } = body;
  const ownHeaders = random.chance(0.4);
  const isNamedInPath = kind === 'saved' || random.chance(0.4);
  const operation = kind === 'saved' ? `${savedId}${random.pick(['', '/input_items', '/cancel'])}` : '';
  const method = kind !== 'saved' ? 'POST' : operation.endsWith('/cancel') ? 'POST' : 'GET';
  const tenantMark = markOf(tenant, 'p', 0);
  const clientMark = markOf(tenant, 'c', index);
  const lines = [
    `${method} ${PATHS[kind]}${operation}${isNamedInPath ? `?m=${mark}` : ''} HTTP/1.1`,
    'host: gateway.test',
    key.endsWith('k') && kind === 'messages' && random.chance(0.5)
      ? `x-api-key: ${key}`
      : `authorization: Bearer ${key}`,
    `user-agent: isolation/${tenantMark}`,
    `x-stainless-lang: ${ownHeaders ? mark : tenantMark}`,
    `anthropic-beta: ${tenantMark}`,
    `x-client-request-id: ${clientMark}`,
    `x-service-tag: ${clientMark}, ${markOf(tenant, 'c', 0)}`,
    `cookie: session=${clientMark}`,
    `openai-organization: ${clientMark}`,
    ...(kind === 'auto' ? [`x-session-id: ${clientMark}`] : []),
    ...(ownHeaders && random.chance(0.5) ? [`idempotency-key: ${mark}`] : []),
    ...(kind === 'saved'
      ? []
      : [`content-type: ${isForm ? `multipart/form-data; boundary=${BOUNDARY}` : 'application/json'}`]),
    ...(method === 'GET' ? [] : [`content-length: ${bodyBytes}`]),
  ];
  return `${lines.join('\r\n')}\r\n\r\n`;
}
