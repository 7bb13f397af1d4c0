// Writes a listed price in the terms of the configuration file, and notes what the file has no term for.

import type { ModelKind } from '../models/apis.ts';
import { scaleNumber } from './decimal-text.ts';
import type { ListedAmount, ListedModel, ListedPrice } from './listed-model.ts';

/** A price as the file has it. */
export type PriceWords = Readonly<Record<string, unknown>>;

export interface WrittenPrices {
  /** Usually one; several if the price changes with the date or the hour. */
  readonly prices: readonly PriceWords[];
  readonly kind: ModelKind;
  /** What `prices` leaves out or rounds. */
  readonly notes: readonly string[];
}

/** Dollars per million tokens: their names in the list and in the file. */
const RATES = {
  input_mtok: 'input',
  cache_read_mtok: 'cached_input',
  cache_write_mtok: 'cache_write',
  cache_write_1h_mtok: 'cache_write_1h',
  output_mtok: 'output',
  input_audio_mtok: 'input_audio',
  cache_audio_read_mtok: 'cached_audio',
  output_audio_mtok: 'output_audio',
} as const satisfies Readonly<Record<string, string>>;
const RATE_ROWS = Object.entries(RATES);
const RATE_DECIMALS = 6;
const USD_DECIMALS = 12;
/** Dollars for a thousand of something. */
const PER_THOUSAND = -3;
const SEARCHES = 'web_searches_kcount';
const REQUESTS = 'requests_kcount';
/** How many searches a hold covers if a request sets no limit. */
const SEARCHES_HELD = 10;
/** Perplexity's models search in every request; its deep-research models do so some dozens of times. */
const UNASKED = { model: /^sonar(?:-|$)/, held: 50 } as const;

/** null: the model is not priced by tokens. Prices that were replaced before `nowMs` are left out. */
export function writeListedPrices(model: ListedModel, nowMs: number): WrittenPrices | null {
  const listed = stillValid(model.prices, nowMs);
  const [first] = listed;
  if (first?.amounts['input_mtok'] === undefined) return null;
  const isEmbedding = first.amounts['output_mtok'] === undefined;
  // A model that makes images or sound is not served as text.
  if (isEmbedding && Object.keys(first.amounts).some((name) => name.startsWith('output_'))) return null;
  const notes = new Set<string>();
  const search = UNASKED.model.test(model.id) ? { max: UNASKED.held, unasked: true as const } : { max: SEARCHES_HELD };
  const written = listed.map((price) => writePrice(price, search, notes));
  return { prices: written, kind: isEmbedding ? 'embedding' : 'text', notes: [...notes] };
}

/** The prices from the last one on that is valid now at every hour. It begins the list, so its date is dropped. */
function stillValid(prices: readonly ListedPrice[], nowMs: number): readonly ListedPrice[] {
  const base = prices.findLastIndex(
    ({ from, between }) => between === null && (from === null || Date.parse(from) <= nowMs),
  );
  const [first, ...later] = prices.slice(Math.max(0, base));
  if (first === undefined) return [];
  let from: string | null = null;
  return [
    { ...first, from: null, between: null },
    // A later price becomes valid no sooner than the one before it.
    ...later.map((price) => {
      if (price.from !== null && Date.parse(price.from) > nowMs) from = price.from;
      return { ...price, from };
    }),
  ];
}

/** `search`: by which terms a hold covers searches, if they have a price. */
function writePrice({ from, between, amounts }: ListedPrice, search: PriceWords, notes: Set<string>): PriceWords {
  const known = new Set([...Object.keys(RATES), SEARCHES, REQUESTS]);
  for (const name of Object.keys(amounts))
    if (!known.has(name)) notes.add(`the list also has ${name}, for which the file has no price`);
  const rate = (value: number): string => decimal(value, 0, RATE_DECIMALS, notes);
  const perThousand = (value: ListedAmount): string => decimal(baseOf(value), PER_THOUSAND, USD_DECIMALS, notes);
  const rates = RATE_ROWS.flatMap(([listed, name]) => {
    const amount = amounts[listed];
    return amount === undefined ? [] : [[name, rate(baseOf(amount))] as const];
  });
  const searches = amounts[SEARCHES];
  const requests = amounts[REQUESTS];
  return {
    ...(from === null ? {} : { from }),
    ...(between === null ? {} : { between: writeHours(between) }),
    ...Object.fromEntries(rates),
    ...writeTiers(amounts, rate),
    ...(searches === undefined ? {} : { calls: { web_search: { usd: perThousand(searches), ...search } } }),
    ...(requests === undefined ? {} : { request: perThousand(requests) }),
  };
}

function decimal(value: number, power: number, decimalsMax: number, notes: Set<string>): string {
  const written = scaleNumber(value, power, decimalsMax);
  if (written === null) throw new Error(`a listed price is ${value}`);
  if (written.isRounded)
    notes.add(`${value} is rounded up to ${written.text}: a price has at most ${decimalsMax} decimals`);
  return written.text;
}

function baseOf(amount: ListedAmount): number {
  return typeof amount === 'number' ? amount : amount.base;
}

/**
 * One tier per threshold, with every rate that has a tier at or below it. A listed tier is for more input than `start`,
 * a tier of the file begins at `from_input`.
 */
function writeTiers(amounts: ListedPrice['amounts'], rate: (value: number) => string): PriceWords {
  const tiered = RATE_ROWS.flatMap(([listed, name]) => {
    const amount = amounts[listed];
    return typeof amount === 'object' ? [{ name, tiers: amount.tiers }] : [];
  });
  const starts = [...new Set(tiered.flatMap(({ tiers }) => tiers.map(({ start }) => start)))].toSorted((a, b) => a - b);
  if (starts.length === 0) return {};
  return {
    tiers: starts.map((start) => ({
      from_input: start + 1,
      ...Object.fromEntries(
        tiered.flatMap(({ name, tiers }) => {
          const reached = tiers.findLast((tier) => tier.start <= start);
          return reached === undefined ? [] : [[name, rate(reached.price)] as const];
        }),
      ),
    })),
  };
}

const TIME = /^(\d{2}):(\d{2})(?::\d{2}(?:\.\d+)?)?(?:Z|([+-])(\d{2}):(\d{2}))$/;
const DAY_MINUTES = 1_440;

function writeHours({ from, until }: { readonly from: string; readonly until: string }): string {
  return `${utcClock(from)}-${utcClock(until)}`;
}

function utcClock(time: string): string {
  const [, hour, minute, sign, hoursOff = '0', minutesOff = '0'] = TIME.exec(time) ?? [];
  if (hour === undefined) throw new Error(`a listed price has the time ${time}`);
  const offset = (Number(hoursOff) * 60 + Number(minutesOff)) * (sign === '-' ? -1 : 1);
  const minutes = (Number(hour) * 60 + Number(minute) - offset + DAY_MINUTES) % DAY_MINUTES;
  return `${String(Math.floor(minutes / 60)).padStart(2, '0')}:${String(minutes % 60).padStart(2, '0')}`;
}
