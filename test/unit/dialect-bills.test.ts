// Golden bills: what a provider reports, in each shape that providers report it, and what it costs to the last
// pico-dollar. The expected amounts are written out, with their arithmetic beside them; the shapes are those of
// recorded replies.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Price } from '../../src/domain/models/price.ts';
import { picoUsd } from '../../src/domain/money/pico-usd.ts';
import { rateUsage, unpricedDetail, unpricedPart } from '../../src/domain/settlement/rate-usage.ts';
import { checkUsage, NO_USAGE_BOUNDS } from '../../src/domain/usage/check-usage.ts';
import { chatCompletions } from '../../src/generation/dialects/chat-completions.ts';
import { countTokens } from '../../src/generation/dialects/count-tokens.ts';
import type { Dialect } from '../../src/generation/dialects/dialect.ts';
import { messages } from '../../src/generation/dialects/messages.ts';
import { responses } from '../../src/generation/dialects/responses.ts';
import { keptReply } from '../support/kept-replies.ts';

/**
 * Dollars per million tokens: 3 in, 0.30 cached, 3.75 written to the cache, 15 out. In pico-dollars per token six
 * digits more.
 */
const PRICE: Price = {
  version: '1',
  input: picoUsd(3_000_000n),
  cachedInput: picoUsd(300_000n),
  cacheWrite: picoUsd(3_750_000n),
  output: picoUsd(15_000_000n),
  image: null,
};
/** With 6 for what is written to the cache for an hour. */
const HOUR_PRICE: Price = { ...PRICE, hourCacheWrite: picoUsd(6_000_000n) };
/** No prices of their own for the cache, and ones that do not come out even: 0.0875 in, 0.35 out. */
const PLAIN_PRICE: Price = {
  ...PRICE,
  input: picoUsd(87_500n),
  cachedInput: null,
  cacheWrite: null,
  output: picoUsd(350_000n),
};

interface Bill {
  readonly name: string;
  readonly dialect: Dialect;
  /** The usage object of a JSON body, or a whole reply. */
  readonly usage: object | string;
  readonly price?: Price;
  /** null: cannot be charged by. */
  readonly cost: bigint | null;
  /** What the reply says it was served with and that has no price. */
  readonly unpriced?: string;
}

const NO_BOUNDS = { streamed: false, outputTokensMax: null, answers: 1 };

const event = (data: object): string => `data: ${JSON.stringify(data)}\n\n`;
const chatStream = (...events: readonly object[]): string => `${events.map(event).join('')}data: [DONE]\n\n`;
const messageStream = (start: object, delta: object): string =>
  event({ type: 'message_start', message: { content: [], stop_reason: null, usage: start } }) +
  event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: delta }) +
  event({ type: 'message_stop' });

