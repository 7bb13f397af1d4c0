// Compares a deployment's price in a configuration file with a listed one, term by term, and writes the file's price
// with the listed amounts. Terms that a list cannot have (service tiers, speeds, regions, factors) stay as they are.

import { pricesSchema, readPrice, writeRates, writeTerms } from '../configuration/schema/price-schema.ts';
import type { ModelKind } from '../models/apis.ts';
import type { PriceWords } from './listed-price.ts';

export interface PriceDifference {
  readonly term: string;
  /** As text; null: the price does not have the term. */
  readonly own: string | null;
  readonly listed: string | null;
}

export interface PriceComparison {
  readonly differences: readonly PriceDifference[];
  /** Terms that only the file has: they are kept. */
  readonly onlyOwn: readonly string[];
  /** The file's price with the listed amounts. */
  readonly merged: unknown;
}

const RATE_TERMS = [
  'input',
  'cached_input',
  'cache_write',
  'cache_write_1h',
  'output',
  'input_audio',
  'cached_audio',
  'output_audio',
  'request',
];
/** Terms that are compared as a whole. If the list lacks one, the listed price has none, and the file's is dropped. */
const WHOLE_TERMS = ['from', 'between', 'tiers'];
const SEARCH = 'web_search';

/** null: the file's price is not valid. */
export function comparePrices(
  own: unknown,
  listed: readonly PriceWords[],
  { kind, nowMs }: { readonly kind: ModelKind; readonly nowMs: number },
): PriceComparison | null {
  const present = pricesSchema.safeParse(own);
  if (!present.success) return null;
  const written = stillValid((Array.isArray(own) ? own : [own]) as PriceWords[], kind, nowMs);
  const wanted = listed.map((words) => ({ words, canonical: canonical(words, kind) }));
  if (written.length !== wanted.length) {
    const merged = wanted.map(({ words }, at) => merge(written[at] ?? written[0], { words, canonical: {} }));
    const own = `${written.length} by date or hour`;
    const differences = [{ term: 'price', own, listed: asText(wanted.map(({ words }) => words)) }];
    return { differences, onlyOwn: [], merged: merged.length === 1 ? merged[0] : merged };
  }
  const pairs = written.map((one, at) => ({ one, other: wanted[at] as Entry, at }));
  const found = pairs.map(({ one, other, at }) => compareEntry(one, other, pairs.length === 1 ? '' : `[${at}].`));
  const merged = pairs.map(({ one, other }) => merge(one, other));
  return {
    differences: found.flatMap(({ differences }) => differences),
    onlyOwn: [...new Set(found.flatMap(({ onlyOwn }) => onlyOwn))],
    merged: merged.length === 1 ? merged[0] : merged,
  };
}

interface Entry {
  /** As the file or the list writes it. */
  readonly words: PriceWords;
  /** In canonical form: equal prices are written in the same way. */
  readonly canonical: PriceWords;
}

function canonical(words: PriceWords, kind: ModelKind): PriceWords {
  const parsed = pricesSchema.parse(words);
  const price = readPrice(kind, Array.isArray(parsed) ? (parsed[0] as never) : parsed);
  const rates = writeRates(price);
  const { output: _, ...withoutOutput } = rates;
  const isFree = words['output'] === undefined;
  return { ...(isFree ? withoutOutput : rates), ...(price.terms === undefined ? {} : writeTerms(price.terms)) };
}

function stillValid(prices: readonly PriceWords[], kind: ModelKind, nowMs: number): readonly Entry[] {
  const entries = prices.map((words) => ({ words, canonical: canonical(words, kind) }));
  const isPast = ({ canonical: { from } }: Entry): boolean => from === undefined || Date.parse(asText(from)) <= nowMs;
  const base = entries.findLastIndex((entry) => entry.canonical['between'] === undefined && isPast(entry));
  return entries.slice(Math.max(0, base)).map((entry) => (isPast(entry) ? withoutDate(entry) : entry));
}

