// Imports the costs of a LiteLLM entry: the decimal text times a million, so that no digit is lost.

import { scaleDecimal } from '../list-prices/decimal-text.ts';
import type { PriceWords } from '../list-prices/listed-price.ts';
import type { Field } from './litellm-file.ts';

/** LiteLLM's names for dollars per token, and ours for dollars per million. */
const RATES = {
  input_cost_per_token: 'input',
  output_cost_per_token: 'output',
  cache_read_input_token_cost: 'cached_input',
  cache_creation_input_token_cost: 'cache_write',
  cache_creation_input_token_cost_above_1hr: 'cache_write_1h',
  input_cost_per_audio_token: 'input_audio',
  output_cost_per_audio_token: 'output_audio',
  cache_read_input_audio_token_cost: 'cached_audio',
} as const satisfies Readonly<Record<string, string>>;
const PER_MILLION = 6;
const RATE_DECIMALS = 6;
const USD_DECIMALS = 12;

export interface ImportedPrice {
  /** Empty: the entry has no costs. */
  readonly words: PriceWords;
  /** The names of the fields that are in `words`. */
  readonly taken: ReadonlySet<string>;
  readonly notes: readonly { readonly field: Field; readonly why: string }[];
}

const TIER = /^(.*)_above_(\d+)k_tokens$/;
const SERVICE_TIER = /^(.*)_(priority|flex)$/;

export function importPrice(fields: readonly Field[]): ImportedPrice {
  const words: Record<string, unknown> = {};
  const tiers = new Map<number, Record<string, string>>();
  const serviceTiers = new Map<string, Record<string, string>>();
  const taken = new Set<string>();
  const notes: { field: Field; why: string }[] = [];
  const place = (name: string, amount: string): boolean => {
    const [, tiered = '', thousands = ''] = TIER.exec(name) ?? [];
    const [, variant = '', tier = ''] = SERVICE_TIER.exec(name) ?? [];
    const rate = rateOf(name) ?? rateOf(tiered) ?? rateOf(variant);
    if (rate === undefined) return false;
    if (rateOf(name) !== undefined) words[rate] = amount;
    else if (thousands !== '') entryOf(tiers, Number(thousands) * 1_000 + 1)[rate] = amount;
    else entryOf(serviceTiers, tier)[rate] = amount;
    return true;
  };
  for (const field of fields) {
    const { name, text } = field;
    if (!/_cost(_|$)/.test(name)) continue;
    const isUsd = name === 'input_cost_per_request' || name === 'output_cost_per_image';
    const amount = isUsd ? scaleDecimal(text, 0, USD_DECIMALS) : scaleDecimal(text, PER_MILLION, RATE_DECIMALS);
    if (amount === null) notes.push({ field, why: 'it is not an amount' });
    else if (isUsd) words[name === 'output_cost_per_image' ? 'image' : 'request'] = amount.text;
    else if (!place(name, amount.text)) {
      notes.push({ field, why: 'Tollgate has no such price' });
      continue;
    }
    if (amount?.isRounded === true) notes.push({ field, why: `rounded up to ${amount.text} per million tokens` });
    taken.add(name);
  }
  return { words: { ...words, ...tierWords(tiers), ...variantWords(serviceTiers) }, taken, notes };
}

function rateOf(name: string): string | undefined {
  return Object.hasOwn(RATES, name) ? RATES[name as keyof typeof RATES] : undefined;
}

function entryOf<Key>(map: Map<Key, Record<string, string>>, key: Key): Record<string, string> {
  const found = map.get(key) ?? {};
  map.set(key, found);
  return found;
}

/**
 * In LiteLLM's file each rate has its own tiers, for more than so many thousand tokens. A tier of ours has all rates
 * from its size on, so it also gets the rates of the tiers below it.
 */
function tierWords(tiers: ReadonlyMap<number, Record<string, string>>): PriceWords {
  if (tiers.size === 0) return {};
  const inOrder = [...tiers].toSorted(([one], [other]) => one - other);
  let reached: Readonly<Record<string, string>> = {};
  return {
    tiers: inOrder.map(([from, rates]) => {
      reached = { ...reached, ...rates };
      return { from_input: from, ...reached };
    }),
  };
}

function variantWords(serviceTiers: ReadonlyMap<string, Record<string, string>>): PriceWords {
  return serviceTiers.size === 0 ? {} : { service_tiers: Object.fromEntries(serviceTiers) };
}
