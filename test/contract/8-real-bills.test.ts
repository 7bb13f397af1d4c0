// Golden bills of prices with terms: a price as operators write it, a reply as providers write it, and what it costs to
// the last pico-dollar, computed by hand. A line for each part of a price.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { priceOn } from '../../src/domain/models/price.ts';
import { picoUsd } from '../../src/domain/money/pico-usd.ts';
import { costCeiling } from '../../src/domain/settlement/rate-usage.ts';
import { settle } from '../../src/domain/settlement/settle.ts';
import { NO_COUNTS } from '../../src/domain/usage/usage.ts';
import { chatCompletions } from '../../src/generation/dialects/chat-completions.ts';
import { countTokens } from '../../src/generation/dialects/count-tokens.ts';
import type { Dialect } from '../../src/generation/dialects/dialect.ts';
import { imageGenerations } from '../../src/generation/dialects/images.ts';
import { messages } from '../../src/generation/dialects/messages.ts';
import { responses } from '../../src/generation/dialects/responses.ts';
import { systemone } from '../../src/generation/dialects/systemone.ts';
import { holdFor, priceOf, rateReply } from '../support/real-bills.ts';

interface Bill {
  readonly name: string;
  readonly dialect: Dialect;
  readonly price: object;
  /** What the request names. */
  readonly request?: object;
  /** A whole reply, or the events of one. */
  readonly reply: object | string;
  readonly cost: bigint | null;
  readonly unpriced?: string;
}

const event = (data: object): string => `data: ${JSON.stringify(data)}\n\n`;

/** 1 in, 0.10 cached, 1.25 written to the cache, 2 for an hour, 5 out: in pico-dollars per token six digits more. */
const PLAIN = { input: '1', cached_input: '0.1', cache_write: '1.25', cache_write_1h: '2', output: '5' };
const chat = (input: number, output: number, rest: object = {}): Record<string, unknown> => ({
  id: 'c',
  choices: [],
  usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
  ...rest,
});
const message = (usage: object): object => ({ id: 'm', content: [], usage });
const response = (input: number, output: number, rest: object = {}): Record<string, unknown> => ({
  id: 'r',
  output: [],
  usage: { input_tokens: input, output_tokens: output, total_tokens: input + output },
  ...rest,
});

const LARGE = { ...PLAIN, tiers: [{ from_input: 200_000, input: '2', cached_input: '0.2', output: '7.5' }] };
const TIERS: readonly Bill[] = [
  // 199 999 × 1 000 000 + 10 × 5 000 000
  { name: 'below a tier', dialect: chatCompletions, price: LARGE, reply: chat(199_999, 10), cost: 200_049_000_000n },
  // 200 000 × 2 000 000 + 10 × 7 500 000: the whole request, its output too
  { name: 'in a tier', dialect: chatCompletions, price: LARGE, reply: chat(200_000, 10), cost: 400_075_000_000n },
  {
    // (250 000 - 240 000) × 2 000 000 + 240 000 × 200 000 + 10 × 7 500 000: by all of the input, cached or not
    name: 'in a tier, most of it cached',
    dialect: responses,
    price: LARGE,
    reply: response(250_000, 10, {
      usage: { input_tokens: 250_000, input_tokens_details: { cached_tokens: 240_000 }, output_tokens: 10 },
    }),
    cost: 68_075_000_000n,
  },
  {
    // 10 × 2 000 000 + 150 000 × 200 000 + 60 000 × 1 250 000 + 1 × 7 500 000: what the tier does not name stays
    name: 'in a tier by what Anthropic counts beside the input',
    dialect: messages,
    price: LARGE,
    reply: message({
      input_tokens: 10,
      cache_read_input_tokens: 150_000,
      cache_creation_input_tokens: 60_000,
      output_tokens: 1,
    }),
    cost: 105_027_500_000n,
  },
  {
    // 500 × 3 000 000 + 2 × 5 000 000
    name: 'in the highest of several',
    dialect: chatCompletions,
    price: {
      ...PLAIN,
      tiers: [
        { from_input: 100, input: '2' },
        { from_input: 500, input: '3' },
        { from_input: 501, input: '4' },
      ],
    },
    reply: chat(500, 2),
    cost: 1_510_000_000n,
  },
];

const TIERED = {
  ...PLAIN,
  service_tiers: {
    flex: '0.5',
    priority: { input: '1.75', cached_input: '0.175', output: '9', tiers: [{ from_input: 1_000, input: '3.5' }] },
  },
};
const SERVICE_TIERS: readonly Bill[] = [
  {
    // (100 × 1 000 000 + 10 × 5 000 000) × 0.5
    name: 'flex by a factor',
    dialect: chatCompletions,
    price: TIERED,
    request: { service_tier: 'flex' },
    reply: chat(100, 10, { service_tier: 'flex' }),
    cost: 75_000_000n,
  },
  {
    // 100 × 1 750 000 + 10 × 9 000 000
    name: 'priority by prices',
    dialect: responses,
    price: TIERED,
    request: { service_tier: 'priority' },
    reply: response(100, 10, { service_tier: 'priority' }),
    cost: 265_000_000n,
  },
  {
    // 1000 × 3 500 000 + 10 × 9 000 000
    name: 'priority in a tier of its own',
    dialect: responses,
    price: TIERED,
    request: { service_tier: 'priority' },
    reply: response(1_000, 10, { service_tier: 'priority' }),
    cost: 3_590_000_000n,
  },
  {
    // 100 × 1 000 000 + 10 × 5 000 000: it was served plainly, whatever was asked for
    name: 'priority that the provider did not give',
    dialect: responses,
    price: TIERED,
    request: { service_tier: 'priority' },
    reply:
      event({ type: 'response.created', response: { id: 'r', service_tier: 'priority' } }) +
      event({ type: 'response.completed', response: response(100, 10, { service_tier: 'default' }) }),
    cost: 150_000_000n,
  },
  {
    // 100 × 1 750 000 + 10 × 9 000 000
    name: 'priority that was asked for, of a reply that does not say',
    dialect: chatCompletions,
    price: TIERED,
    request: { service_tier: 'priority' },
    reply: chat(100, 10),
    cost: 265_000_000n,
  },
  {
    // 100 × 1 750 000 + 10 × 9 000 000
    name: 'the default of the deployment, of a reply that does not say',
    dialect: chatCompletions,
    price: { ...TIERED, service_tier_default: 'priority' },
    reply: chat(100, 10, { service_tier: 'auto' }),
    cost: 265_000_000n,
  },
  {
    // 100 × 1 000 000 + 10 × 5 000 000
    name: 'the plain one where the deployment has another default',
    dialect: chatCompletions,
    price: { ...TIERED, service_tier_default: 'priority' },
    reply: chat(100, 10, { service_tier: 'default' }),
    cost: 150_000_000n,
  },
  ...(
    [
      [chatCompletions, 'default', {}],
      [chatCompletions, 'on_demand', { service_tier: 'auto' }],
      [responses, 'standard', {}],
      [messages, 'standard_only', {}],
    ] as const
  ).map(([dialect, named, rest]) => ({
    // 100 × 1 000 000 + 10 × 5 000 000
    name: `${named}, where the deployment has another default and the reply does not say`,
    dialect,
    price: { ...TIERED, service_tier_default: 'priority' },
    request: { service_tier: named },
    reply: dialect === chatCompletions ? chat(100, 10, rest) : response(100, 10, rest),
    cost: 150_000_000n,
  })),
  {
    // 100 × 1 750 000 + 10 × 9 000 000
    name: 'priority that the provider gave although the plain one was named',
    dialect: chatCompletions,
    price: { ...TIERED, service_tier_default: 'priority' },
    request: { service_tier: 'default' },
    reply: chat(100, 10, { service_tier: 'priority' }),
    cost: 265_000_000n,
  },
  {
    // 100 × 1 750 000 + 10 × 9 000 000
    name: 'auto, which means the default of the deployment',
    dialect: chatCompletions,
    price: { ...TIERED, service_tier_default: 'priority' },
    request: { service_tier: 'auto' },
    reply: chat(100, 10),
    cost: 265_000_000n,
  },
  {
    // 22 × 1 750 000 + 8 × 9 000 000
    name: 'priority in a Messages stream, where it begins',
    dialect: messages,
    price: TIERED,
    reply:
      event({
        type: 'message_start',
        message: { usage: { input_tokens: 22, output_tokens: 1, service_tier: 'priority' } },
      }) +
      event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 8 } }) +
      event({ type: 'message_stop' }),
    cost: 110_500_000n,
  },
  {
    // As if it were plain; the rest of the hold goes to suspense.
    name: 'a tier without a price',
    dialect: chatCompletions,
    price: TIERED,
    reply: chat(100, 10, { service_tier: 'scale' }),
    cost: 150_000_000n,
    unpriced: 'service_tier scale',
  },
];

