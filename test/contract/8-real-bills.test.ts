// Golden bills of prices with terms: a price as operators write it, a reply as providers write it, and what it costs to
// the last pico-dollar, computed by hand. A line for each part of a price.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { chatCompletions } from '../../src/generation/dialects/chat-completions.ts';
import type { Dialect } from '../../src/generation/dialects/dialect.ts';
import { messages } from '../../src/generation/dialects/messages.ts';
import { responses } from '../../src/generation/dialects/responses.ts';
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
const chat = (input: number, output: number, rest: object = {}): object => ({
  id: 'c',
  choices: [],
  usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
  ...rest,
});
const message = (usage: object): object => ({ id: 'm', content: [], usage });
const response = (input: number, output: number, rest: object = {}): object => ({
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

const FAST = { ...PLAIN, speeds: { fast: '6' }, geos: { us: '1.1' } };
const VARIED: readonly Bill[] = [
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

for (const [title, bills] of Object.entries({
  'tiers by the size of the input': TIERS,
  'service tiers': SERVICE_TIERS,
  'speeds, regions and factors': VARIED,
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
    // 1000 × 625 000 + 10 × 2 500 000
    name: 'a cheaper tier that is named',
    request: ofBytes(1_000, { service_tier: 'flex' }),
    prices: [TIERED],
    held: 650_000_000n,
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
    // 1000 × 625 000 + 10 × 2 500 000: only the second can serve it
    name: 'those that can serve what is named, and no others',
    request: ofBytes(1_000, { service_tier: 'flex' }),
    prices: [{ ...PLAIN, input: '100' }, TIERED, null],
    held: 650_000_000n,
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
