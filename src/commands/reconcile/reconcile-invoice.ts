// `tollgate reconcile invoice`: compares a provider's exports of usage and costs with the ledger, and shows by day,
// model and key which rows differ, and the likely cause.

import { readFileSync, statSync } from 'node:fs';
import { compareInvoice, type Tolerance } from '../../domain/invoices/compare-invoice.ts';
import { type Invoice, VENDORS, type Vendor } from '../../domain/invoices/invoice.ts';
import { findDays, type InvoiceDay } from '../../domain/invoices/invoice-days.ts';
import { inputSizes } from '../../domain/invoices/rate-recorded.ts';
import { readAnthropicInvoice } from '../../domain/invoices/read-anthropic.ts';
import { readOpenaiInvoice } from '../../domain/invoices/read-openai.ts';
import { RowsSeen } from '../../domain/invoices/read-pages.ts';
import { credentialOf, type RecordedUsage } from '../../domain/invoices/recorded-usage.ts';
import { parseUsd } from '../../domain/money/parse-usd.ts';
import { DAY_MS } from '../../platform/durations.ts';
import { readPriceVersions } from '../../storage/postgres/catalog/price-rows.ts';
import {
  findUsedPrices,
  readProviderNames,
  readRecordedUsage,
  readVendorProviders,
} from '../../storage/postgres/ledger/recorded-usage.ts';
import type { Postgres } from '../../storage/postgres/pool.ts';
import { type CommandContext, parseArguments, UsageFault } from '../command/command.ts';
import { withDatabase } from '../command/database.ts';
import { renderComparison } from './invoice-text.ts';

export const INVOICE_USAGE =
  'tollgate reconcile invoice openai|anthropic FILE... [--provider ID]... [--key THEIRS=OURS]... ' +
  '[--model THEIRS=OURS]... [--start-date DAY] [--end-date DAY] [--tolerance USD|PERCENT%] [--all] [--json | --csv]';

const OPTIONS = {
  provider: { type: 'string', multiple: true },
  key: { type: 'string', multiple: true },
  model: { type: 'string', multiple: true },
  'start-date': { type: 'string' },
  'end-date': { type: 'string' },
  tolerance: { type: 'string', default: '0' },
  all: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
  csv: { type: 'boolean', default: false },
} as const;

/** A month in minutes for a hundred keys and models is smaller; V8 cannot hold a text of twice this size. */
const FILE_BYTES_MAX = 256 * 1024 * 1024;
const READERS = { openai: readOpenaiInvoice, anthropic: readAnthropicInvoice };
/** The hosts whose use is on a vendor's bill; its regions are on the same bill. */
const HOSTS: Readonly<Record<Vendor, string>> = {
  openai: '^https://([a-z0-9-]+\\.)?api\\.openai\\.com(/|$)',
  anthropic: '^https://api\\.anthropic\\.com(/|$)',
};

/** Exit code 0: everything is within the tolerance, 1: something is not, 2: an option or a file cannot be read. */
export async function reconcileInvoice(
  args: readonly string[],
  { environment, print }: CommandContext,
): Promise<number> {
  const { values, positionals } = parseArguments(args, OPTIONS);
  const [name = '', ...files] = positionals;
  const vendor = VENDORS.find((one) => one === name);
  if (vendor === undefined) throw new UsageFault(`unknown vendor "${name}"; there are ${VENDORS.join(', ')}`);
  if (files.length === 0) throw new UsageFault('FILE is missing');
  if (values.json && values.csv) throw new UsageFault('--json and --csv exclude each other');
  const tolerance = readTolerance(values.tolerance);
  const [models, keys] = [readPairs('model', values.model ?? []), readPairs('key', values.key ?? [])];
  const seen = new RowsSeen();
  const invoice = joinInvoices(
    files.map((file) => readFile(vendor, file, seen)),
    seen,
  );
  const found = findDays({
    invoice,
    fromMs: readDay('start-date', values['start-date'], 0),
    untilMs: readDay('end-date', values['end-date'], DAY_MS),
  });
  if (!found.ok) throw new UsageFault(found.problem);
  const { days } = found;
  return withDatabase(environment, async (postgres) => {
    const providers = await findProviders(postgres, vendor, values.provider ?? []);
    const { recorded, prices } = await readRecorded(postgres, days, providers);
    await checkNamed(postgres, values.provider ?? [], recorded);
    checkPairs('key', keys, [...providers, ...recorded.map(credentialOf)]);
    checkPairs(
      'model',
      models,
      recorded.map(({ providerModel }) => providerModel),
    );
    const comparison = compareInvoice({ invoice, days, recorded, prices, models, keys }, tolerance);
    const form = values.json ? 'json' : values.csv ? 'csv' : 'text';
    print(renderComparison(comparison, { form, vendor, days, providers, showsAll: values.all }));
    return comparison.isWithin ? 0 : 1;
  });
}

