// Reads what OpenAI's Usage and Costs APIs export: pages of /v1/organization/usage/... and /v1/organization/costs, one
// or several in a file, in any order. Their fields are those of the types in the `openai` package
// (resources/admin/organization/usage); how line items are named is not documented and was taken from what users of
// the API have published ("gpt-5.5-2026-04-23, cached input", "priority | gpt-5.6-sol, output, long context").

import { z } from 'zod';
import { SECOND_MS } from '../../platform/durations.ts';
import type { CostLine, InvoiceRead, UsageLine } from './invoice.ts';
import { type Meter, NO_METERS } from './meters.ts';
import { amount, CUT_NOTE, count, RowsSeen, readPages, resultProblem, word } from './read-pages.ts';

const USD_DECIMALS = 12;

const group = { model: word, api_key_id: word };
const tokens = z.object({
  ...group,
  input_tokens: count,
  input_cached_tokens: count,
  input_cache_write_tokens: count,
  output_tokens: count,
  num_model_requests: count,
  batch: z.boolean('must be true or false').nullish(),
  service_tier: word,
});
const images = z.object({ ...group, images: count, num_model_requests: count });
const searches = z.object({ ...group, num_requests: count });
const cost = z.object({
  api_key_id: word,
  amount: z.object({ value: amount(USD_DECIMALS), currency: word }, 'must have value and currency').nullish(),
  line_item: word,
  quantity: z.union([z.number(), z.string()]).nullish(),
  quantity_unit: word,
});
/** The end of the year 9999. It excludes milliseconds, and numbers that are no date. */
const SECONDS_MAX = 253_402_300_800;
const moment = z
  .int('must be seconds since 1970')
  .min(0, 'must be seconds since 1970')
  .max(SECONDS_MAX, 'must be seconds since 1970');
const bucket = z.object({
  start_time: moment,
  end_time: moment,
  results: z.array(z.looseObject({ object: z.string('must say what it is') }), 'must be an array'),
});

type Lines = Pick<UsageLine, 'bucket'>;

/** `seen`: shared by the files of one account. */
export function readOpenaiInvoice(text: string, seen = new RowsSeen()): InvoiceRead {
  const read = readPages(text, bucket);
  if (!read.ok) return read;
  const usage: UsageLine[] = [];
  const costs: CostLine[] = [];
  const left = new Set<string>();
  const { buckets, isCut } = read.pages;
  for (const [at, { start_time: from, end_time: until, results }] of buckets.entries()) {
    const within: Lines = { bucket: { fromMs: from * SECOND_MS, untilMs: until * SECOND_MS } };
    for (const [place, result] of results.entries()) {
      seen.add(within.bucket, result);
      const line = readResult(result, within);
      if ('problem' in line) return { ok: false, problem: `bucket ${at + 1}, results[${place}]${line.problem}` };
      if ('cost' in line) costs.push(line);
      else if ('meters' in line) usage.push(line);
      else left.add(line.object);
    }
  }
  const notes = [
    ...(isCut ? [CUT_NOTE] : []),
    ...[...left].map((object) => `Results of the kind ${object} are not compared.`),
  ];
  const covered = buckets.map(({ start_time: from, end_time: until }) => ({
    fromMs: from * SECOND_MS,
    untilMs: until * SECOND_MS,
  }));
  return { ok: true, invoice: { vendor: 'openai', buckets: covered, usage, costs, notes } };
}

type Read = UsageLine | CostLine | { readonly problem: string } | { readonly object: string };

function readResult(result: { readonly object: string }, within: Lines): Read {
  const { object } = result;
  if (object === 'organization.usage.completions.result' || object === 'organization.usage.embeddings.result')
    return shaped(tokens, result, (found) => tokenLine(found, within));
  if (object === 'organization.costs.result') return shaped(cost, result, (found) => costLine(found, within));
  if (object === 'organization.usage.images.result')
    return shaped(images, result, ({ model, api_key_id: key, images: image, num_model_requests: requests }) => ({
      ...within,
      ...PLAIN,
      model,
      key,
      requests,
      meters: { ...NO_METERS, image },
    }));
  if (object === 'organization.usage.web_searches.result')
    return shaped(searches, result, ({ model, api_key_id: key, num_requests: calls }) => ({
      ...within,
      ...PLAIN,
      model,
      key,
      requests: null,
      meters: { ...NO_METERS, web_search: calls },
    }));
  return { object };
}

const PLAIN = { tier: null, isLong: null };

function shaped<Shape>(schema: z.ZodType<Shape>, result: unknown, lineOf: (found: Shape) => Read): Read {
  const read = schema.safeParse(result);
  return read.success ? lineOf(read.data) : resultProblem(read.error);
}

function tokenLine(found: z.output<typeof tokens>, within: Lines): Read {
  const cached = found.input_cached_tokens;
  const written = found.input_cache_write_tokens;
  const input = found.input_tokens - cached - written;
  if (input < 0) return { problem: '.input_tokens: is less than its cached and written parts' };
  return {
    ...within,
    model: found.model,
    key: found.api_key_id,
    tier: found.batch === true ? 'batch' : (found.service_tier ?? (found.batch === false ? 'default' : null)),
    isLong: null,
    requests: found.num_model_requests,
    meters: { ...NO_METERS, input, cached_input: cached, cache_write: written, output: found.output_tokens },
  };
}

const UNITS: Readonly<Record<string, number>> = { tokens: 1, '1000_tokens': 1_000 };

function costLine(found: z.output<typeof cost>, within: Lines): Read {
  if (found.amount == null) return { object: 'organization.costs.result without an amount' };
  const { value, currency } = found.amount;
  if (currency !== null && currency.toLowerCase() !== 'usd')
    return { problem: `.amount.currency: is ${currency}; only usd can be compared` };
  const item = readLineItem(found.line_item);
  const unit = item.meter === null ? undefined : UNITS[found.quantity_unit ?? 'tokens'];
  const quantity = found.quantity == null || unit === undefined ? Number.NaN : Number(found.quantity) * unit;
  return {
    ...within,
    ...item,
    key: found.api_key_id,
    quantity: Number.isSafeInteger(quantity) ? quantity : null,
    cost: value.amount,
    step: value.step,
    description: found.line_item,
  };
}

const LINE_ITEM =
  /^(?:([\w-]+) \| )?([\w.:/-]+)(?: (?:text|audio|image))?, (input|output|cached input|cache writes?)((?:, [\w ]+)*)$/;
const METER_OF: Readonly<Record<string, Meter>> = {
  input: 'input',
  output: 'output',
  'cached input': 'cached_input',
  'cache write': 'cache_write',
  'cache writes': 'cache_write',
};

const SEARCH = /^web search\b.*\bcalls?$/i;

/** An item that is not the cost of a model's tokens has no model; its text is kept as the description. */
function readLineItem(text: string | null): Pick<CostLine, 'model' | 'meter' | 'tier' | 'isLong'> {
  const match = text === null ? null : LINE_ITEM.exec(text);
  if (match === null) return { model: null, meter: text !== null && SEARCH.test(text) ? 'web_search' : null, ...PLAIN };
  const [, prefix, model = '', words = '', rest = ''] = match;
  const tier = prefix ?? (rest.includes(', batch') ? 'batch' : 'default');
  return { model, meter: METER_OF[words] ?? null, tier, isLong: rest.includes(', long context') };
}