const HOUR_CACHE = { system: [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral', ttl: '1h' } }] };
const FAST = { ...PLAIN, speeds: { fast: '6' }, geos: { us: '1.1' } };
const VARIED: readonly Bill[] = [
  // 10 × 1 000 000 + 800 × 100 000 + 200 × 1 250 000 + 5 × 5 000 000
  ...[undefined, 3].map((reasoning) => ({
    name: `a cache beside the input, which the total tells, with reasoning of ${reasoning}`,
    dialect: chatCompletions,
    price: PLAIN,
    reply: chat(0, 0, {
      usage: {
        prompt_tokens: 10,
        completion_tokens: 5,
        total_tokens: 1_015,
        prompt_tokens_details: { cached_tokens: 800, cache_write_tokens: 200 },
        completion_tokens_details: { reasoning_tokens: reasoning },
      },
    }),
    cost: 365_000_000n,
  })),
  {
    // (10 × 1 000 000 + 500 × 100 000 + 1000 × 1 250 000 + 2000 × 2 000 000 + 20 × 5 000 000) × 6
    // = (10 000 000 + 50 000 000 + 1 250 000 000 + 4 000 000 000 + 100 000 000) × 6
    name: 'fast, with both kinds of cache writes',
    dialect: messages,
    price: FAST,
    request: { speed: 'fast' },
    reply: message({
      input_tokens: 10,
      cache_read_input_tokens: 500,
      cache_creation_input_tokens: 3_000,
      cache_creation: { ephemeral_5m_input_tokens: 1_000, ephemeral_1h_input_tokens: 2_000 },
      output_tokens: 20,
      service_tier: 'standard',
      speed: 'fast',
    }),
    cost: 32_460_000_000n,
  },
  {
    // 10 × 1 000 000 + 1000 × 1 250 000 + 2000 × 2 000 000 + 20 × 5 000 000: the hour is what the request named
    name: 'cache writes of which some are not told apart',
    dialect: messages,
    price: PLAIN,
    request: HOUR_CACHE,
    reply:
      event({
        type: 'message_start',
        message: {
          usage: {
            input_tokens: 10,
            cache_creation_input_tokens: 1_500,
            cache_creation: { ephemeral_5m_input_tokens: 1_000, ephemeral_1h_input_tokens: 500 },
            output_tokens: 1,
          },
        },
      }) +
      event({
        type: 'message_delta',
        delta: { stop_reason: 'end_turn' },
        usage: { input_tokens: 10, cache_creation_input_tokens: 3_000, output_tokens: 20 },
      }) +
      event({ type: 'message_stop' }),
    cost: 5_360_000_000n,
  },
  {
    // 10 × 1 000 000 + 3000 × 2 000 000 + 20 × 5 000 000
    name: 'cache writes that are not told apart, where the request named an hour',
    dialect: messages,
    price: PLAIN,
    request: HOUR_CACHE,
    reply: message({ input_tokens: 10, cache_creation_input_tokens: 3_000, output_tokens: 20 }),
    cost: 6_110_000_000n,
  },
  {
    // 10 × 1 000 000 + 3000 × 1 250 000 + 20 × 5 000 000
    name: 'cache writes that are not told apart, where it named none',
    dialect: messages,
    price: PLAIN,
    reply: message({ input_tokens: 10, cache_creation_input_tokens: 3_000, output_tokens: 20 }),
    cost: 3_860_000_000n,
  },
  {
    // 10 × 1 000 000 + 1000 × 2 000 000 + 20 × 5 000 000
    name: 'cache writes whose sum is told as nothing',
    dialect: messages,
    price: PLAIN,
    reply: message({
      input_tokens: 10,
      cache_creation_input_tokens: 0,
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 1_000 },
      output_tokens: 20,
    }),
    cost: 2_110_000_000n,
  },
  {
    // 10 × 1 000 000 + 20 × 5 000 000
    name: 'a service tier that is no name',
    dialect: messages,
    price: TIERED,
    reply: message({ input_tokens: 10, output_tokens: 20, service_tier: ['priority'] }),
    cost: 110_000_000n,
    unpriced: 'service_tier ?',
  },
  {
    // 10 × 1 000 000 + 20 × 5 000 000
    name: 'fast that was not given',
    dialect: messages,
    price: FAST,
    request: { speed: 'fast' },
    reply: message({ input_tokens: 10, output_tokens: 20, speed: 'standard' }),
    cost: 110_000_000n,
  },
  {
    // (10 × 1 000 000 + 20 × 5 000 000) × 1.1
    name: 'in a region that the workspace chose',
    dialect: messages,
    price: FAST,
    reply: message({ input_tokens: 10, output_tokens: 20, inference_geo: 'us', service_tier: 'standard' }),
    cost: 121_000_000n,
  },
  {
    // (10 × 1 000 000 + 20 × 5 000 000) × 6 × 1.1
    name: 'fast in a region',
    dialect: messages,
    price: FAST,
    request: { speed: 'fast', inference_geo: 'us' },
    reply: message({ input_tokens: 10, output_tokens: 20, inference_geo: 'us', speed: 'fast' }),
    cost: 726_000_000n,
  },
  {
    name: 'in a region without a price',
    dialect: messages,
    price: FAST,
    reply: message({ input_tokens: 10, output_tokens: 20, inference_geo: 'eu' }),
    cost: 110_000_000n,
    unpriced: 'inference_geo eu',
  },
  {
    // (100 × 1 000 000 + 10 × 5 000 000) × 1.1
    name: 'a deployment in a region that costs a tenth more',
    dialect: responses,
    price: { ...PLAIN, factor: '1.1' },
    reply: response(100, 10, { service_tier: 'default' }),
    cost: 165_000_000n,
  },
  {
    // (100 × 1 000 000 + 10 × 5 000 000) × 1.1 × 0.5
    name: 'flex there',
    dialect: responses,
    price: { ...TIERED, factor: '1.1' },
    request: { service_tier: 'flex' },
    reply: response(100, 10, { service_tier: 'flex' }),
    cost: 82_500_000n,
  },
  {
    // (3 × 1 + 1 × 2) × 1.1 = 5.5 pico-dollars: 6, and not 4 and 3 for each part
    name: 'a fraction of a pico-dollar: up, once for the whole bill',
    dialect: chatCompletions,
    price: { input: '0.000001', output: '0.000002', factor: '1.1' },
    reply: chat(3, 1),
    cost: 6n,
  },
];

const ITERATIONS = [
  ['of which the beginning of the stream has an empty list', [], [{ type: 'message' }, { type: 'compaction' }]],
  ['which was no part of the list at the beginning', [{ type: 'message' }], [{ type: 'compaction' }]],
  ['of which the end of the stream has an empty list', [{ type: 'compaction' }], []],
  ['that is told where the stream ends', undefined, [{ type: 'compaction' }]],
] as const;

const SEARCH_ITEM = { type: 'web_search_call', status: 'failed' };
const NONE_BY_TOOL = { image_gen: { input_tokens: 0 }, web_search: { num_requests: 0 } };
const searchStream = (first: object, last: object): string =>
  event({ type: 'response.created', response: { id: 'r', ...first } }) +
  event({ type: 'response.output_item.done', item: SEARCH_ITEM }) +
  event({ type: 'response.completed', response: response(100, 10, { output: [SEARCH_ITEM], ...last }) });
const NO_SEARCHES = {
  'the words of OpenAI': { tool_usage: NONE_BY_TOOL },
  'the words of xAI': {
    usage: { input_tokens: 100, output_tokens: 10, server_side_tool_usage_details: { web_search_calls: 0 } },
  },
  "xAI's total": { usage: { input_tokens: 100, output_tokens: 10, num_server_side_tools_used: 0 } },
  'the words of OpenRouter': {
    usage: { input_tokens: 100, output_tokens: 10, server_tool_use: { web_search_requests: 0 } },
  },
};

const SEARCHED = { ...PLAIN, calls: { web_search: '0.01', web_fetch: '0' } };
const CALLS: readonly Bill[] = [
  {
    // 10 423 × 1 000 000 + 87 × 5 000 000 + 3 × 10 000 000 000
    name: 'searches of Anthropic, reported where the stream ends',
    dialect: messages,
    price: SEARCHED,
    request: { tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 5 }] },
    reply:
      event({ type: 'message_start', message: { usage: { input_tokens: 2_039, output_tokens: 1 } } }) +
      event({
        type: 'message_delta',
        delta: { stop_reason: 'end_turn' },
        usage: {
          input_tokens: 10_423,
          output_tokens: 87,
          server_tool_use: { web_search_requests: 3, web_fetch_requests: 2 },
        },
      }) +
      event({ type: 'message_stop' }),
    cost: 40_858_000_000n,
  },
  ...[0, null].map((count) => ({
    // 10 × 1 000 000 + 87 × 5 000 000 + 3 × 10 000 000 000
    name: `searches of Anthropic, of which the end of the stream says ${count}`,
    dialect: messages,
    price: SEARCHED,
    request: { tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 5 }] },
    reply:
      event({
        type: 'message_start',
        message: { usage: { input_tokens: 10, output_tokens: 1, server_tool_use: { web_search_requests: 3 } } },
      }) +
      event({
        type: 'message_delta',
        delta: { stop_reason: 'end_turn' },
        usage: { output_tokens: 87, server_tool_use: { web_search_requests: count } },
      }) +
      event({ type: 'message_stop' }),
    cost: 30_445_000_000n,
  })),
  ...ITERATIONS.map(([name, first, last]) => ({
    // 10 × 1 000 000 + 87 × 5 000 000
    name: `a compaction of Anthropic, ${name}`,
    dialect: messages,
    price: PLAIN,
    reply:
      event({ type: 'message_start', message: { usage: { input_tokens: 10, output_tokens: 1, iterations: first } } }) +
      event({
        type: 'message_delta',
        delta: { stop_reason: 'end_turn' },
        usage: { output_tokens: 87, iterations: last },
      }) +
      event({ type: 'message_stop' }),
    cost: 445_000_000n,
    unpriced: 'iterations compaction',
  })),
  {
    // 10 × 1 000 000 + 87 × 5 000 000
    name: 'a part of the work of Anthropic that has no type',
    dialect: messages,
    price: PLAIN,
    reply: message({ input_tokens: 10, output_tokens: 87, iterations: [{ type: 'message' }, { input_tokens: 5 }] }),
    cost: 445_000_000n,
    unpriced: 'iterations ?',
  },
  {
    // 10 × 1 000 000 + 87 × 5 000 000
    name: 'searches in letters, or fewer than none',
    dialect: messages,
    price: SEARCHED,
    reply: message({
      input_tokens: 10,
      output_tokens: 87,
      server_tool_use: { web_search_requests: '3', web_fetch_requests: -2 },
    }),
    cost: 445_000_000n,
    unpriced: 'server_tool_use web_search_requests',
  },
  {
    // (100 × 1 000 000 + 10 × 5 000 000) × 1.1 + 2 × 10 000 000 000: a factor is on tokens
    name: 'searches of OpenAI, in a region',
    dialect: responses,
    price: { ...SEARCHED, factor: '1.1' },
    request: { tools: [{ type: 'web_search' }] },
    reply: response(100, 10, {
      output: [{ type: 'web_search_call' }],
      tool_usage: { image_gen: { input_tokens: 0 }, web_search: { num_requests: 2 } },
    }),
    cost: 20_165_000_000n,
  },
  {
    // 8397 × 1 000 000 - 608 × 900 000 + 1805 × 5 000 000 + 2 × 5 000 000 000 + 1 × 10 000 000 000
    name: 'tools of xAI, each told apart',
    dialect: responses,
    price: { ...PLAIN, calls: { x_search: '0.005', web_search: '0.01' } },
    request: { tools: [{ type: 'web_search' }, { type: 'x_search' }] },
    reply: response(0, 0, {
      output: [{ type: 'web_search_call' }],
      usage: {
        input_tokens: 8_397,
        input_tokens_details: { cached_tokens: 608 },
        output_tokens: 1_805,
        output_tokens_details: { reasoning_tokens: 580 },
        total_tokens: 10_202,
        num_server_side_tools_used: 3,
        server_side_tool_usage_details: { web_search_calls: 1, x_search_calls: 2, mcp_calls: 0 },
      },
    }),
    cost: 36_874_800_000n,
  },
  {
    // 1941 × 1 000 000 - 947 × 900 000 + 583 × 5 000 000, as recorded: how many of which tool it does not say
    name: 'tools of xAI that are not told apart',
    dialect: responses,
    price: SEARCHED,
    reply: response(0, 0, {
      usage: {
        input_tokens: 1_941,
        input_tokens_details: { cached_tokens: 947 },
        output_tokens: 583,
        output_tokens_details: { reasoning_tokens: 380 },
        total_tokens: 2_524,
        num_sources_used: 0,
        num_server_side_tools_used: 1,
      },
    }),
    cost: 4_003_700_000n,
    unpriced: 'num_server_side_tools_used',
  },
  // 100 × 1 000 000 + 10 × 5 000 000: a search that failed, or that opened a page, is an item and no search
  ...Object.entries(NO_SEARCHES).map(([name, rest]) => ({
    name: `no search, of a reply with an item of one, in ${name}`,
    dialect: responses,
    price: SEARCHED,
    request: { tools: [{ type: 'web_search' }] },
    reply: response(100, 10, { output: [SEARCH_ITEM], ...rest }),
    cost: 150_000_000n,
  })),
  {
    name: 'no search, where the stream ends',
    dialect: responses,
    price: SEARCHED,
    request: { tools: [{ type: 'web_search' }] },
    reply: `${searchStream({ tool_usage: NONE_BY_TOOL }, { tool_usage: NONE_BY_TOOL })}data: [DONE]\n\n`,
    cost: 150_000_000n,
  },
  {
    name: 'no search where the stream begins, and no word of it where it ends',
    dialect: responses,
    price: SEARCHED,
    request: { tools: [{ type: 'web_search' }] },
    reply: searchStream({ tool_usage: NONE_BY_TOOL }, {}),
    cost: 150_000_000n,
    unpriced: 'tool_usage web_search',
  },
  {
    name: 'a search of which the reply has an item alone, and a report of another tool',
    dialect: responses,
    price: SEARCHED,
    request: { tools: [{ type: 'web_search' }] },
    reply: response(100, 10, { output: [SEARCH_ITEM], tool_usage: { image_gen: { input_tokens: 0 } } }),
    cost: 150_000_000n,
    unpriced: 'tool_usage web_search',
  },
  {
    name: 'no search, but a function of the client that has the name of such items',
    dialect: responses,
    price: SEARCHED,
    request: { tools: [{ type: 'web_search' }] },
    reply: response(100, 10, { tools: [{ type: 'function', name: 'web_search_call' }] }),
    cost: 150_000_000n,
  },
  {
    // 100 × 1 000 000 + 10 × 5 000 000 + 3 × 10 000 000 000
    name: 'searches under two names: once',
    dialect: chatCompletions,
    price: SEARCHED,
    reply: chat(0, 0, {
      usage: {
        prompt_tokens: 100,
        completion_tokens: 10,
        num_search_queries: 3,
        server_tool_use: { web_search_requests: 3 },
      },
    }),
    cost: 30_150_000_000n,
  },
  {
    // 33 × 1 000 000 + 7163 × 5 000 000 + 18 × 5 000 000 000
    name: 'searches of Perplexity',
    dialect: chatCompletions,
    price: { ...PLAIN, calls: { web_search: '0.005' } },
    reply: chat(0, 0, {
      usage: { prompt_tokens: 33, completion_tokens: 7_163, total_tokens: 7_196, num_search_queries: 18 },
    }),
    cost: 125_848_000_000n,
  },
  {
    // 11 × 1 000 000 + 392 × 5 000 000 + 5 000 000 000, as recorded
    name: 'a fee for each request, as of Perplexity',
    dialect: chatCompletions,
    price: { ...PLAIN, request: '0.005' },
    reply: chat(11, 392),
    cost: 6_971_000_000n,
  },
  {
    // 700 × 1 000 000 + 200 × 100 000 + 100 × 1 250 000 + 10 × 5 000 000 + 2 × 10 000 000 000
    name: "searches of Perplexity's agents, with its names for what the cache had",
    dialect: responses,
    price: SEARCHED,
    request: { tools: [{ type: 'web_search' }] },
    reply: response(0, 0, {
      output: [{ type: 'search_results', queries: ['q'], results: [] }],
      usage: {
        input_tokens: 1_000,
        input_tokens_details: { cache_read_input_tokens: 200, cache_creation_input_tokens: 100 },
        output_tokens: 10,
        total_tokens: 1_010,
        tool_calls_details: { search_web: { invocation: 2 } },
      },
    }),
    cost: 20_895_000_000n,
  },
  {
    // 100 × 1 000 000 + 10 × 5 000 000
    name: "pages that Perplexity's agents have fetched, without a price",
    dialect: responses,
    price: SEARCHED,
    reply: response(0, 0, {
      usage: { input_tokens: 100, output_tokens: 10, tool_calls_details: { fetch_url: { invocation: 1 } } },
    }),
    cost: 150_000_000n,
    unpriced: 'tool_calls_details fetch_url.invocation',
  },
  {
    name: 'a tool without a price',
    dialect: messages,
    price: SEARCHED,
    reply: message({ input_tokens: 10, output_tokens: 2, server_tool_use: { code_execution_requests: 1 } }),
    cost: 20_000_000n,
    unpriced: 'server_tool_use code_execution_requests',
  },
];