const CHAT_BILLS: readonly Bill[] = [
  // 22 × 3 000 000 + 8 × 15 000 000
  {
    name: 'plain',
    dialect: chatCompletions,
    usage: { prompt_tokens: 22, completion_tokens: 8, total_tokens: 30 },
    cost: 186_000_000n,
  },
  {
    // (1117 - 1024) × 3 000 000 + 1024 × 300 000 + 46 × 15 000 000 = 279 000 000 + 307 200 000 + 690 000 000
    name: 'cached, reasoning inside',
    dialect: chatCompletions,
    usage: {
      prompt_tokens: 1117,
      completion_tokens: 46,
      total_tokens: 1163,
      prompt_tokens_details: { cached_tokens: 1024, audio_tokens: 0 },
      completion_tokens_details: {
        reasoning_tokens: 40,
        audio_tokens: 0,
        accepted_prediction_tokens: 0,
        rejected_prediction_tokens: 0,
      },
    },
    cost: 1_276_200_000n,
  },
  {
    // 1117 × 87 500 + 46 × 350 000: no price for cached tokens means the plain one
    name: 'cached, where the catalog has no price for it',
    dialect: chatCompletions,
    usage: {
      prompt_tokens: 1117,
      completion_tokens: 46,
      total_tokens: 1163,
      prompt_tokens_details: { cached_tokens: 1024 },
    },
    price: PLAIN_PRICE,
    cost: 113_837_500n,
  },
  {
    // (339 - 320) × 3 000 000 + 320 × 300 000 + 92 × 15 000 000 = 57 000 000 + 96 000 000 + 1 380 000 000
    name: 'DeepSeek: hits and misses',
    dialect: chatCompletions,
    usage: {
      prompt_tokens: 339,
      completion_tokens: 92,
      total_tokens: 431,
      prompt_cache_hit_tokens: 320,
      prompt_cache_miss_tokens: 19,
    },
    cost: 1_533_000_000n,
  },
  {
    // (60 - 20) × 3 000 000 + 20 × 300 000 + 10 × 15 000 000 = 120 000 000 + 6 000 000 + 150 000 000
    name: 'Moonshot: cached beside the details, in the last choice of a stream',
    dialect: chatCompletions,
    usage: chatStream({
      choices: [
        {
          index: 0,
          delta: {},
          usage: { prompt_tokens: 60, completion_tokens: 10, total_tokens: 70, cached_tokens: 20 },
        },
      ],
    }),
    cost: 276_000_000n,
  },
  {
    // (5000 - 1000 - 3000) × 3 000 000 + 1000 × 300 000 + 3000 × 3 750 000 + 100 × 15 000 000
    // = 3 000 000 000 + 300 000 000 + 11 250 000 000 + 1 500 000 000
    name: 'OpenRouter: cache read and written',
    dialect: chatCompletions,
    usage: {
      prompt_tokens: 5000,
      completion_tokens: 100,
      total_tokens: 5100,
      cost: 0.0184,
      is_byok: false,
      prompt_tokens_details: { cached_tokens: 1000, cache_write_tokens: 3000, audio_tokens: 0, video_tokens: 0 },
      cost_details: { upstream_inference_cost: null },
      completion_tokens_details: { reasoning_tokens: 0, image_tokens: 0, audio_tokens: 0 },
    },
    cost: 16_050_000_000n,
  },
  {
    // (12 - 2) × 3 000 000 + 2 × 300 000 + (1 + 228) × 15 000 000: 12 + 1 + 228 = 241, so the reasoning stands beside
    // the completion
    name: 'xAI: reasoning outside',
    dialect: chatCompletions,
    usage: {
      prompt_tokens: 12,
      completion_tokens: 1,
      total_tokens: 241,
      prompt_tokens_details: { text_tokens: 12, audio_tokens: 0, image_tokens: 0, cached_tokens: 2 },
      completion_tokens_details: {
        reasoning_tokens: 228,
        audio_tokens: 0,
        accepted_prediction_tokens: 0,
        rejected_prediction_tokens: 0,
      },
    },
    cost: 3_465_600_000n,
  },
  {
    // 20 × 3 000 000 + (1016 - 20) × 15 000 000: thoughts are in the total alone
    name: 'Gemini: reasoning that nothing but the total tells',
    dialect: chatCompletions,
    usage: { completion_tokens: 424, prompt_tokens: 20, total_tokens: 1016 },
    cost: 15_000_000_000n,
  },
  {
    // 43 × 3 000 000 + 10 × 15 000 000: the total says that 11 tokens of reasoning are neither inside nor added
    name: 'OpenRouter: more reasoning than output',
    dialect: chatCompletions,
    usage: {
      prompt_tokens: 43,
      completion_tokens: 10,
      total_tokens: 53,
      completion_tokens_details: { reasoning_tokens: 11, image_tokens: 0 },
    },
    cost: 279_000_000n,
  },
  {
    // 7 × 3 000 000 + 1 × 15 000 000: 163 cached tokens are no part of 7
    name: 'Grok on Azure: more cached than input',
    dialect: chatCompletions,
    usage: {
      prompt_tokens: 7,
      completion_tokens: 1,
      total_tokens: 8,
      audio_prompt_tokens: 0,
      prompt_tokens_details: { cached_tokens: 163, audio_tokens: 0, text_tokens: 7, image_tokens: 0 },
    },
    cost: 36_000_000n,
  },
  {
    // (265 - 162) × 3 000 000 + 162 × 300 000 + 52 × 15 000 000 = 309 000 000 + 48 600 000 + 780 000 000; the 256 of
    // the image are among the 265
    name: 'image tokens inside the input',
    dialect: chatCompletions,
    usage: {
      prompt_tokens: 265,
      completion_tokens: 52,
      total_tokens: 317,
      prompt_tokens_details: { cached_tokens: 162, audio_tokens: 0, text_tokens: 9, image_tokens: 256 },
    },
    cost: 1_137_600_000n,
  },
  {
    // 210 × 3 000 000 + 15 × 15 000 000
    name: 'Groq: in an object of its own',
    dialect: chatCompletions,
    usage: chatStream({
      choices: [],
      x_groq: {
        id: 'req_1',
        usage: {
          queue_time: 0.0415,
          prompt_tokens: 210,
          prompt_time: 0.0104,
          completion_tokens: 15,
          total_tokens: 225,
        },
      },
    }),
    cost: 855_000_000n,
  },
  {
    // 29 × 3 000 000 + 61 × 15 000 000: the last of cumulative reports
    name: 'Perplexity: in every event',
    dialect: chatCompletions,
    usage: chatStream(
      { choices: [], usage: { prompt_tokens: 29, completion_tokens: 2, total_tokens: 31 } },
      { choices: [], usage: { prompt_tokens: 29, completion_tokens: 61, total_tokens: 90 } },
    ),
    cost: 1_002_000_000n,
  },
  {
    // 23 × 3 000 000 + 32 × 15 000 000
    name: 'Mistral: before the choices',
    dialect: chatCompletions,
    usage:
      '{"id":"f","usage":{"prompt_tokens":23,"total_tokens":55,"completion_tokens":32},' +
      '"choices":[{"message":{"content":"\\"usage\\":{}"}}]}',
    cost: 549_000_000n,
  },
  {
    name: 'a negative count',
    dialect: chatCompletions,
    usage: { prompt_tokens: -7, completion_tokens: 1 },
    cost: null,
  },
];

