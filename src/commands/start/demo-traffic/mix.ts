// The callers in the demo's generated traffic, what they ask for, and how often in the hour.

import type { FindingCount } from '../../../domain/guardrails/screening-report.ts';
import type { ApiName } from '../../../domain/models/apis.ts';
import type { Refusal } from '../../../domain/refusals/refusal.ts';

/** The names of the keys in deploy/demo-traffic.yaml. */
export const DEMO_KEYS = ['support-bot', 'editor', 'terminal', 'nightly', 'search', 'studio'] as const;
export type DemoKey = (typeof DEMO_KEYS)[number];

export type TextApi = 'chat_completions' | 'responses' | 'messages';

/** A caller that talks through auto routing. */
export interface Talker {
  readonly key: DemoKey;
  readonly api: TextApi;
  readonly tags: readonly string[];
  readonly conversations: number;
  readonly turnsMax: number;
  /** The most requests of one turn, which an agent makes with its tools. */
  readonly requestsMax: number;
  readonly tokens: { readonly first: number; readonly grows: number; readonly output: number };
  /** The share of its turns that are hard. */
  readonly hard: number;
  readonly task: string;
}

/** A caller that makes single requests for a model that it names. */
export interface Caller {
  readonly key: DemoKey;
  readonly api: ApiName;
  readonly model: string;
  readonly tags: readonly string[];
  readonly requests: number;
  readonly streamed: boolean;
  readonly tokens: { readonly input: number; readonly output: number };
}

export const TALKERS: readonly Talker[] = [
  {
    key: 'support-bot',
    api: 'chat_completions',
    tags: ['support', 'channel:web'],
    conversations: 34,
    turnsMax: 5,
    requestsMax: 1,
    tokens: { first: 900, grows: 350, output: 220 },
    hard: 0.15,
    task: 'prose',
  },
  {
    key: 'editor',
    api: 'messages',
    tags: ['agent', 'repo:api'],
    conversations: 7,
    turnsMax: 7,
    requestsMax: 6,
    tokens: { first: 14_000, grows: 4_500, output: 700 },
    hard: 0.55,
    task: 'code',
  },
  {
    key: 'terminal',
    api: 'responses',
    tags: ['agent', 'repo:web'],
    conversations: 6,
    turnsMax: 6,
    requestsMax: 5,
    tokens: { first: 20_000, grows: 9_000, output: 500 },
    hard: 0.45,
    task: 'code',
  },
  {
    key: 'nightly',
    api: 'messages',
    tags: ['batch', 'job:reports'],
    conversations: 9,
    turnsMax: 1,
    requestsMax: 2,
    // Most of these conversations fit into no small model, however simple the question is.
    tokens: { first: 200_000, grows: 1_000, output: 900 },
    hard: 0.1,
    task: 'prose',
  },
];

export const CALLERS: readonly Caller[] = [
  {
    key: 'nightly',
    api: 'chat_completions',
    model: 'sim/large',
    tags: ['batch', 'job:summaries'],
    requests: 90,
    streamed: false,
    tokens: { input: 6_000, output: 600 },
  },
  {
    key: 'nightly',
    api: 'chat_completions',
    model: 'sim/small',
    tags: ['batch', 'job:labels'],
    requests: 120,
    streamed: false,
    tokens: { input: 1_200, output: 40 },
  },
  {
    key: 'search',
    api: 'embeddings',
    model: 'sim/embedding',
    tags: ['search'],
    requests: 150,
    streamed: false,
    tokens: { input: 3_000, output: 0 },
  },
  {
    key: 'studio',
    api: 'images',
    model: 'sim/image',
    tags: ['campaign'],
    requests: 14,
    streamed: false,
    tokens: { input: 60, output: 0 },
  },
  {
    key: 'studio',
    api: 'chat_completions',
    model: 'sim/small',
    tags: ['campaign'],
    requests: 40,
    streamed: true,
    tokens: { input: 700, output: 350 },
  },
];

/** The guardrail policy of deploy/demo-traffic.yaml, with its version when the hour is made. */
const GUARDRAIL = { policy: 'personal-data', version: 1 } as const;

/** Refusals of requests that name a model; each leaves a record. */
export const REFUSED: readonly {
  readonly key: DemoKey;
  readonly model: string;
  readonly refusal: Refusal;
  readonly requests: number;
}[] = [
  { key: 'studio', model: 'sim/huge', refusal: { kind: 'unknown_model', model: 'sim/huge' }, requests: 4 },
  {
    key: 'nightly',
    model: 'sim/unbounded',
    refusal: { kind: 'not_safely_billable', field: 'max_tokens' },
    requests: 7,
  },
  {
    key: 'support-bot',
    model: 'sim/image',
    refusal: { kind: 'api_not_supported', model: 'sim/image', api: 'chat_completions' },
    requests: 3,
  },
  {
    key: 'support-bot',
    model: 'sim/small',
    refusal: {
      kind: 'guardrail_blocked',
      guardrail: { policy: GUARDRAIL.policy, rule: 'cards', entity: 'card', stage: 'input' },
    },
    requests: 5,
  },
];

/** What the policy finds in the requests of each key: in which share of them, and at most how often in one. */
export const FOUND: readonly {
  readonly key: DemoKey;
  readonly finding: Omit<FindingCount, 'count'>;
  readonly share: number;
  readonly countMax: number;
}[] = [
  {
    key: 'support-bot',
    finding: { ...GUARDRAIL, rule: 'people', entity: 'email', action: 'mask' },
    share: 0.22,
    countMax: 3,
  },
  {
    key: 'support-bot',
    finding: { ...GUARDRAIL, rule: 'people', entity: 'phone', action: 'mask' },
    share: 0.12,
    countMax: 1,
  },
  {
    key: 'nightly',
    finding: { ...GUARDRAIL, rule: 'people', entity: 'iban', action: 'mask' },
    share: 0.06,
    countMax: 4,
  },
  {
    key: 'terminal',
    finding: { ...GUARDRAIL, rule: 'addresses', entity: 'ip', action: 'flag' },
    share: 0.15,
    countMax: 6,
  },
];

/** The finding in the requests of `REFUSED` that the policy blocks. */
export const BLOCKED: FindingCount = { ...GUARDRAIL, rule: 'cards', entity: 'card', action: 'block', count: 1 };

/** For these minutes of the hour the provider of a model has trouble with a share of the requests. */
export const TROUBLE = { model: 'sim/large', fromMinute: 37, untilMinute: 41, share: 0.4 };