/** 45 KB, as OpenAI repeats them between the tier and the usage. */
const MANY_TOOLS = Array.from({ length: 60 }, (_, at) => ({
  type: 'function',
  name: `f${at}`,
  description: `"${'x'.repeat(700)}\\`,
}));
const words = (bytes: number): object => ({
  type: 'message',
  content: [{ type: 'output_text', text: 'a'.repeat(bytes) }],
});
const longStream = (...last: readonly object[]): string =>
  event({ type: 'response.created', response: { id: 'r', service_tier: 'auto', tools: MANY_TOOLS } }) +
  event({ type: 'response.output_text.delta', delta: 'a' }).repeat(5_000) +
  last.map((one) => event({ type: 'response.completed', response: one })).join('');
const LONG_EVENTS: readonly Bill[] = [
  ...[10, 50_000, 400_000].map((bytes) => ({
    // 100 × 1 000 000 + 10 × 5 000 000
    name: `of a tier that the provider did not give, behind ${bytes} bytes of an answer`,
    dialect: responses,
    price: TIERED,
    request: { service_tier: 'priority' },
    reply: longStream({ output: [words(bytes)], service_tier: 'default', tools: MANY_TOOLS, ...response(100, 10) }),
    cost: 150_000_000n,
  })),
  {
    name: 'of a tier without a price',
    dialect: responses,
    price: TIERED,
    reply: longStream({ service_tier: 'scale', tools: MANY_TOOLS, ...response(100, 10) }),
    cost: 150_000_000n,
    unpriced: 'service_tier scale',
  },
  ...[0, 2].map((count) => ({
    // 100 × 1 000 000 + 10 × 5 000 000 + count × 10 000 000 000
    name: `with ${count} searches`,
    dialect: responses,
    price: SEARCHED,
    request: { tools: [{ type: 'web_search' }] },
    reply:
      event({ type: 'response.output_item.done', item: SEARCH_ITEM }) +
      longStream({
        tool_usage: { web_search: { num_requests: count } },
        tools: MANY_TOOLS,
        ...response(100, 10),
      }),
    cost: 150_000_000n + BigInt(count) * 10_000_000_000n,
  })),
  {
    // 10 × 1 000 000 + 90 × 5 000 000 + 7 × 10 000 000 000
    name: 'of Perplexity, with usage before what it found, which has the same names',
    dialect: chatCompletions,
    price: SEARCHED,
    reply: Array.from({ length: 30 }, (_, at) =>
      event({
        id: 'p',
        usage: { prompt_tokens: 10, completion_tokens: (at + 1) * 3, num_search_queries: 7 },
        search_results: MANY_TOOLS.map((tool) => ({ ...tool, usage: { prompt_tokens: 0, completion_tokens: 0 } })),
        choices: [{ index: 0, delta: { content: 'a' } }],
      }),
    ).join(''),
    cost: 70_460_000_000n,
  },
  {
    // 100 × 1 750 000 + 10 × 9 000 000
    name: 'of which the stream goes on',
    dialect: responses,
    price: TIERED,
    request: { service_tier: 'priority' },
    reply: longStream(
      { service_tier: 'default', tools: MANY_TOOLS, ...response(1, 1) },
      { service_tier: 'priority', ...response(100, 10) },
    ),
    cost: 265_000_000n,
  },
];

