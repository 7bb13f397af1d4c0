// The shape of a deployment's price, in the configuration file and in requests, and how it becomes plain data.

import { z } from 'zod';
import { MODEL_KINDS, type ModelKind } from '../../models/apis.ts';
import {
  type CallPrice,
  type DayHours,
  PLAIN,
  type PriceTerms,
  type Rates,
  type RateTier,
  type SomeRates,
  type Variation,
  type VariationKind,
  type Variations,
} from '../../models/price.ts';
import { type Factor, formatFactor, parseFactor } from '../../money/factor.ts';
import { formatUsdString } from '../../money/format.ts';
import { parsePricePerMillion, parseUsd } from '../../money/parse-usd.ts';
import { type PicoUsd, ZERO_PICO_USD } from '../../money/pico-usd.ts';
import type { ConfiguredPrice } from '../configuration.ts';
import { CONFIGURED_MAX, CONFIGURED_TOO_MANY, entriesAtMost } from './entries-at-most.ts';

function money(parse: (text: string) => PicoUsd | null, mustBe: string) {
  return z.string(mustBe).transform((text, context): PicoUsd => {
    const amount = parse(text);
    if (amount !== null) return amount;
    context.issues.push({ code: 'custom', message: mustBe, input: text });
    return z.NEVER;
  });
}

const pricePerMillion = money(
  parsePricePerMillion,
  'must be USD per million tokens as a decimal string in quotes with at most 6 decimals, such as "1.25"',
);
const FACTOR = 'must be a factor above zero as a decimal string in quotes with at most 9 decimals, such as "1.1"';
export const usdSchema = money(parseUsd, 'must be USD as a decimal string in quotes, such as "25.00"');

const CALLS_MAX = 1_000;
const factor = z.string(FACTOR).transform((text, context): Factor => {
  const found = parseFactor(text);
  if (found !== null) return found;
  context.issues.push({ code: 'custom', message: FACTOR, input: text });
  return z.NEVER;
});

const amounts = {
  input: pricePerMillion.optional(),
  cached_input: pricePerMillion.optional(),
  cache_write: pricePerMillion.optional(),
  cache_write_1h: pricePerMillion.optional(),
  output: pricePerMillion.optional(),
  image: usdSchema.optional(),
};
/** Audio amounts are stored with the terms. */
const audioAmounts = {
  input_audio: pricePerMillion.optional(),
  cached_audio: pricePerMillion.optional(),
  output_audio: pricePerMillion.optional(),
};
const rates = { ...amounts, ...audioAmounts };
type RateFields = z.output<z.ZodObject<typeof rates>>;

const tiers = z
  .array(z.strictObject({ ...rates, from_input: z.int('must be a whole number').min(1, 'must be at least 1') }))
  .min(1, 'must name at least one tier')
  .max(CONFIGURED_MAX, CONFIGURED_TOO_MANY)
  .check(({ value, issues }) => {
    const isAscending = value.every(({ from_input }, at) => at === 0 || from_input > (value[at - 1]?.from_input ?? 0));
    if (!isAscending)
      issues.push({ code: 'custom', message: 'must be in ascending order of from_input', input: value });
  });

const variation = z.union([factor, z.strictObject({ ...rates, factor: factor.optional(), tiers: tiers.optional() })], {
  error: `must be prices, or a factor: ${FACTOR}`,
});

/** The variations of a kind. Plain names of the kind are refused, since the price itself applies to them. */
function variations(kind: VariationKind) {
  const named = z.record(z.string().regex(/^[\w.-]{1,40}$/, 'must be a name'), variation);
  return entriesAtMost(CONFIGURED_MAX, named).check(({ value, issues }) => {
    const plain = Object.keys(value).find((name) => PLAIN[kind].includes(name));
    if (plain !== undefined)
      issues.push({ code: 'custom', message: `"${plain}" is what the price itself is for`, input: value });
  });
}

const call = z.union(
  [
    usdSchema.transform((price): CallPrice => ({ price, max: null })),
    z
      .strictObject({ usd: usdSchema, max: z.int().min(1).max(CALLS_MAX), unasked: z.literal(true).optional() })
      .transform(({ usd, max, unasked }): CallPrice => ({ price: usd, max, ...(unasked && { unasked }) })),
  ],
  { error: `must be USD for a call in quotes, such as "0.01", or { usd: "0.01", max: 10 }` },
);

const toolName = z.string().regex(/^[a-z][a-z0-9_]{0,39}$/, 'must be the name of a tool');

const INSTANT = 'must be a date or an instant, such as "2027-01-01" or "2027-01-01T08:00:00Z"';
const ISO = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?(?:Z|[+-]\d{2}:\d{2}))?$/;
/** Whether the date exists: `Date.parse` reads February 30 as March 2. */
export const isDay = (date: string): boolean => new Date(date).toISOString().startsWith(date);
/** An instant in milliseconds since 1970; a date means its midnight in UTC. */
const instant = z.string(INSTANT).transform((text, context): number => {
  const found = ISO.test(text) ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(found) && isDay(text.slice(0, 'YYYY-MM-DD'.length))) return found;
  context.issues.push({ code: 'custom', message: INSTANT, input: text });
  return z.NEVER;
});

