// Bills in which several parts of a price meet, as those of 2026 do: caches of an hour in a tier by size, in a region,
// at a service tier, with searches, audio and fees. Each is what its lines come to in fractions, to the pico-dollar,
// and no more than what its request held.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { chatCompletions } from '../../src/generation/dialects/chat-completions.ts';
import type { Dialect } from '../../src/generation/dialects/dialect.ts';
import { imageGenerations } from '../../src/generation/dialects/images.ts';
import { messages } from '../../src/generation/dialects/messages.ts';
import { responses } from '../../src/generation/dialects/responses.ts';
import { type BillLines, billOf } from '../support/exact-bill.ts';
import { holdFor, priceOf, rateReply } from '../support/real-bills.ts';

interface CombinedBill extends BillLines {
  readonly dialect: Dialect;
  readonly price: object;
  readonly request: object;
  /** A document, or the events of a stream. */
  readonly reply: object | readonly object[];
}

const SONNET = {
  input: '3',
  cached_input: '0.30',
  cache_write: '3.75',
  cache_write_1h: '6',
  output: '15',
  tiers: [
    { from_input: 200_001, input: '6', cached_input: '0.60', cache_write: '7.5', cache_write_1h: '12', output: '22.5' },
  ],
  service_tiers: { priority: '1.234567891' },
  speeds: { fast: '6' },
  geos: { us: '1.1' },
  calls: { web_search: '0.01', web_fetch: '0' },
};
const GPT = {
  input: '2.5',
  cached_input: '0.25',
  output: '15',
  tiers: [{ from_input: 272_001, input: '5', cached_input: '0.5', output: '22.5' }],
  service_tiers: {
    flex: '0.5',
    priority: {
      input: '5',
      cached_input: '0.5',
      output: '30',
      tiers: [{ from_input: 272_001, input: '10', cached_input: '1', output: '45' }],
    },
  },
  factor: '1.1',
  calls: { web_search: { usd: '0.01', max: 10 } },
  request: '0.000001',
};
const SPEECH = {
  input: '2.5',
  cached_input: '1.25',
  output: '10',
  input_audio: '32',
  cached_audio: '0.4',
  output_audio: '64',
  tiers: [{ from_input: 1_000, input: '3.333333', input_audio: '40' }],
  service_tiers: { flex: '0.5' },
  factor: '1.05',
  request: '0.002',
};
const GROK = {
  input: '3',
  cached_input: '0.75',
  output: '15',
  service_tiers: { priority: '2' },
  calls: { web_search: { usd: '0.005', max: 3 }, x_search: { usd: '0.005', max: 3 } },
  cost: 'reported',
};
const GROK_REQUEST = {
  input: 'x'.repeat(1_000),
  max_output_tokens: 450,
  service_tier: 'priority',
  tools: [{ type: 'web_search' }, { type: 'x_search' }],
};
const GROK_USAGE = {
  input_tokens: 1_000,
  input_tokens_details: { cached_tokens: 128 },
  output_tokens: 50,
  output_tokens_details: { reasoning_tokens: 400 },
  total_tokens: 1_450,
  num_server_side_tools_used: 3,
  server_side_tool_usage_details: { web_search_calls: 2, x_search_calls: 1 },
};

const hourCache = (bytes: number, fields: object): object => ({
  ...fields,
  messages: [
    {
      role: 'user',
      content: [{ type: 'text', text: 'x'.repeat(bytes), cache_control: { type: 'ephemeral', ttl: '1h' } }],
    },
  ],
});