const LONG_DOCUMENTS: readonly Bill[] = [
  {
    // 100 × 1 000 000 + 10 × 5 000 000
    name: 'of a tier that the provider did not give, between a long answer and many tools',
    dialect: responses,
    price: TIERED,
    request: { service_tier: 'priority' },
    reply: { output: [words(400_000)], service_tier: 'default', usage: response(100, 10)['usage'], tools: MANY_TOOLS },
    cost: 150_000_000n,
  },
  {
    // 100 × 1 000 000 + 10 × 5 000 000 + 2 × 10 000 000 000
    name: 'with searches between a long answer and many tools',
    dialect: responses,
    price: SEARCHED,
    request: { tools: [{ type: 'web_search' }] },
    reply: {
      output: [SEARCH_ITEM, words(400_000)],
      tool_usage: { web_search: { num_requests: 2 } },
      usage: response(100, 10)['usage'],
      tools: MANY_TOOLS,
    },
    cost: 20_150_000_000n,
  },
  {
    // 100 × 1 000 000 + 10 × 5 000 000
    name: 'of a tier without a price, and usage before what vLLM tells of the prompt',
    dialect: chatCompletions,
    price: TIERED,
    reply: {
      choices: [{ message: { content: 'a'.repeat(400_000) } }],
      service_tier: 'scale',
      usage: chat(100, 10)['usage'],
      prompt_logprobs: MANY_TOOLS,
    },
    cost: 150_000_000n,
    unpriced: 'service_tier scale',
  },
];