const RESPONSES_BILLS: readonly Bill[] = [
  {
    // (7243 - 3072) × 3 000 000 + 3072 × 300 000 + 415 × 15 000 000 = 12 513 000 000 + 921 600 000 + 6 225 000 000
    name: 'cached, reasoning inside',
    dialect: responses,
    usage: {
      input_tokens: 7243,
      input_tokens_details: { cached_tokens: 3072 },
      output_tokens: 415,
      output_tokens_details: { reasoning_tokens: 256 },
      total_tokens: 7658,
    },
    cost: 19_659_600_000n,
  },
  {
    // (2000 - 500 - 1200) × 3 000 000 + 500 × 300 000 + 1200 × 3 750 000 + 40 × 15 000 000 = 900 000 000 + 150 000 000
    // + 4 500 000 000 + 600 000 000
    name: 'cache read and written',
    dialect: responses,
    usage: {
      input_tokens: 2000,
      input_tokens_details: { cache_write_tokens: 1200, cached_tokens: 500 },
      output_tokens: 40,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 2040,
    },
    cost: 6_150_000_000n,
  },
  {
    // (202 - 128) × 3 000 000 + 128 × 300 000 + 30 × 15 000 000 = 222 000 000 + 38 400 000 + 450 000 000
    name: 'xAI: costs and tools of its own',
    dialect: responses,
    usage: {
      input_tokens: 202,
      input_tokens_details: { cached_tokens: 128 },
      output_tokens: 30,
      output_tokens_details: { reasoning_tokens: 21 },
      total_tokens: 232,
      num_sources_used: 0,
      cost_in_usd_ticks: 1_176_500,
      context_details: { input_tokens: 202, output_tokens: 30 },
      server_side_tool_usage_details: { web_search_calls: 0 },
    },
    cost: 710_400_000n,
  },
  {
    // 34 × 3 000 000 + 28 × 15 000 000: what the image tool used is reported beside it
    name: 'a stream with tool usage beside it',
    unpriced: 'tool_usage image_gen.input_tokens',
    dialect: responses,
    usage: event({
      type: 'response.completed',
      response: {
        usage: { input_tokens: 34, output_tokens: 28, total_tokens: 62 },
        tool_usage: { image_gen: { input_tokens: 9000, output_tokens: 9000 }, web_search: { num_requests: 0 } },
      },
      copilot_usage: { token_details: [{ token_count: 9000 }] },
    }),
    cost: 522_000_000n,
  },
  {
    // 10 × 3 000 000 + 4096 × 15 000 000
    name: 'a stream stopped by its limit',
    dialect: responses,
    usage: event({
      type: 'response.incomplete',
      response: { usage: { input_tokens: 10, output_tokens: 4096, total_tokens: 4106 } },
    }),
    cost: 61_470_000_000n,
  },
];