function readFile(vendor: Vendor, path: string, seen: RowsSeen): Invoice {
  let text: string;
  try {
    const { size } = statSync(path);
    if (size > FILE_BYTES_MAX)
      throw new UsageFault(`${path} has ${size} bytes, and at most ${FILE_BYTES_MAX} are read: export fewer days`);
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof UsageFault) throw error;
    throw new UsageFault(`cannot read ${path}: ${(error as Error).message}`);
  }
  const read = READERS[vendor](text, seen);
  if (!read.ok) throw new UsageFault(`${path}: ${read.problem}`);
  return read.invoice;
}

/** Exports of usage and of costs, or of one day each, are joined into one invoice. */
function joinInvoices(invoices: readonly Invoice[], seen: RowsSeen): Invoice {
  const [first] = invoices as readonly [Invoice, ...Invoice[]];
  return {
    vendor: first.vendor,
    buckets: invoices.flatMap(({ buckets }) => buckets),
    usage: invoices.flatMap(({ usage }) => usage),
    costs: invoices.flatMap(({ costs }) => costs),
    notes: [...new Set(invoices.flatMap(({ notes }) => notes)), ...seen.notes()],
  };
}

function readDay(name: string, text: string | undefined, addMs: number): number | null {
  if (text === undefined) return null;
  const ms = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(ms)) throw new UsageFault(`--${name} is "${text}": it takes a day, such as 2026-11-01`);
  return ms + addMs;
}

function readTolerance(text: string): Tolerance {
  const percent = /^(\d{1,3})(?:\.(\d{1,3}))?%$/.exec(text);
  if (percent !== null) return { milliPercent: BigInt(`${percent[1]}${(percent[2] ?? '').padEnd(3, '0')}`) };
  const amount = parseUsd(text);
  if (amount === null) throw new UsageFault(`--tolerance is "${text}": it takes dollars (0.01) or a share (0.5%)`);
  return { amount };
}

function readPairs(name: string, texts: readonly string[]): ReadonlyMap<string, string> {
  return new Map(
    texts.map((text) => {
      const at = text.lastIndexOf('=');
      if (at <= 0 || at === text.length - 1) throw new UsageFault(`--${name} is "${text}": it takes THEIRS=OURS`);
      return [text.slice(0, at), text.slice(at + 1)] as const;
    }),
  );
}

function checkPairs(name: string, pairs: ReadonlyMap<string, string>, known: readonly string[]): void {
  for (const [theirs, ours] of pairs) {
    if (!known.includes(ours))
      throw new UsageFault(
        `--${name} ${theirs}=${ours}: nothing was recorded for "${ours}" on these days; ` +
          `there are ${[...new Set(known)].join(', ')}`,
      );
  }
}

async function findProviders(postgres: Postgres, vendor: Vendor, named: readonly string[]): Promise<readonly string[]> {
  const providers = named.length > 0 ? named : await readVendorProviders(postgres, HOSTS[vendor], vendor);
  if (providers.length === 0)
    throw new UsageFault(`no provider is at the address of ${vendor}: name those that are on its bill by --provider`);
  return providers;
}

/** A provider that has been removed is known by what was recorded for it. */
async function checkNamed(postgres: Postgres, named: readonly string[], recorded: readonly RecordedUsage[]) {
  const known = new Set([...(await readProviderNames(postgres)), ...recorded.map(({ provider }) => provider)]);
  const unknown = named.find((id) => !known.has(id));
  if (unknown !== undefined)
    throw new UsageFault(
      `--provider ${unknown}: there is no such provider, and nothing was recorded for it on these days; ` +
        `there are ${[...known].join(', ')}`,
    );
}

async function readRecorded(postgres: Postgres, days: readonly InvoiceDay[], providers: readonly string[]) {
  const daysMs = [...days.map(({ fromMs }) => fromMs), days.at(-1)?.untilMs ?? 0];
  const prices = await readPriceVersions(postgres, await findUsedPrices(postgres, { daysMs, providers }));
  const recorded: RecordedUsage[] = [];
  const params = { daysMs, providers, sizes: inputSizes(prices) };
  for await (const usage of readRecordedUsage(postgres, params)) recorded.push(usage);
  return { recorded, prices };
}