const SPOKEN = { ...PLAIN, input_audio: '10', cached_audio: '2.5', output_audio: '20' };
const AUDIO: readonly Bill[] = [
  {
    // (113 - 13) × 1 000 000 + 13 × 10 000 000 + (110 - 82) × 5 000 000 + 82 × 20 000 000
    name: 'audio in and out',
    dialect: chatCompletions,
    price: SPOKEN,
    request: { modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'wav' } },
    reply: chat(113, 110, {
      usage: {
        prompt_tokens: 113,
        completion_tokens: 110,
        total_tokens: 223,
        prompt_tokens_details: { cached_tokens: 0, text_tokens: 100, audio_tokens: 13 },
        completion_tokens_details: { reasoning_tokens: 0, text_tokens: 28, audio_tokens: 82 },
      },
    }),
    cost: 2_010_000_000n,
  },
  {
    // Of 100: 60 of text, 10 of them cached, and 40 of audio, 30 of them cached.
    // 50 × 1 000 000 + 10 × 100 000 + 10 × 10 000 000 + 30 × 2 500 000 + 2 × 5 000 000
    name: 'audio from the cache',
    dialect: chatCompletions,
    price: SPOKEN,
    reply: chat(100, 2, {
      usage: {
        prompt_tokens: 100,
        completion_tokens: 2,
        prompt_tokens_details: { cached_tokens: 40, audio_tokens: 40, cached_tokens_details: { audio_tokens: 30 } },
      },
    }),
    cost: 236_000_000n,
  },
  {
    // (10 × 10 000 000 + 2 × 5 000 000) × 0.5
    name: 'audio at a service tier',
    dialect: chatCompletions,
    price: { ...SPOKEN, service_tiers: { flex: '0.5' } },
    request: { service_tier: 'flex' },
    reply: chat(10, 2, {
      usage: { prompt_tokens: 10, completion_tokens: 2, prompt_tokens_details: { audio_tokens: 10 } },
    }),
    cost: 55_000_000n,
  },
  {
    // 13 × 1 000 000 + 2 × 5 000 000: as text, where the provider has one price for both
    name: 'audio that is read, without a price of its own',
    dialect: chatCompletions,
    price: PLAIN,
    reply: chat(13, 2, {
      usage: { prompt_tokens: 13, completion_tokens: 2, prompt_tokens_details: { audio_tokens: 13 } },
    }),
    cost: 23_000_000n,
  },
  {
    name: 'audio that was made, without a price of its own',
    dialect: chatCompletions,
    price: PLAIN,
    reply: chat(13, 2, {
      usage: { prompt_tokens: 13, completion_tokens: 2, completion_tokens_details: { audio_tokens: 2 } },
    }),
    cost: 23_000_000n,
    unpriced: 'output_audio',
  },
];