const MESSAGES_BILLS: readonly Bill[] = [
  // 13 × 3 000 000 + 5 × 15 000 000
  { name: 'plain', dialect: messages, usage: { input_tokens: 13, output_tokens: 5 }, cost: 114_000_000n },
  {
    // 6 × 3 000 000 + 6289 × 300 000 + 3337 × 3 750 000 + 471 × 15 000 000 = 18 000 000 + 1 886 700 000 + 12 513 750
    // 000 + 7 065 000 000
    name: 'cache beside the input, thinking inside the output',
    dialect: messages,
    usage: {
      input_tokens: 6,
      cache_creation_input_tokens: 3337,
      cache_read_input_tokens: 6289,
      output_tokens: 471,
      output_tokens_details: { thinking_tokens: 300 },
      server_tool_use: { web_search_requests: 0, web_fetch_requests: 0 },
    },
    cost: 21_483_450_000n,
  },
  {
    // 10 × 3 000 000 + (200 + 50) × 3 750 000 + 1 × 15 000 000
    name: 'cache writes by lifetime alone',
    unpriced: 'cache_write_1h',
    dialect: messages,
    usage: {
      input_tokens: 10,
      cache_creation: { ephemeral_5m_input_tokens: 200, ephemeral_1h_input_tokens: 50 },
      output_tokens: 1,
    },
    cost: 982_500_000n,
  },
  {
    // 2039 × 3 000 000 + 100 × 300 000 + 87 × 15 000 000 = 6 117 000 000 + 30 000 000 + 1 305 000 000
    name: 'a stream: input at its start, output at its end',
    dialect: messages,
    usage: messageStream(
      { input_tokens: 2039, cache_creation_input_tokens: 0, cache_read_input_tokens: 100, output_tokens: 1 },
      { output_tokens: 87 },
    ),
    cost: 7_452_000_000n,
  },
  {
    // 10423 × 3 000 000 + 87 × 15 000 000: the input grew by what the search found
    name: 'a stream: all of it at its end',
    unpriced: 'server_tool_use web_search_requests',
    dialect: messages,
    usage: messageStream(
      { input_tokens: 2039, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 1 },
      {
        input_tokens: 10_423,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 0,
        output_tokens: 87,
        server_tool_use: { web_search_requests: 1 },
      },
    ),
    cost: 32_574_000_000n,
  },
  {
    // 612 × 3 000 000 + 2819 × 15 000 000: the sum at the top, not the parts
    name: 'a stream that was compacted on the way',
    unpriced: 'iterations compaction',
    dialect: messages,
    usage: messageStream(
      { input_tokens: 60_385, output_tokens: 1 },
      {
        input_tokens: 612,
        output_tokens: 2819,
        iterations: [{ type: 'compaction', input_tokens: 60_385, output_tokens: 522 }],
      },
    ),
    cost: 44_121_000_000n,
  },
  {
    name: 'a stream without its end',
    dialect: messages,
    usage: event({ type: 'message_start', message: { usage: { input_tokens: 9, output_tokens: 1 } } }),
    cost: null,
  },
  {
    // 10 × 3 000 000 + 500 × 300 000 + (3000 - 2000) × 3 750 000 + 2000 × 6 000 000 + 20 × 15 000 000
    // = 30 000 000 + 150 000 000 + 3 750 000 000 + 12 000 000 000 + 300 000 000
    name: 'cache writes of five minutes and of an hour',
    dialect: messages,
    usage: {
      input_tokens: 10,
      cache_read_input_tokens: 500,
      cache_creation_input_tokens: 3000,
      cache_creation: { ephemeral_5m_input_tokens: 1000, ephemeral_1h_input_tokens: 2000 },
      output_tokens: 20,
      service_tier: 'standard',
    },
    price: HOUR_PRICE,
    cost: 16_230_000_000n,
  },
  {
    // 10 × 3 000 000 + 2000 × 6 000 000 + 20 × 15 000 000: the split stands only where the stream begins
    name: 'a stream with cache writes of an hour',
    dialect: messages,
    usage: messageStream(
      {
        input_tokens: 10,
        cache_creation_input_tokens: 2000,
        cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 2000 },
        output_tokens: 1,
      },
      { output_tokens: 20 },
    ),
    price: HOUR_PRICE,
    cost: 12_330_000_000n,
  },
  {
    // 10 × 3 000 000 + 2000 × 3 750 000 + 20 × 15 000 000: without a price for an hour they are rated as others, and
    // charged as held
    name: 'cache writes of an hour without a price',
    dialect: messages,
    usage: {
      input_tokens: 10,
      cache_creation_input_tokens: 2000,
      cache_creation: { ephemeral_1h_input_tokens: 2000 },
      output_tokens: 20,
    },
    cost: 7_830_000_000n,
    unpriced: 'cache_write_1h',
  },
  { name: 'counting is free', dialect: countTokens, usage: '{"input_tokens":588}', cost: 0n },
];