const BILLS: Readonly<Record<string, CombinedBill>> = {
  'both caches in a tier by size, in a region, with searches': {
    dialect: messages,
    price: SONNET,
    request: hourCache(212_000, {
      max_tokens: 4_321,
      inference_geo: 'us',
      tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 3 }],
    }),
    reply: [
      {
        type: 'message_start',
        message: {
          usage: {
            input_tokens: 1_203,
            cache_read_input_tokens: 150_000,
            cache_creation_input_tokens: 60_000,
            cache_creation: { ephemeral_5m_input_tokens: 20_000, ephemeral_1h_input_tokens: 40_000 },
            output_tokens: 1,
            service_tier: 'standard',
            inference_geo: 'us',
          },
        },
      },
      {
        type: 'message_delta',
        delta: { stop_reason: 'end_turn' },
        usage: { output_tokens: 4_321, server_tool_use: { web_search_requests: 3, web_fetch_requests: 0 } },
      },
      { type: 'message_stop' },
    ],
    tokens: [
      [1_203, '6'],
      [150_000, '0.60'],
      [20_000, '7.5'],
      [40_000, '12'],
      [4_321, '22.5'],
    ],
    factors: ['1.1'],
    beside: [[3, '0.01']],
  },
  'the same without a search, one token below the tier, fast and at a service tier': {
    dialect: messages,
    price: SONNET,
    request: hourCache(200_000, { max_tokens: 17, inference_geo: 'us', speed: 'fast', service_tier: 'priority' }),
    reply: {
      content: [],
      usage: {
        input_tokens: 7,
        cache_read_input_tokens: 139_993,
        cache_creation_input_tokens: 60_000,
        cache_creation: { ephemeral_5m_input_tokens: 1, ephemeral_1h_input_tokens: 59_999 },
        output_tokens: 17,
        service_tier: 'priority',
        speed: 'fast',
        inference_geo: 'us',
      },
    },
    tokens: [
      [7, '3'],
      [139_993, '0.30'],
      [1, '3.75'],
      [59_999, '6'],
      [17, '15'],
    ],
    factors: ['1.234567891', '6', '1.1'],
  },
  'a service tier with a tier of its own, cached, in a region, with searches and a fee': {
    dialect: responses,
    price: GPT,
    request: {
      input: 'x'.repeat(300_000),
      max_output_tokens: 12_345,
      service_tier: 'priority',
      tools: [{ type: 'web_search' }],
      max_tool_calls: 4,
    },
    reply: {
      id: 'r',
      output: [{ type: 'web_search_call', status: 'completed' }],
      service_tier: 'priority',
      tool_usage: { web_search: { num_requests: 4 } },
      usage: {
        input_tokens: 300_000,
        input_tokens_details: { cached_tokens: 280_000 },
        output_tokens: 12_345,
        output_tokens_details: { reasoning_tokens: 12_000 },
        total_tokens: 312_345,
      },
    },
    tokens: [
      [20_000, '10'],
      [280_000, '1'],
      [12_345, '45'],
    ],
    factors: ['1.1'],
    beside: [
      [4, '0.01'],
      [1, '0.000001'],
    ],
  },
  'the plain service in place of that tier': {
    dialect: responses,
    price: GPT,
    request: { input: 'x'.repeat(300_000), max_output_tokens: 10, service_tier: 'priority' },
    reply: {
      id: 'r',
      output: [],
      service_tier: 'default',
      usage: { input_tokens: 300_000, input_tokens_details: { cached_tokens: 1 }, output_tokens: 10 },
    },
    tokens: [
      [299_999, '5'],
      [1, '0.5'],
      [10, '22.5'],
    ],
    factors: ['1.1'],
    beside: [[1, '0.000001']],
  },
  'audio in, out and from the cache, in a tier, at a service tier, in a region, with a fee': {
    dialect: chatCompletions,
    price: SPEECH,
    request: {
      modalities: ['text', 'audio'],
      audio: { voice: 'alloy', format: 'wav' },
      service_tier: 'flex',
      stream: true,
      max_completion_tokens: 500,
      messages: [{ role: 'user', content: 'x'.repeat(2_000) }],
    },
    reply: [
      { choices: [{ index: 0, delta: { audio: { data: 'aaaa' } } }], service_tier: 'flex' },
      {
        choices: [],
        service_tier: 'flex',
        usage: {
          prompt_tokens: 2_000,
          completion_tokens: 500,
          total_tokens: 2_500,
          prompt_tokens_details: {
            audio_tokens: 900,
            cached_tokens: 700,
            cached_tokens_details: { audio_tokens: 300, text_tokens: 400 },
          },
          completion_tokens_details: { audio_tokens: 400, text_tokens: 100 },
        },
      },
    ],
    tokens: [
      [700, '3.333333'],
      [400, '1.25'],
      [600, '40'],
      [300, '0.4'],
      [100, '10'],
      [400, '64'],
    ],
    factors: ['0.5', '1.05'],
    beside: [[1, '0.002']],
  },
  'thoughts that the total alone tells, with audio, the cache and a tier': {
    dialect: chatCompletions,
    price: {
      input: '1.25',
      cached_input: '0.31',
      output: '10',
      input_audio: '3',
      tiers: [{ from_input: 200_001, input: '2.5', cached_input: '0.625', output: '15' }],
    },
    request: { max_tokens: 2_100, messages: [{ role: 'user', content: 'x'.repeat(210_000) }] },
    reply: {
      choices: [],
      usage: {
        prompt_tokens: 210_000,
        completion_tokens: 100,
        total_tokens: 212_100,
        prompt_tokens_details: { cached_tokens: 50_000, audio_tokens: 10_000 },
      },
    },
    tokens: [
      [150_000, '2.5'],
      [50_000, '0.625'],
      [10_000, '3'],
      [2_100, '15'],
    ],
  },
  'reasoning beside the output at a service tier, with two kinds of searches, where no cost is reported': {
    dialect: responses,
    price: GROK,
    request: GROK_REQUEST,
    reply: { id: 'r', output: [], service_tier: 'priority', usage: GROK_USAGE },
    tokens: [
      [872, '3'],
      [128, '0.75'],
      [450, '15'],
    ],
    factors: ['2'],
    beside: [
      [2, '0.005'],
      [1, '0.005'],
    ],
  },
  'the cost that is reported of that, searches and all': {
    dialect: responses,
    price: GROK,
    request: GROK_REQUEST,
    reply: { id: 'r', output: [], service_tier: 'priority', usage: { ...GROK_USAGE, cost_in_usd_ticks: 307_654_321 } },
    beside: [[1, '0.0307654321']],
  },
  'searches that nobody asked for, with a fee, in a region': {
    dialect: chatCompletions,
    price: {
      input: '3',
      output: '15',
      calls: { web_search: { usd: '0.005', max: 10, unasked: true } },
      factor: '1.07',
      request: '0.006',
    },
    request: { max_tokens: 200, messages: [{ role: 'user', content: 'hi' }] },
    reply: {
      choices: [],
      usage: { prompt_tokens: 14, completion_tokens: 200, total_tokens: 214, num_search_queries: 3 },
    },
    tokens: [
      [14, '3'],
      [200, '15'],
    ],
    factors: ['1.07'],
    beside: [
      [3, '0.005'],
      [1, '0.006'],
    ],
  },
  'fractions of a pico-dollar: rounded up once, for the whole bill': {
    dialect: messages,
    price: {
      input: '0.000001',
      output: '0.000003',
      factor: '0.333333333',
      service_tiers: { priority: '0.777777777' },
      geos: { eu: '1.000000001' },
    },
    request: {
      max_tokens: 5,
      inference_geo: 'eu',
      service_tier: 'priority',
      messages: [{ role: 'user', content: '' }],
    },
    reply: {
      content: [],
      usage: { input_tokens: 11, output_tokens: 5, service_tier: 'priority', inference_geo: 'eu' },
    },
    tokens: [
      [11, '0.000001'],
      [5, '0.000003'],
    ],
    factors: ['0.333333333', '0.777777777', '1.000000001'],
  },
  'images in a tier by size, in a region, with a fee': {
    dialect: imageGenerations,
    price: {
      image: '0.04',
      tiers: [{ from_input: 1_000, image: '0.041234567891' }],
      factor: '1.1',
      request: '0.001',
    },
    request: { prompt: 'x', n: 2 },
    reply: {
      created: 1,
      data: [{ b64_json: 'aaaa' }, { b64_json: 'bbbb' }],
      usage: { input_tokens: 1_500, output_tokens: 8_000, total_tokens: 9_500 },
    },
    images: [[2, '0.041234567891']],
    factors: ['1.1'],
    beside: [[1, '0.001']],
  },
  'tokens of a chat model that has a price by image, too': {
    dialect: chatCompletions,
    price: { input: '0.30', output: '2.50', image: '0.039', input_audio: '1', factor: '1.1' },
    request: { max_tokens: 20, messages: [{ role: 'user', content: 'x'.repeat(100) }] },
    reply: {
      choices: [],
      usage: {
        prompt_tokens: 100,
        completion_tokens: 20,
        total_tokens: 120,
        prompt_tokens_details: { audio_tokens: 40 },
      },
    },
    tokens: [
      [60, '0.30'],
      [40, '1'],
      [20, '2.50'],
    ],
    factors: ['1.1'],
  },
};

const textOf = (reply: CombinedBill['reply']): string =>
  Array.isArray(reply) ? reply.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('') : JSON.stringify(reply);

describe('bills of several parts', () => {
  for (const [name, bill] of Object.entries(BILLS)) {
    test(name, () => {
      const { dialect, price, request, reply } = bill;
      const rated = rateReply(dialect, request, textOf(reply), priceOf(price));
      const cost = billOf(bill);
      assert.deepEqual([rated.cost, rated.unpriced], [cost, null]);
      const { held } = holdFor(dialect, request, [price]);
      assert.ok(typeof held === 'bigint' && cost <= held, `${cost} of ${held}`);
    });
  }
});