const REPORTED = { ...PLAIN, cost: 'reported' };
const DRAWN = { image: '0.04', cost: 'reported' };
const COSTS: readonly Bill[] = [
  {
    // 0.000419 dollars, as recorded
    name: 'of OpenRouter',
    dialect: chatCompletions,
    price: REPORTED,
    reply: chat(0, 0, {
      usage: {
        prompt_tokens: 109,
        completion_tokens: 62,
        total_tokens: 171,
        cost: 0.000419,
        is_byok: false,
        cost_details: { upstream_inference_cost: 0.000419, upstream_inference_prompt_cost: 0.000109 },
      },
    }),
    cost: 419_000_000n,
  },
  {
    // 0.00002095 of OpenRouter's, and 0.000419 of the provider's own bill
    name: "of OpenRouter, on a key of the operator's own",
    dialect: chatCompletions,
    price: REPORTED,
    reply: chat(0, 0, {
      usage: {
        prompt_tokens: 109,
        completion_tokens: 62,
        cost: 0.00002095,
        is_byok: true,
        cost_details: { upstream_inference_cost: 0.000419 },
      },
    }),
    cost: 439_950_000n,
  },
  {
    // 1 176 500 ticks of 100 pico-dollars, as recorded
    name: 'of xAI',
    dialect: chatCompletions,
    price: REPORTED,
    reply: chat(0, 0, {
      usage: {
        prompt_tokens: 12,
        completion_tokens: 1,
        total_tokens: 241,
        prompt_tokens_details: { text_tokens: 12, audio_tokens: 0, image_tokens: 0, cached_tokens: 2 },
        completion_tokens_details: { reasoning_tokens: 228, audio_tokens: 0 },
        num_sources_used: 0,
        cost_in_usd_ticks: 1_176_500,
      },
    }),
    cost: 117_650_000n,
  },
  {
    // 0.00545 dollars: tokens and the fee of the request, whatever the searches cost
    name: 'of Perplexity',
    dialect: chatCompletions,
    price: REPORTED,
    reply: chat(0, 0, {
      usage: {
        prompt_tokens: 8,
        completion_tokens: 439,
        total_tokens: 447,
        num_search_queries: 3,
        cost: { input_tokens_cost: 0.00001, output_tokens_cost: 0.00044, request_cost: 0.005, total_cost: 0.00545 },
      },
    }),
    cost: 5_450_000_000n,
  },
  {
    // 0.0102 dollars
    name: "of Perplexity's agents",
    dialect: responses,
    price: REPORTED,
    reply: response(0, 0, {
      usage: {
        input_tokens: 100,
        output_tokens: 10,
        cost: { currency: 'USD', input_cost: 0.0001, output_cost: 0.0001, tool_calls_cost: 0.01, total_cost: 0.0102 },
        tool_calls_details: { search_web: { invocation: 2 } },
      },
    }),
    cost: 10_200_000_000n,
  },
  {
    // 9 × 1 000 000 + 9 × 5 000 000: by the prices
    name: 'in another currency',
    dialect: responses,
    price: REPORTED,
    reply: response(0, 0, {
      usage: { input_tokens: 9, output_tokens: 9, cost: { currency: 'EUR', total_cost: 0.01 } },
    }),
    cost: 54_000_000n,
  },
  {
    // 1.25e-7 dollars, and 0.0000000000001 more: up to the next whole pico-dollar
    name: 'in digits beyond the last',
    dialect: responses,
    price: REPORTED,
    reply: response(0, 0, { usage: { input_tokens: 1, output_tokens: 1, cost: 1.250001e-7 } }),
    cost: 125_001n,
  },
  // Free, as some models of OpenRouter are.
  {
    name: 'nothing',
    dialect: chatCompletions,
    price: REPORTED,
    reply: chat(9, 9, { usage: { prompt_tokens: 9, completion_tokens: 9, cost: 0 } }),
    cost: 0n,
  },
  // 9 × 1 000 000 + 9 × 5 000 000: by the prices
  ...[{}, { cost: -1 }, { cost: '0.1' }, { cost: 1e300 }, { cost_in_usd_ticks: 1.5 }].map((cost) => ({
    name: `that cannot be read: ${JSON.stringify(cost)}`,
    dialect: chatCompletions,
    price: REPORTED,
    reply: chat(0, 0, { usage: { prompt_tokens: 9, completion_tokens: 9, ...cost } }),
    cost: 54_000_000n,
  })),
  {
    // 0.000001 dollars
    name: 'of a typed question',
    dialect: systemone,
    price: { input: '1', cost: 'reported' },
    reply: { answers: {}, usage: { input_tokens: 40, output_tokens: 2, cost: 0.000001 } },
    cost: 1_000_000n,
  },
  {
    // 200 000 000 ticks of 100 pico-dollars
    name: 'of images of xAI',
    dialect: imageGenerations,
    price: DRAWN,
    request: { prompt: 'x', n: 2 },
    reply: { data: [{ b64_json: 'aGk=' }, { b64_json: 'aGk=' }], usage: { cost_in_usd_ticks: 200_000_000 } },
    cost: 20_000_000_000n,
  },
  {
    name: 'of the image of a stream',
    dialect: imageGenerations,
    price: DRAWN,
    request: { prompt: 'x' },
    reply: event({ type: 'image_generation.completed', b64_json: 'aGk=', usage: { cost: 0.02 } }),
    cost: 20_000_000_000n,
  },
  {
    // 2 × 40 000 000 000: each event has a report of its own
    name: 'of one of the images of a stream: by the prices',
    dialect: imageGenerations,
    price: DRAWN,
    request: { prompt: 'x', n: 2 },
    reply: event({ type: 'image_generation.completed', b64_json: 'aGk=', usage: { cost: 0.02 } }).repeat(2),
    cost: 80_000_000_000n,
  },
  {
    // 9 × 1 000 000 + 9 × 5 000 000
    name: 'that the price does not ask for',
    dialect: chatCompletions,
    price: PLAIN,
    reply: chat(0, 0, { usage: { prompt_tokens: 9, completion_tokens: 9, cost: 0.5 } }),
    cost: 54_000_000n,
  },
];

describe('a reported cost is charged up to what the prices make of its usage', () => {
  const ROWS: readonly (readonly [
    name: string,
    price: object,
    usage: object,
    ceiling: bigint | null,
    request?: object,
  ])[] = [
    // 100 × 2 000 000 + 10 × 5 000 000: at the dearest rate of the input, that of an hour of cache
    ['tokens', REPORTED, {}, 250_000_000n],
    // (100 × 2 000 000 + 10 × 5 000 000) × 1.1 + 2 × 10 000 000 000 + 5 000 000 000
    [
      'a factor, calls and a fee',
      { ...REPORTED, factor: '1.1', calls: { web_search: '0.01' }, request: '0.005' },
      { num_search_queries: 2 },
      25_275_000_000n,
    ],
    // 100 × 2 000 000 + 10 × 5 000 000: whether flex was given the reply does not say
    [
      'flex that was asked for',
      { ...REPORTED, service_tiers: { flex: '0.5' } },
      {},
      250_000_000n,
      { service_tier: 'flex' },
    ],
    // (100 × 2 000 000 + 10 × 5 000 000) × 2
    [
      'priority that was asked for',
      { ...REPORTED, service_tiers: { priority: '2' } },
      {},
      500_000_000n,
      { service_tier: 'priority' },
    ],
    // (100 × 2 000 000 + 10 × 5 000 000) × 1.1
    ['a region that the account may have', { ...REPORTED, geos: { us: '1.1' } }, {}, 275_000_000n],
    // What the searches may cost nobody knows: the hold bounds it.
    ['calls without a price', REPORTED, { num_search_queries: 2 }, null],
    ['no cost', REPORTED, { cost: null }, null],
    ['a cost that the price does not ask for', PLAIN, {}, null],
  ];
  for (const [name, price, usage, ceiling, request = {}] of ROWS) {
    test(name, () => {
      const counts = { prompt_tokens: 100, completion_tokens: 10, cost: 7, ...usage };
      const read = priceOf(price);
      const rated = rateReply(chatCompletions, request, JSON.stringify(chat(0, 0, { usage: counts })), read);
      assert.equal(rated.usage === null ? undefined : costCeiling(rated.usage, read), ceiling);
    });
  }

  test('images', () => {
    const read = priceOf({ ...DRAWN, factor: '1.1' });
    const reply = { data: [{ b64_json: 'aGk=' }, { b64_json: 'aGk=' }], usage: { cost: 7 } };
    const { usage } = rateReply(imageGenerations, { prompt: 'x', n: 2 }, JSON.stringify(reply), read);
    // 2 × 40 000 000 000 × 1.1
    assert.equal(usage === null ? undefined : costCeiling(usage, read), 88_000_000_000n);
  });

  for (const [name, billed, authorizedAmount, charge] of [
    ['and the rest goes to suspense', true, 1_000n, 250n],
    ['that of who is not billed, too', false, 1_000n, null],
    ['also where nothing else bounds what it costs', false, null, null],
  ] as const) {
    test(name, () => {
      const settled = settle({
        outcome: 'completed',
        usage: { ...NO_COUNTS, inputTokens: 100, outputTokens: 10, details: { reportedCost: picoUsd(900n) } },
        usageSource: 'reported',
        price: priceOf(REPORTED),
        billed,
        authorizedAmount: authorizedAmount === null ? null : picoUsd(authorizedAmount),
        chargeMax: picoUsd(250n),
      });
      assert.deepEqual([settled.ratedCost, settled.charge, settled.suspense], [900n, charge, 650n]);
    });
  }
});

test('a fee for each request is none for a count of tokens', () => {
  const price = priceOn('count_tokens', priceOf({ ...PLAIN, request: '0.005' }));
  assert.equal(rateReply(countTokens, {}, '{"input_tokens":588}', price).cost, 0n);
});