const counts = { prompt_tokens: 22, completion_tokens: 8, total_tokens: 30 };
const responseCounts = { input_tokens: 22, output_tokens: 8, total_tokens: 30 };
const messageCounts = { input_tokens: 22, output_tokens: 8 };
const completed = (response: object): string =>
  event({ type: 'response.created', response: { service_tier: 'auto' } }) +
  event({ type: 'response.completed', response });
const searched = {
  image_gen: { input_tokens: 0, input_tokens_details: { image_tokens: 0 } },
  web_search: { num_requests: 2 },
};
const NO_TOOLS = {
  image_gen: { input_tokens: 0, input_tokens_details: { image_tokens: 0 } },
  web_search: { num_requests: 0 },
};
const echo = {
  tools: [
    {
      type: 'function',
      parameters: { properties: { service_tier: { type: 'string' }, x: { service_tier: 'priority' } } },
    },
  ],
};

/** 22 × 3 000 000 + 8 × 15 000 000 each: the counts are rated, and what has no price is named. */
const SERVED_WITH: readonly (readonly [
  name: string,
  dialect: Dialect,
  usage: object | string,
  unpriced: string | null,
])[] = [
  ['the plain tier', chatCompletions, JSON.stringify({ service_tier: 'default', usage: counts }), null],
  ['no tier at all', chatCompletions, JSON.stringify({ usage: counts, service_tier: null }), null],
  ["Groq's plain tier", chatCompletions, JSON.stringify({ usage: counts, service_tier: 'on_demand' }), null],
  [
    'priority',
    chatCompletions,
    JSON.stringify({ choices: [], usage: counts, service_tier: 'priority' }),
    'service_tier priority',
  ],
  [
    'flex, in every chunk',
    chatCompletions,
    chatStream({ choices: [{}], service_tier: 'flex' }, { choices: [], service_tier: 'flex', usage: counts }),
    'service_tier flex',
  ],
  [
    'a tier that a tool wrote',
    chatCompletions,
    JSON.stringify({ choices: [{ message: { x: { service_tier: 'priority' } } }], usage: counts }),
    null,
  ],
  [
    'a search by OpenRouter',
    chatCompletions,
    { ...counts, server_tool_use: { web_search_requests: 1 } },
    'server_tool_use web_search_requests',
  ],
  [
    'a search by OpenRouter, as recorded',
    chatCompletions,
    { ...counts, server_tool_use_details: { web_search_requests: 3 } },
    'server_tool_use web_search_requests',
  ],
  ['a search by xAI', chatCompletions, { ...counts, num_server_side_tools_used: 1 }, 'num_server_side_tools_used'],
  [
    'the plain tier',
    responses,
    JSON.stringify({ ...echo, service_tier: 'default', tool_usage: NO_TOOLS, usage: responseCounts }),
    null,
  ],
  [
    'priority',
    responses,
    JSON.stringify({ service_tier: 'priority', ...echo, usage: responseCounts }),
    'service_tier priority',
  ],
  [
    'scale, in the last event',
    responses,
    completed({ ...echo, service_tier: 'scale', usage: responseCounts }),
    'service_tier scale',
  ],
  [
    'the plain tier, in the last event',
    responses,
    completed({ ...echo, service_tier: 'default', tool_usage: NO_TOOLS, usage: responseCounts }),
    null,
  ],
  [
    'searches',
    responses,
    completed({ tool_usage: searched, usage: responseCounts }),
    'tool_usage web_search.num_requests',
  ],
  [
    'searches, behind an event that says nothing of them',
    responses,
    `data: ${JSON.stringify({ type: 'response.created', response: { tool_usage: null } })}\n\n` +
      completed({ tool_usage: searched, usage: responseCounts }),
    'tool_usage web_search.num_requests',
  ],
  [
    'searches',
    responses,
    JSON.stringify({ tool_usage: searched, usage: responseCounts }),
    'tool_usage web_search.num_requests',
  ],
  [
    'the plain tier',
    messages,
    {
      ...messageCounts,
      service_tier: 'standard',
      inference_geo: 'not_available',
      speed: 'standard',
      server_tool_use: { web_search_requests: 0 },
    },
    null,
  ],
  ['priority', messages, { ...messageCounts, service_tier: 'priority' }, 'service_tier priority'],
  ['fast', messages, { ...messageCounts, speed: 'fast' }, 'speed fast'],
  ['a region', messages, { ...messageCounts, inference_geo: 'us' }, 'inference_geo us'],
  [
    'searches',
    messages,
    { ...messageCounts, server_tool_use: { web_search_requests: 3, web_fetch_requests: 0 } },
    'server_tool_use web_search_requests',
  ],
  // The tool for it passes, and costs nothing of its own.
  [
    'a search among tools',
    messages,
    { ...messageCounts, server_tool_use: { web_search_requests: 0, tool_search_requests: 2 } },
    null,
  ],
  [
    'searches beside one among tools',
    messages,
    messageStream(messageCounts, {
      output_tokens: 8,
      server_tool_use: { tool_search_requests: 2, web_search_requests: 1 },
    }),
    'server_tool_use web_search_requests',
  ],
  [
    'priority, where the stream begins',
    messages,
    messageStream({ ...messageCounts, service_tier: 'priority' }, { output_tokens: 8 }),
    'service_tier priority',
  ],
  [
    'searches, where the stream ends',
    messages,
    messageStream(messageCounts, { output_tokens: 8, server_tool_use: { web_search_requests: 1 } }),
    'server_tool_use web_search_requests',
  ],
  ['a name that is no name', messages, { ...messageCounts, speed: 'x"\n<'.repeat(20) }, `speed ${'x???'.repeat(10)}`],
];
const SERVED_WITH_BILLS = SERVED_WITH.map(
  ([name, dialect, usage, unpriced]): Bill => ({
    name: `${dialect.api}: ${name}`,
    dialect,
    usage,
    cost: 186_000_000n,
    ...(unpriced === null ? {} : { unpriced }),
  }),
);

for (const [title, bills] of Object.entries({
  'what a reply was served with': SERVED_WITH_BILLS,
  'chat bills': CHAT_BILLS,
  'responses bills': RESPONSES_BILLS,
  'messages bills': MESSAGES_BILLS,
})) {
  describe(title, () => {
    for (const { name, dialect, usage, price, cost, unpriced = null } of bills) {
      test(name, () => {
        const kept = keptReply(typeof usage === 'string' ? usage : JSON.stringify({ id: 'x', usage }));
        const raw = dialect.readUsage(kept);
        assert.ok(raw, 'there is a report');
        const checked = checkUsage(raw, NO_USAGE_BOUNDS);
        assert.equal(checked.ok ? rateUsage(checked.usage, price ?? PRICE) : null, cost);
        const beside = dialect.readDetails?.(kept, NO_BOUNDS) ?? {};
        assert.equal(
          unpricedDetail({ ...raw.details, ...beside }, price ?? PRICE) ??
            (checked.ok ? unpricedPart(checked.usage, price ?? PRICE) : null),
          unpriced,
        );
      });
    }
  });
}