function withoutDate({ words, canonical: same }: Entry): Entry {
  const { from: _, ...undated } = words;
  const { from: __, ...undatedSame } = same;
  return { words: undated, canonical: undatedSame };
}

function compareEntry(
  own: Entry,
  listed: Entry,
  prefix: string,
): { readonly differences: readonly PriceDifference[]; readonly onlyOwn: readonly string[] } {
  const differences: PriceDifference[] = [];
  const onlyOwn: string[] = [];
  const compare = (term: string, one: unknown, other: unknown): void => {
    const [ownText, listedText] = [one, other].map((value) => (value === undefined ? null : asText(value)));
    if (ownText !== listedText)
      differences.push({ term: prefix + term, own: ownText ?? null, listed: listedText ?? null });
  };
  for (const term of RATE_TERMS) {
    const other = listed.canonical[term];
    if (other === undefined && own.canonical[term] !== undefined) onlyOwn.push(term);
    else compare(term, own.canonical[term], other);
  }
  for (const term of WHOLE_TERMS) compare(term, own.canonical[term], listed.canonical[term]);
  const ownSearch = searchOf(own.canonical);
  const search = searchOf(listed.canonical);
  if (search !== undefined) compare(`calls.${SEARCH}`, ownSearch?.usd, search.usd);
  const unasked = unaskedTaken(ownSearch, search);
  if (unasked !== null) {
    compare(`calls.${SEARCH}.unasked`, ownSearch?.unasked, unasked.unasked);
    compare(`calls.${SEARCH}.max`, ownSearch?.max, unasked.max);
  }
  return { differences, onlyOwn };
}

interface CallWords {
  readonly usd: string;
  readonly max?: number;
  readonly unasked?: true;
}

function searchOf({ calls }: PriceWords): CallWords | undefined {
  const call = (calls as Readonly<Record<string, string | CallWords>> | undefined)?.[SEARCH];
  return typeof call === 'string' ? { usd: call } : call;
}

/**
 * The terms that the file lacks although, by the list, the model searches without being asked; null: it lacks none. The
 * greater of the two maxima counts.
 */
function unaskedTaken(
  own: CallWords | undefined,
  listed: CallWords | undefined,
): Pick<CallWords, 'max' | 'unasked'> | null {
  if (listed?.unasked !== true || own?.unasked === true) return null;
  return { max: Math.max(own?.max ?? 0, listed.max ?? 0), unasked: true };
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** The file's price with the listed amounts. Terms that are equal stay as the file writes them. */
function merge(own: Entry | undefined, listed: Entry): PriceWords {
  if (own === undefined) return listed.words;
  const isTaken = (term: string): boolean =>
    (RATE_TERMS.includes(term) || WHOLE_TERMS.includes(term)) &&
    asText(own.canonical[term] ?? '') !== asText(listed.canonical[term] ?? '');
  const kept = Object.entries(own.words).flatMap(([term, value]) => {
    if (WHOLE_TERMS.includes(term) && listed.words[term] === undefined) return [];
    return [[term, isTaken(term) && listed.words[term] !== undefined ? listed.words[term] : value] as const];
  });
  const added = Object.entries(listed.words).filter(([term]) => own.words[term] === undefined);
  const merged = { ...Object.fromEntries(kept), ...Object.fromEntries(added) };
  const calls = mergeCalls(own.words, listed.words);
  return calls === null ? merged : { ...merged, calls };
}

/** null: the calls stay as the file writes them. */
function mergeCalls(own: PriceWords, listed: PriceWords): object | null {
  const ownCalls = own['calls'] as Readonly<Record<string, unknown>> | undefined;
  const [present, search] = [searchOf(own), searchOf(listed)];
  if (ownCalls === undefined || search === undefined) return null;
  if (present === undefined) return { ...ownCalls, ...(listed['calls'] as object) };
  const taken = unaskedTaken(present, search);
  const { usd } = search;
  if (taken === null && present.usd === usd) return null;
  return { ...ownCalls, [SEARCH]: taken === null && present.max === undefined ? usd : { ...present, usd, ...taken } };
}
