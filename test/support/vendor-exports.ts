// Facts of a month and the vendors' exports of them. Amounts are computed here from the test's own prices, so that a
// test compares two independent computations.

import { NO_METERS } from '../../src/domain/invoices/meters.ts';
import type { RecordedUsage } from '../../src/domain/invoices/recorded-usage.ts';
import type { Price } from '../../src/domain/models/price.ts';
import { formatUsdString } from '../../src/domain/money/format.ts';
import { picoUsd } from '../../src/domain/money/pico-usd.ts';
import { NO_TERMS } from '../../src/domain/settlement/rates-of.ts';

export const FIRST_DAY_MS = Date.parse('2026-11-01T00:00:00Z');
const DAY_MS = 86_400_000;

/** Requests of one day, model, key and tier. */
export interface Fact {
  readonly day: number;
  readonly model: string;
  readonly key: string;
  readonly tier: 'default' | 'priority';
  readonly requests: number;
  readonly input: number;
  readonly cached: number;
  readonly written: number;
  readonly writtenHour: number;
  readonly output: number;
  readonly searches: number;
}

/** Pico-dollars per token; a search costs a cent. Priority costs twice as much. */
export const PRICES = {
  input: 1_250_000n,
  cached: 125_000n,
  written: 1_562_500n,
  writtenHour: 2_500_000n,
  output: 10_000_000n,
};
const SEARCH = 10_000_000_000n;

export const CATALOG_PRICE: Price = {
  version: '1',
  input: picoUsd(PRICES.input),
  cachedInput: picoUsd(PRICES.cached),
  cacheWrite: picoUsd(PRICES.written),
  hourCacheWrite: picoUsd(PRICES.writtenHour),
  output: picoUsd(PRICES.output),
  image: null,
  terms: {
    ...NO_TERMS,
    serviceTiers: { priority: { rates: {}, tiers: [], factor: { numerator: 2n, denominator: 1n } } },
    calls: { web_search: { price: picoUsd(SEARCH), max: null } },
  },
};

type Part = keyof typeof PRICES;
const PARTS = Object.keys(PRICES) as Part[];

export function partCost(fact: Fact, part: Part): bigint {
  return BigInt(fact[part]) * PRICES[part] * (fact.tier === 'priority' ? 2n : 1n);
}

export function recordedOf(fact: Fact, overrides: Partial<RecordedUsage> = {}): RecordedUsage {
  const { input, cached, written, writtenHour, output, searches } = fact;
  return {
    day: fact.day,
    provider: fact.key,
    providerModel: fact.model,
    credentialId: null,
    priceVersion: '1',
    tier: fact.tier === 'default' ? null : fact.tier,
    speed: null,
    geo: null,
    inputFrom: 0,
    usageSource: 'reported',
    outcome: null,
    isAtEdge: false,
    requests: fact.requests,
    meters: {
      ...NO_METERS,
      input,
      cached_input: cached,
      cache_write: written,
      cache_write_1h: writtenHour,
      output,
      web_search: searches,
    },
    cost: PARTS.reduce((sum, part) => sum + partCost(fact, part), 0n) + BigInt(searches) * SEARCH,
    unrated: 0,
    suspected: 0,
    suspense: 0n,
    ...overrides,
  };
}

export interface ExportOptions {
  readonly days: number;
  /** The vendor's names of our keys and models. */
  readonly keyOf?: (key: string) => string;
  readonly modelOf?: (model: string) => string;
  /** Days that the export leaves out. */
  readonly without?: readonly number[];
  /** The amount of a line instead of the usual one. */
  readonly costOf?: (fact: Fact, part: Part) => bigint;
  /** Additional results, by day. */
  readonly further?: Readonly<Record<number, readonly object[]>>;
  readonly pageDays?: number;
}

type ResultsOfDay = (facts: readonly Fact[], day: number) => readonly object[];

function pages(
  facts: readonly Fact[],
  { days, without = [], pageDays = 7, further = {} }: ExportOptions,
  results: ResultsOfDay,
  bucket: (day: number) => object,
): string {
  const kept = Array.from({ length: days }, (_, day) => day).filter((day) => !without.includes(day));
  const texts: string[] = [];
  for (let at = 0; at < kept.length; at += pageDays) {
    const data = kept.slice(at, at + pageDays).map((day) => ({
      ...bucket(day),
      results: [
        ...results(
          facts.filter((fact) => fact.day === day),
          day,
        ),
        ...(further[day] ?? []),
      ],
    }));
    const hasMore = at + pageDays < kept.length;
    texts.push(JSON.stringify({ object: 'page', data, has_more: hasMore, next_page: hasMore ? 'page_AAA' : null }));
  }
  return texts.join('\n');
}

const openaiBucket = (day: number) => ({
  object: 'bucket',
  start_time: (FIRST_DAY_MS + day * DAY_MS) / 1_000,
  end_time: (FIRST_DAY_MS + (day + 1) * DAY_MS) / 1_000,
});
const anthropicBucket = (day: number) => ({
  starting_at: new Date(FIRST_DAY_MS + day * DAY_MS).toISOString().replace('.000', ''),
  ending_at: new Date(FIRST_DAY_MS + (day + 1) * DAY_MS).toISOString().replace('.000', ''),
});
const same = (name: string): string => name;