for (const [title, bills] of Object.entries({
  'tiers by the size of the input': TIERS,
  'service tiers': SERVICE_TIERS,
  'speeds, regions and factors': VARIED,
  'calls of tools, and of requests': CALLS,
  'last events that are longer than what is kept of a long reply': LONG_EVENTS,
  'documents that are longer than what is kept of them': LONG_DOCUMENTS,
  audio: AUDIO,
  'a cost that the reply reports': COSTS,
})) {
  describe(title, () => {
    for (const { name, dialect, price, request = {}, reply, cost, unpriced = null } of bills) {
      test(name, () => {
        const text = typeof reply === 'string' ? reply : JSON.stringify(reply);
        const rated = rateReply(dialect, request, text, priceOf(price));
        assert.deepEqual([rated.cost, rated.unpriced], [cost, unpriced]);
      });
    }
  });
}

/** A request with a bound of so many input tokens, nothing but its bytes. */
const ofBytes = (bytes: number, fields: object = {}): object => {
  const request = { messages: [{ role: 'user', content: '' }], max_tokens: 10, ...fields };
  const missing = bytes - JSON.stringify({ model: 'm', ...request }).length;
  return { ...request, messages: [{ role: 'user', content: 'x'.repeat(missing) }] };
};

const UNASKED = { ...PLAIN, calls: { web_search: { usd: '0.01', max: 50, unasked: true } } };

interface HoldRow {
  readonly name: string;
  readonly dialect?: Dialect;
  readonly request: object;
  readonly prices: readonly (object | null)[];
  /** Pico-dollars, or the field that is refused. */
  readonly held: bigint | string;
}

