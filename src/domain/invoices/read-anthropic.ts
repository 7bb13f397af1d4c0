// Reads what Anthropic's Usage and Cost Admin API exports: pages of /v1/organizations/usage_report/messages and
// /v1/organizations/cost_report, one or several in a file, in any order.
// platform.claude.com/docs/en/api/admin/cost_report: an amount is in cents, as a decimal string.

import { z } from 'zod';
import type { Bucket, CostLine, InvoiceRead, UsageLine } from './invoice.ts';
import type { Meter } from './meters.ts';
import { amount, CUT_NOTE, count, RowsSeen, readPages, resultProblem, word } from './read-pages.ts';

const CENT_DECIMALS = 10;
const LONG_CONTEXT = '200k-1M';

const served = { model: word, service_tier: word, context_window: word };
const usage = z.object({
  ...served,
  api_key_id: word,
  uncached_input_tokens: count,
  cache_read_input_tokens: count,
  cache_creation: z.object({ ephemeral_1h_input_tokens: count, ephemeral_5m_input_tokens: count }).nullish(),
  output_tokens: count,
  server_tool_use: z.object({ web_search_requests: count }).nullish(),
});
const cost = z.object({
  ...served,
  amount: amount(CENT_DECIMALS),
  currency: word,
  cost_type: word,
  token_type: word,
  description: word,
});
const moment = z.iso
  .datetime({ offset: true, error: 'must be a moment, such as 2026-11-01T00:00:00Z' })
  .transform((text) => Date.parse(text));
const bucket = z.object({
  starting_at: moment,
  ending_at: moment,
  results: z.array(z.looseObject({}), 'must be an array'),
});

/** `seen`: shared by the files of one account. */
export function readAnthropicInvoice(text: string, seen = new RowsSeen()): InvoiceRead {
  const read = readPages(text, bucket);
  if (!read.ok) return read;
  const lines: UsageLine[] = [];
  const costs: CostLine[] = [];
  const { buckets, isCut } = read.pages;
  const covered: Bucket[] = [];
  for (const [at, { starting_at: fromMs, ending_at: untilMs, results }] of buckets.entries()) {
    const within: Bucket = { fromMs, untilMs };
    covered.push(within);
    for (const [place, result] of results.entries()) {
      seen.add(within, result);
      const line = 'amount' in result ? costLine(result, within) : usageLine(result, within);
      if ('problem' in line) return { ok: false, problem: `bucket ${at + 1}, results[${place}]${line.problem}` };
      if ('cost' in line) costs.push(line);
      else lines.push(line);
    }
  }
  const notes = [
    ...(isCut ? [CUT_NOTE] : []),
    ...(costs.length > 0 && lines.some(({ tier }) => tier === 'priority')
      ? ["Anthropic's cost report leaves out its Priority Tier: what that costs is not compared."]
      : []),
  ];
  return { ok: true, invoice: { vendor: 'anthropic', buckets: covered, usage: lines, costs, notes } };
}

function usageLine(result: object, within: Bucket): UsageLine | { readonly problem: string } {
  if (!('uncached_input_tokens' in result))
    return { problem: ': is neither of the usage report (uncached_input_tokens) nor of the cost report (amount)' };
  const read = usage.safeParse(result);
  if (!read.success) return resultProblem(read.error);
  const found = read.data;
  return {
    bucket: within,
    model: found.model,
    // If other lines have a key, null stands for usage in the Workbench; invoice-rows.ts decides that.
    key: found.api_key_id,
    tier: found.service_tier,
    isLong: found.context_window === null ? null : found.context_window === LONG_CONTEXT,
    requests: null,
    meters: {
      input: found.uncached_input_tokens,
      cached_input: found.cache_read_input_tokens,
      cache_write: found.cache_creation?.ephemeral_5m_input_tokens ?? 0,
      cache_write_1h: found.cache_creation?.ephemeral_1h_input_tokens ?? 0,
      output: found.output_tokens,
      image: 0,
      web_search: found.server_tool_use?.web_search_requests ?? 0,
    },
  };
}

const METER_OF: Readonly<Record<string, Meter>> = {
  uncached_input_tokens: 'input',
  cache_read_input_tokens: 'cached_input',
  'cache_creation.ephemeral_5m_input_tokens': 'cache_write',
  'cache_creation.ephemeral_1h_input_tokens': 'cache_write_1h',
  output_tokens: 'output',
};

function costLine(result: object, within: Bucket): CostLine | { readonly problem: string } {
  const read = cost.safeParse(result);
  if (!read.success) return resultProblem(read.error);
  const { currency, cost_type: kind, token_type: type, context_window: window, ...found } = read.data;
  if (currency !== null && currency.toUpperCase() !== 'USD')
    return { problem: `.currency: is ${currency}; only USD can be compared` };
  return {
    bucket: within,
    model: found.model,
    key: null,
    tier: found.service_tier,
    isLong: window === null ? null : window === LONG_CONTEXT,
    meter: kind === 'web_search' ? 'web_search' : type === null ? null : (METER_OF[type] ?? null),
    quantity: null,
    cost: found.amount.amount,
    step: found.amount.step,
    description: found.description ?? kind,
  };
}