/** /v1/organization/usage/completions, grouped by model, api_key_id, batch and service_tier. */
export function openaiUsage(facts: readonly Fact[], options: ExportOptions): string {
  const { keyOf = same, modelOf = same } = options;
  const results = facts.map((fact) => ({
    day: fact.day,
    object: 'organization.usage.completions.result',
    input_tokens: fact.input + fact.cached + fact.written,
    input_cached_tokens: fact.cached,
    input_cache_write_tokens: fact.written,
    output_tokens: fact.output,
    num_model_requests: fact.requests,
    project_id: null,
    api_key_id: keyOf(fact.key),
    model: modelOf(fact.model),
    batch: false,
    service_tier: fact.tier,
  }));
  return pages(facts, options, (_, day) => results.filter((one) => one.day === day), openaiBucket);
}

const LINE_ITEMS = { input: 'input', cached: 'cached input', written: 'cache writes', output: 'output' } as const;

/** /v1/organization/costs, grouped by line_item and api_key_id. Amounts are JSON numbers. */
export function openaiCosts(facts: readonly Fact[], options: ExportOptions): string {
  const { keyOf = same, modelOf = same, costOf = partCost } = options;
  const results: ResultsOfDay = (ofDay) =>
    ofDay.flatMap((fact) => [
      ...(Object.keys(LINE_ITEMS) as (keyof typeof LINE_ITEMS)[])
        .filter((part) => fact[part] > 0)
        .map((part) => ({
          object: 'organization.costs.result',
          amount: { value: `@${formatUsdString(costOf(fact, part))}@`, currency: 'usd' },
          line_item: `${fact.tier === 'default' ? '' : `${fact.tier} | `}${modelOf(fact.model)}, ${LINE_ITEMS[part]}`,
          api_key_id: keyOf(fact.key),
          project_id: null,
        })),
      ...(fact.searches === 0
        ? []
        : [
            {
              object: 'organization.costs.result',
              amount: { value: `@${formatUsdString(BigInt(fact.searches) * SEARCH)}@`, currency: 'usd' },
              line_item: 'web search tool calls',
              api_key_id: keyOf(fact.key),
              project_id: null,
            },
          ]),
    ]);
  return pages(facts, options, results, openaiBucket).replaceAll(/"@([^"]*)@"/g, '$1');
}

/** /v1/organizations/usage_report/messages, grouped by model, api_key_id and service_tier. */
export function anthropicUsage(facts: readonly Fact[], options: ExportOptions): string {
  const { keyOf = same, modelOf = same } = options;
  const results: ResultsOfDay = (ofDay) =>
    ofDay.map((fact) => ({
      api_key_id: keyOf(fact.key),
      workspace_id: null,
      model: modelOf(fact.model),
      service_tier: fact.tier === 'default' ? 'standard' : fact.tier,
      context_window: null,
      uncached_input_tokens: fact.input,
      cache_read_input_tokens: fact.cached,
      cache_creation: { ephemeral_5m_input_tokens: fact.written, ephemeral_1h_input_tokens: fact.writtenHour },
      output_tokens: fact.output,
      server_tool_use: { web_search_requests: fact.searches },
    }));
  return pages(facts, options, results, anthropicBucket);
}

const TOKEN_TYPES = {
  input: 'uncached_input_tokens',
  cached: 'cache_read_input_tokens',
  written: 'cache_creation.ephemeral_5m_input_tokens',
  writtenHour: 'cache_creation.ephemeral_1h_input_tokens',
  output: 'output_tokens',
} as const;

/** /v1/organizations/cost_report, grouped by description. Amounts are cents in text. */
export function anthropicCosts(facts: readonly Fact[], options: ExportOptions): string {
  const { modelOf = same, costOf = partCost } = options;
  const cents = (amount: bigint): string => formatUsdString(amount * 100n);
  const results: ResultsOfDay = (ofDay) =>
    ofDay.flatMap((fact) => [
      ...PARTS.filter((part) => fact[part] > 0).map((part) => ({
        amount: cents(costOf(fact, part)),
        currency: 'USD',
        cost_type: 'tokens',
        description: `${fact.model} Usage - ${part}`,
        model: modelOf(fact.model),
        token_type: TOKEN_TYPES[part],
        context_window: '0-200k',
        service_tier: fact.tier === 'default' ? 'standard' : fact.tier,
        workspace_id: null,
      })),
      ...(fact.searches === 0
        ? []
        : [
            {
              amount: cents(BigInt(fact.searches) * SEARCH),
              currency: 'USD',
              cost_type: 'web_search',
              description: 'Web Search Usage',
              model: null,
              token_type: null,
            },
          ]),
    ]);
  return pages(facts, options, results, anthropicBucket);
}