/** 1.25 for what may be written to the cache is the dearest of the plain input prices. */
const HOLDS: readonly HoldRow[] = [
  // 1000 × 1 250 000 + 10 × 5 000 000
  { name: 'the plain price', request: ofBytes(1_000), prices: [PLAIN], held: 1_300_000_000n },
  // 1000 × 1 250 000 + 10 × 5 000 000: no tier can be reached
  { name: 'a tier out of reach', request: ofBytes(1_000), prices: [LARGE], held: 1_300_000_000n },
  // 200 000 × 2 000 000 + 10 × 7 500 000
  { name: 'a tier in reach', request: ofBytes(200_000), prices: [LARGE], held: 400_075_000_000n },
  {
    // 1000 × 1 250 000 + 10 × 5 000 000: a larger request may be cheaper by the token, and this one may stay small
    name: 'a cheaper tier in reach',
    request: ofBytes(1_000),
    prices: [{ ...PLAIN, tiers: [{ from_input: 500, input: '0.5', output: '1' }] }],
    held: 1_300_000_000n,
  },
  {
    // 1000 × 1 750 000 + 10 × 9 000 000, and from 1000 tokens on 3 500 000: 1000 × 3 500 000 + 90 000 000
    name: 'the tier that is named, in the tier of its size',
    request: ofBytes(1_000, { service_tier: 'priority' }),
    prices: [TIERED],
    held: 3_590_000_000n,
  },
  {
    // 999 × 1 750 000 + 10 × 9 000 000
    name: 'the tier that is named, below the tier of its size',
    request: ofBytes(999, { service_tier: 'priority' }),
    prices: [TIERED],
    held: 1_838_250_000n,
  },
  {
    // 1000 × 1 250 000 + 10 × 5 000 000: the reply may say that it was served plainly
    name: 'a cheaper tier that is named',
    request: ofBytes(1_000, { service_tier: 'flex' }),
    prices: [TIERED],
    held: 1_300_000_000n,
  },
  {
    // 1000 × 3 500 000 + 10 × 9 000 000: none is named, so it may be the default
    name: "the deployment's default",
    request: ofBytes(1_000),
    prices: [{ ...TIERED, service_tier_default: 'priority' }],
    held: 3_590_000_000n,
  },
  {
    // 1000 × 3 500 000 + 10 × 9 000 000
    name: 'what "auto" may be',
    request: ofBytes(1_000, { service_tier: 'auto' }),
    prices: [PLAIN, { ...TIERED, service_tier_default: 'priority' }],
    held: 3_590_000_000n,
  },
  {
    // 1000 × 2 000 000 × 6 × 1.1 + 10 × 5 000 000 × 6 × 1.1, with an hour of cache
    name: 'a speed and a region, with an hour of cache',
    dialect: messages,
    request: ofBytes(1_000, {
      speed: 'fast',
      inference_geo: 'us',
      system: [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral', ttl: '1h' } }],
    }),
    prices: [FAST],
    held: 13_530_000_000n,
  },
  {
    // 1000 × 1 375 000 + 10 × 5 500 000: the dearer of two deployments
    name: 'the factor of any deployment',
    request: ofBytes(1_000),
    prices: [PLAIN, { ...PLAIN, factor: '1.1' }],
    held: 1_430_000_000n,
  },
  {
    // 1000 × 1 250 000 + 10 × 5 000 000: only the second can serve it
    name: 'those that can serve what is named, and no others',
    request: ofBytes(1_000, { service_tier: 'flex' }),
    prices: [{ ...PLAIN, input: '100' }, TIERED, null],
    held: 1_300_000_000n,
  },
  {
    // (1000 × 1 250 000 + 10 × 5 000 000) × 1.1: none is named, and the account there may have one
    name: 'a region that the workspace may have chosen',
    dialect: messages,
    request: ofBytes(1_000),
    prices: [FAST],
    held: 1_430_000_000n,
  },
  {
    // 1 000 000 × 1 250 000 + 10 × 5 000 000 + 5 × 10 000 000 000: what is found is read as input
    name: 'as many searches as the tool allows',
    dialect: messages,
    request: ofBytes(1_000, { tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 5 }] }),
    prices: [PLAIN, SEARCHED],
    held: 1_300_050_000_000n,
  },
  {
    // 1 000 000 × 1 250 000 + 10 × 5 000 000 + 8 × 10 000 000 000
    name: 'as many searches as the price says',
    dialect: messages,
    request: ofBytes(1_000, { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }),
    prices: [{ ...PLAIN, calls: { web_search: { usd: '0.01', max: 8 } } }],
    held: 1_330_050_000_000n,
  },
  {
    name: 'searches that nothing bounds',
    dialect: messages,
    request: ofBytes(1_000, { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }),
    prices: [SEARCHED],
    held: 'tools',
  },
  {
    // 1 000 000 × 1 250 000 + 10 × 5 000 000 + 5 × 10 000 000 000: `max_tool_calls` is a parameter of Responses alone
    name: 'calls that a parameter of another format is to bound',
    dialect: messages,
    request: ofBytes(1_000, {
      max_tool_calls: 0,
      tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 5 }],
    }),
    prices: [SEARCHED],
    held: 1_300_050_000_000n,
  },
  {
    // 1 000 000 × 1 250 000 + 10 × 5 000 000 + 2 × 10 000 000 000
    name: 'a bound that is no whole number',
    dialect: messages,
    request: ofBytes(1_000, { tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 1.5 }] }),
    prices: [SEARCHED],
    held: 1_270_050_000_000n,
  },
  {
    // 1 000 000 × 1 250 000 + 10 × 5 000 000 + 100 × 10 000 000 000
    name: 'the bound of a search beside the tools of a coding agent',
    dialect: messages,
    request: ofBytes(100_000, {
      tools: [
        { name: 'edit', description: 'x'.repeat(90_000), input_schema: {} },
        { type: 'web_search_20250305', name: 'web_search', max_uses: 100 },
      ],
    }),
    prices: [{ ...PLAIN, calls: { web_search: { usd: '0.01', max: 8 } } }],
    held: 2_250_050_000_000n,
  },
  {
    // 1 000 000 × 1 250 000 + 10 × 5 000 000 + 100 × 10 000 000 000
    name: 'the bound of a search beside any number of tools',
    dialect: messages,
    request: ofBytes(400_000, {
      tools: [
        { name: 'edit', description: 'x'.repeat(300_000), input_schema: {} },
        { type: 'web_search_20250305', name: 'web_search', max_uses: 100 },
      ],
    }),
    prices: [{ ...PLAIN, calls: { web_search: { usd: '0.01', max: 8 } } }],
    held: 2_250_050_000_000n,
  },
  {
    name: 'a bound within a longer search than is read',
    dialect: messages,
    request: ofBytes(100_000, {
      tools: [
        { type: 'web_search_20250305', name: 'web_search', allowed_domains: ['x'.repeat(70_000)], max_uses: 100 },
      ],
    }),
    prices: [{ ...PLAIN, calls: { web_search: { usd: '0.01', max: 8 } } }],
    held: 'tools',
  },
  {
    // 1000 × 1 250 000 + 10 × 5 000 000 + 50 × 10 000 000 000
    name: 'searches of a model that makes them unasked',
    request: ofBytes(1_000),
    prices: [UNASKED],
    held: 501_300_000_000n,
  },
  {
    // 1000 × 1 250 000 + 10 × 5 000 000 + 50 × 10 000 000 000
    name: 'searches that one deployment makes unasked, beside one whose price has no maximum',
    request: ofBytes(1_000),
    prices: [UNASKED, { ...PLAIN, calls: { web_search: '0.01' } }],
    held: 501_300_000_000n,
  },
  {
    // 1000 × 1 250 000 + 10 × 5 000 000 + 50 × 20 000 000 000: what is held for may be called at the dearest of both
    name: 'searches that one deployment makes unasked, beside a dearer one that makes more where it is asked',
    request: ofBytes(1_000),
    prices: [UNASKED, { ...PLAIN, calls: { web_search: { usd: '0.02', max: 100 } } }],
    held: 1_001_300_000_000n,
  },
  {
    // 1 000 000 × 1 250 000 + 10 × 5 000 000 + 50 × 10 000 000 000
    name: 'searches that are made unasked, whatever a tool allows',
    request: ofBytes(1_000, { tools: [{ type: 'web_search', max_uses: 0 }] }),
    prices: [UNASKED],
    held: 1_750_050_000_000n,
  },
  {
    // 1 000 000 × 1 250 000 + 10 × 5 000 000 + 60 × 10 000 000 000
    name: 'searches that are made unasked, of which the tools allow more',
    request: ofBytes(1_000, {
      tools: [
        { type: 'web_search', max_uses: 30 },
        { type: 'openrouter:web_search', max_uses: 30 },
      ],
    }),
    prices: [UNASKED],
    held: 1_850_050_000_000n,
  },
  {
    // 1 000 000 × 1 250 000 + 10 × 5 000 000 + 50 × 10 000 000 000
    name: 'searches that are made unasked, whatever a response may call',
    dialect: responses,
    request: { input: 'x', max_output_tokens: 10, max_tool_calls: 0, tools: [{ type: 'web_search' }] },
    prices: [UNASKED],
    held: 1_750_050_000_000n,
  },
  {
    name: 'searches that are made unasked, beside a deployment that nothing bounds where they are asked for',
    request: ofBytes(1_000, { tools: [{ type: 'web_search' }] }),
    prices: [UNASKED, { ...PLAIN, calls: { web_search: '0.01' } }],
    held: 'tools',
  },
  {
    // 1 000 000 × 1 250 000 + 10 × 5 000 000 + 4 × 10 000 000 000
    name: 'as many calls as a response may make',
    dialect: responses,
    request: { input: 'x', max_output_tokens: 10, max_tool_calls: 4, tools: [{ type: 'web_search' }] },
    prices: [SEARCHED],
    held: 1_290_050_000_000n,
  },
  {
    // 1 000 000 × 1 250 000 + 10 × 5 000 000: Codex lists it in every request
    name: 'a search that Codex could ask for',
    dialect: responses,
    request: { input: 'x', max_output_tokens: 10, tools: [{ type: 'web_search' }] },
    prices: [PLAIN, SEARCHED],
    held: 1_250_050_000_000n,
  },
  {
    name: 'a container of the provider',
    dialect: messages,
    request: ofBytes(1_000, { tools: [{ type: 'code_execution_20250825', name: 'x' }] }),
    prices: [{ ...PLAIN, calls: { code_execution: '0.01' } }],
    held: 'tools',
  },
  {
    // 1 000 000 × 1 250 000 + 10 × 5 000 000: a context that Google keeps is input, and may be as long as any
    name: 'a context that the provider keeps',
    request: ofBytes(1_000, { extra_body: { google: { cached_content: 'cachedContents/1' } } }),
    prices: [PLAIN],
    held: 1_250_050_000_000n,
  },
  // 1000 × 1 250 000 + 10 × 5 000 000 + 5 000 000 000
  { name: 'a fee', request: ofBytes(1_000), prices: [PLAIN, { ...PLAIN, request: '0.005' }], held: 6_300_000_000n },
  // 1000 × 10 000 000 + 10 × 5 000 000
  { name: 'audio that may be read', request: ofBytes(1_000), prices: [SPOKEN], held: 10_050_000_000n },
  {
    // 1000 × 10 000 000 + 10 × 20 000 000
    name: 'audio that is asked for',
    request: ofBytes(1_000, { modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'wav' } }),
    prices: [PLAIN, SPOKEN],
    held: 10_200_000_000n,
  },
  {
    // 2 × 80 000 000 000: nothing bounds the tokens, by which the tier is chosen
    name: 'images in the dearest of their tiers',
    dialect: imageGenerations,
    request: { prompt: 'x', n: 2 },
    prices: [
      { image: '0.04' },
      {
        image: '0.04',
        tiers: [
          { from_input: 1_000, image: '0.08' },
          { from_input: 5_000, image: '0.06' },
        ],
      },
    ],
    held: 160_000_000_000n,
  },
  {
    name: 'audio that no deployment has a price for',
    request: ofBytes(1_000, { modalities: ['text', 'audio'] }),
    prices: [PLAIN],
    held: 'modalities',
  },
  {
    name: 'a tier that no deployment has a price for',
    request: ofBytes(1_000, { service_tier: 'scale' }),
    prices: [TIERED],
    held: 'service_tier',
  },
  {
    name: 'a speed that no deployment has a price for',
    dialect: messages,
    request: ofBytes(1_000, { speed: 'fast' }),
    prices: [TIERED],
    held: 'speed',
  },
  {
    name: 'what no one deployment has all of',
    dialect: messages,
    request: ofBytes(1_000, { speed: 'fast', service_tier: 'priority' }),
    prices: [TIERED, FAST],
    held: 'speed',
  },
];

describe('what is held', () => {
  for (const { name, dialect = chatCompletions, request, prices, held } of HOLDS)
    test(name, () => assert.equal(holdFor(dialect, request, prices).held, held));
});