const HOURS = 'must be hours of the day in UTC, such as "16:30-00:30"';
const CLOCK = /^([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)$/;
const hours = z.string(HOURS).transform((text, context): DayHours => {
  const [, ...parts] = CLOCK.exec(text) ?? [];
  const [fromHour = 0, fromMinute = 0, untilHour = 0, untilMinute = 0] = parts.map(Number);
  const found = { from: fromHour * 60 + fromMinute, until: untilHour * 60 + untilMinute };
  if (parts.length > 0 && found.from !== found.until) return found;
  context.issues.push({ code: 'custom', message: HOURS, input: text });
  return z.NEVER;
});

/** The fields that are stored as one document beside the amounts. */
const terms = {
  tiers: tiers.optional(),
  service_tiers: variations('serviceTiers').optional(),
  service_tier_default: z.string().optional(),
  speeds: variations('speeds').optional(),
  geos: variations('geos').optional(),
  factor: factor.optional(),
  ...audioAmounts,
  calls: entriesAtMost(CONFIGURED_MAX, z.record(toolName, call)).optional(),
  request: usdSchema.optional(),
  cost: z.literal('reported', 'must be reported').optional(),
  from: instant.optional(),
  between: hours.optional(),
};
type TermFields = z.output<z.ZodObject<typeof terms>>;

export const priceSchema = z.strictObject({ ...amounts, ...terms }).check(({ value, issues }) => {
  const { service_tier_default: name, service_tiers = {} } = value;
  if (name === undefined || Object.hasOwn(service_tiers, name)) return;
  const message = 'must be one of service_tiers';
  issues.push({ code: 'custom', path: ['service_tier_default'], message, input: value });
});

/** The amounts of a price as it is written. */
export type PriceFields = z.output<typeof priceSchema>;

/** One price, or several of which the last valid one counts. */
export const pricesSchema = z.union([
  priceSchema,
  z
    .array(priceSchema)
    .min(1, 'must name at least one price')
    .max(CONFIGURED_MAX, CONFIGURED_TOO_MANY)
    .check(({ value, issues }) => {
      if (value[0]?.between !== undefined)
        issues.push({ code: 'custom', path: [0, 'between'], message: 'must not be of the first price', input: value });
      const late = value.findIndex(({ from = 0 }, at) => at > 0 && from < (value[at - 1]?.from ?? 0));
      const message = 'must not be before that of the price above it: the last that is valid counts';
      if (late !== -1) issues.push({ code: 'custom', path: [late, 'from'], message, input: value });
    }),
]);
export type PricesFields = z.output<typeof pricesSchema>;

/** Reads the prices of a model of this kind; usually there is one. */
export function readPrices(kind: ModelKind, found: PricesFields): readonly ConfiguredPrice[] {
  return (Array.isArray(found) ? found : [found]).map((price) => readPrice(kind, price));
}

/** null: each price has all that models of this kind need. */
export function pricesProblem(kind: ModelKind, found: PricesFields): string | null {
  const problems = (Array.isArray(found) ? found : [found]).map((price) => priceProblem(kind, price));
  return problems.find((problem) => problem !== null) ?? null;
}

/** Reads a price of a model of this kind. */
export function readPrice(kind: ModelKind, found: PriceFields): ConfiguredPrice {
  const read = readTermFields(found);
  return {
    input: found.input ?? null,
    cachedInput: found.cached_input ?? null,
    cacheWrite: found.cache_write ?? null,
    ...(found.cache_write_1h === undefined ? {} : { hourCacheWrite: found.cache_write_1h }),
    output: found.output ?? (MODEL_KINDS[kind].outputIsFree ? ZERO_PICO_USD : null),
    image: found.image ?? null,
    ...(read === null ? {} : { terms: read }),
  };
}

/** null: the price has all that models of this kind need. */
function priceProblem(kind: ModelKind, found: PriceFields): string | null {
  const missing = MODEL_KINDS[kind].neededPrices.find((needed) => found[needed] === undefined);
  return missing === undefined ? null : `a model of kind ${kind} needs the price "${missing}"`;
}

const storedTerms = z.strictObject(terms);

/** Reads the stored terms of a price, which `writeTerms` has written. */
export function readTerms(stored: unknown): PriceTerms | null {
  return readTermFields(storedTerms.parse(stored));
}

/** null: the price has no terms. */
function readTermFields(found: TermFields): PriceTerms | null {
  if (TERM_NAMES.every((name) => found[name] === undefined)) return null;
  return {
    rates: readRates({
      input_audio: found.input_audio,
      cached_audio: found.cached_audio,
      output_audio: found.output_audio,
    }),
    tiers: readTiers(found.tiers),
    serviceTiers: readVariations(found.service_tiers),
    serviceTierDefault: found.service_tier_default ?? null,
    speeds: readVariations(found.speeds),
    geos: readVariations(found.geos),
    factor: found.factor ?? null,
    calls: inOrder(found.calls ?? {}),
    request: found.request ?? null,
    cost: found.cost ?? null,
    from: found.from ?? null,
    between: found.between ?? null,
  };
}

/** Sorted by name, so that equal terms are stored once, in whatever order they were written. */
function inOrder<Value>(found: Readonly<Record<string, Value>>): Readonly<Record<string, Value>> {
  return Object.fromEntries(Object.entries(found).toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

const TERM_NAMES = Object.keys(terms) as (keyof TermFields)[];

function readTiers(found: TermFields['tiers'] = []): readonly RateTier[] {
  return found.map((tier) => ({ fromInput: tier.from_input, rates: readRates(tier) }));
}

function readVariations(found: TermFields['geos'] = {}): Variations {
  const read = (written: z.output<typeof variation>): Variation =>
    'numerator' in written
      ? { rates: {}, tiers: [], factor: written }
      : { rates: readRates(written), tiers: readTiers(written.tiers), factor: written.factor ?? null };
  return Object.fromEntries(Object.entries(inOrder(found)).map(([name, written]) => [name, read(written)]));
}

type Amount = keyof typeof rates;
const RATE_NAMES = {
  input: 'input',
  cached_input: 'cachedInput',
  cache_write: 'cacheWrite',
  cache_write_1h: 'hourCacheWrite',
  output: 'output',
  image: 'image',
  input_audio: 'inputAudio',
  cached_audio: 'cachedAudio',
  output_audio: 'outputAudio',
} as const satisfies Record<Amount, keyof Rates>;
const RATE_ROWS = Object.entries(RATE_NAMES) as [Amount, keyof Rates][];

function readRates(found: RateFields): SomeRates {
  const read = RATE_ROWS.flatMap(([name, rate]) => (found[name] === undefined ? [] : [[rate, found[name]]]));
  return Object.fromEntries(read) as SomeRates;
}

type Words = Readonly<Record<string, unknown>>;

/** Rates in the terms of the file: dollars per million tokens, and per image. */
export function writeRates(found: Partial<Rates>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    RATE_ROWS.flatMap(([name, rate]) => {
      const amount = found[rate] ?? null;
      if (amount === null) return [];
      return [[name, formatUsdString(rate === 'image' ? amount : amount * TOKENS_PER_PRICE)]];
    }),
  );
}

const TOKENS_PER_PRICE = 1_000_000n;

/** Terms as the file writes them; equal terms give the same result. */
export function writeTerms(found: PriceTerms): Words {
  const { serviceTiers, serviceTierDefault, speeds, geos, calls, request } = found;
  const writeCall = ({ price, max, unasked }: CallPrice): Words | string =>
    max === null ? formatUsdString(price) : { usd: formatUsdString(price), max, ...(unasked && { unasked }) };
  const written = Object.entries(calls).map(([tool, one]) => [tool, writeCall(one)] as const);
  return {
    ...writeRates(found.rates),
    ...writeTiers(found.tiers),
    ...writeVariations('service_tiers', serviceTiers),
    ...(serviceTierDefault === null ? {} : { service_tier_default: serviceTierDefault }),
    ...writeVariations('speeds', speeds),
    ...writeVariations('geos', geos),
    ...writeFactor(found.factor),
    ...(written.length === 0 ? {} : { calls: Object.fromEntries(written) }),
    ...(request === null ? {} : { request: formatUsdString(request) }),
    ...(found.cost === null ? {} : { cost: found.cost }),
    ...(found.from === null ? {} : { from: new Date(found.from).toISOString().replace('.000Z', 'Z') }),
    ...(found.between === null ? {} : { between: writeHours(found.between) }),
  };
}

function writeHours({ from, until }: DayHours): string {
  const clock = (minute: number): string =>
    `${String(Math.floor(minute / 60)).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}`;
  return `${clock(from)}-${clock(until)}`;
}

function writeFactor(found: Factor | null): Words {
  return found === null ? {} : { factor: formatFactor(found) };
}

function writeTiers(found: readonly RateTier[]): Words {
  if (found.length === 0) return {};
  return { tiers: found.map(({ fromInput, rates }) => ({ from_input: fromInput, ...writeRates(rates) })) };
}

function writeVariations(name: string, found: Variations): Words {
  const write = ({ rates, tiers: ofVariation, factor: own }: Variation): Words | string => {
    const words = { ...writeRates(rates), ...writeTiers(ofVariation), ...writeFactor(own) };
    return own !== null && Object.keys(words).length === 1 ? formatFactor(own) : words;
  };
  const written = Object.entries(found).map(([key, one]) => [key, write(one)] as const);
  return written.length === 0 ? {} : { [name]: Object.fromEntries(written) };
}
