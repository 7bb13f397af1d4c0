// Puts a provider's export ("theirs") and our records ("ours") side by side: a row for each day, model and key that
// both tell apart.

import type { CostLine, Invoice, UsageLine } from './invoice.ts';
import { dayAt, type InvoiceDay } from './invoice-days.ts';
import { METERS, NO_METERS } from './meters.ts';
import { pairKeys, pairModels, type UseByCell } from './pair-names.ts';
import { meterCost, type PricesByVersion } from './rate-recorded.ts';
import { credentialOf, type RecordedUsage } from './recorded-usage.ts';

/** Stands for all models or keys, where an export does not tell them apart. */
export const ALL = '*';
/**
 * The key of their lines without one, in an export that has keys: usage without an API key, such as on the provider's
 * own pages.
 */
const NO_KEY = '(none)';
/** Calls of tools are billed apart from the models that made them. */
const WEB_SEARCH = 'web_search';

export interface CompareParams {
  readonly invoice: Invoice;
  readonly days: readonly InvoiceDay[];
  readonly recorded: readonly RecordedUsage[];
  readonly prices: PricesByVersion;
  /** Our name for each of their names, as the user gave them. */
  readonly models: ReadonlyMap<string, string>;
  readonly keys: ReadonlyMap<string, string>;
}

export interface InvoiceRow {
  /** Index of the day. */
  readonly day: number;
  /** Our name, or theirs if it is unknown here. */
  readonly model: string;
  readonly key: string;
  readonly isModelKnown: boolean;
  readonly isKeyKnown: boolean;
  readonly ours: readonly RecordedUsage[];
  /** null: the export does not tell this apart. */
  readonly usage: readonly UsageLine[] | null;
  readonly costs: readonly CostLine[] | null;
  /** The row has only the calls of a tool. */
  readonly isCalls: boolean;
}

export interface RowsFound {
  readonly rows: readonly InvoiceRow[];
  /**
   * The records that are compared: those of the service's keys, and of own keys that were paired with a key of the
   * export.
   */
  readonly recorded: readonly RecordedUsage[];
  /** The records of other own keys, which are on other bills. */
  readonly others: readonly RecordedUsage[];
  readonly notes: readonly string[];
  /** The use of one of their keys, by day and model. */
  useOf(key: string): UseByCell;
}

interface Dimensions {
  readonly hasModel: boolean;
  readonly hasKey: boolean;
}

export function findRows(params: CompareParams): RowsFound {
  const { invoice, days } = params;
  const recorded = tellsCalls(invoice)
    ? params.recorded
    : params.recorded.map((one) => splitCalls(one, params.prices)[0]);
  const lines = withDays(invoice, days);
  const models = pairModels(
    [...lines.usage, ...lines.costs].flatMap(({ line }) => (line.model === null ? [] : [line.model])),
    [...new Set(recorded.map(({ providerModel }) => providerModel))],
    params.models,
  );
  // Keys are paired by usage or, if only the costs have keys, by cost.
  const hasUsage = dimensionsOf(lines.usage).hasKey;
  const uses = usesByKey(hasUsage ? lines.usage : lines.costs, models.ours);
  const own = recorded.filter(({ credentialId }) => credentialId === null);
  const keys = pairKeys(uses, ownUses(own, hasUsage ? tokensOf : ({ cost }) => Number(cost)), params.keys);
  const billed = new Set(keys.ours.values());
  const compared = recorded.filter((usage) => usage.credentialId === null || billed.has(credentialOf(usage)));
  const names = { models: models.ours, keys: keys.ours };
  const tables = tablesOf(lines);
  return {
    rows: tables.flatMap((table) => rowsOf(table, { ...params, recorded: compared }, names)),
    recorded: compared,
    others: recorded.filter((usage) => !compared.includes(usage)),
    notes: [...models.notes, ...keys.notes],
    useOf: (key) => uses.get(key) ?? new Map(),
  };
}

/** Whether the export includes searches: OpenAI has a separate export for them. */
function tellsCalls({ vendor, usage, costs }: Invoice): boolean {
  return vendor !== 'openai' || costs.length > 0 || usage.some(({ meters }) => meters.web_search > 0);
}

interface Dated<Line> {
  readonly day: number;
  readonly line: Line;
}

interface Lines {
  readonly usage: readonly Dated<UsageLine>[];
  readonly costs: readonly Dated<CostLine>[];
}

function withDays({ usage, costs }: Invoice, days: readonly InvoiceDay[]): Lines {
  const dated = <Line extends UsageLine | CostLine>(lines: readonly Line[]): Dated<Line>[] =>
    lines.map((line) => ({ day: dayAt(days, line.bucket.fromMs), line })).filter(({ day }) => day >= 0);
  const datedCosts = dated(costs);
  return { usage: dated(usage.length > 0 ? usage : quantities(costs)), costs: datedCosts };
}

/** Usage that is taken from costs, if every cost of a model's meter has a quantity. */
function quantities(costs: readonly CostLine[]): readonly UsageLine[] {
  const told = costs.every(({ meter, quantity, model }) => meter === null || model === null || quantity !== null);
  if (!told) return [];
  return costs.flatMap(({ meter, quantity, model, bucket, key, tier, isLong }): UsageLine[] => {
    if (meter === null || quantity === null || model === null) return [];
    return [{ bucket, model, key, tier, isLong, meters: { ...NO_METERS, [meter]: quantity }, requests: null }];
  });
}

function dimensionsOf(lines: readonly Dated<UsageLine | CostLine>[]): Dimensions {
  return {
    hasModel: lines.some(({ line: { model } }) => model !== null),
    hasKey: lines.some(({ line: { key } }) => key !== null),
  };
}

interface Table extends Dimensions {
  readonly usage: readonly Dated<UsageLine>[] | null;
  readonly costs: readonly Dated<CostLine>[] | null;
}

/**
 * One table if the costs have as many dimensions as the usage; else a table of usage, and a table of costs, with the
 * usage beside them if it has their dimensions.
 */
function tablesOf({ usage, costs }: Lines): readonly Table[] {
  const used = dimensionsOf(usage);
  // The export of costs may have no keys. If the usage has only one key, the costs are that key's.
  const onlyKey = new Set(usage.map(({ line }) => line.key)).size === 1 ? (usage[0]?.line.key ?? null) : null;
  const keyed = costs.map(({ day, line }) => ({ day, line: { ...line, key: line.key ?? onlyKey } }));
  const cost = dimensionsOf(keyed);
  if (costs.length === 0) return [{ ...used, usage, costs: null }];
  if (usage.length === 0) return [{ ...cost, usage: null, costs: keyed }];
  const isAsFine = (one: Dimensions, other: Dimensions): boolean =>
    (one.hasModel || !other.hasModel) && (one.hasKey || !other.hasKey);
  if (isAsFine(cost, used)) return [{ ...used, usage, costs: keyed }];
  return [
    { ...used, usage, costs: null },
    { ...cost, usage: isAsFine(used, cost) ? usage : null, costs: keyed },
  ];
}

interface Names {
  readonly models: ReadonlyMap<string, string>;
  readonly keys: ReadonlyMap<string, string>;
}

interface OpenRow {
  readonly place: Omit<InvoiceRow, 'ours' | 'usage' | 'costs'>;
  readonly ours: RecordedUsage[];
  readonly usage: UsageLine[];
  readonly costs: CostLine[];
}

function rowsOf(table: Table, { days, recorded, prices }: CompareParams, names: Names): readonly InvoiceRow[] {
  const rows = new Map<string, OpenRow>();
  const rowAt = (place: OpenRow['place']): OpenRow => {
    const name = JSON.stringify([place.day, place.model, place.key]);
    const row = rows.get(name) ?? { place, ours: [], usage: [], costs: [] };
    rows.set(name, row);
    return row;
  };
  const placeOf = (day: number, line: UsageLine | CostLine): OpenRow['place'] => placeOfLine(day, line, table, names);
  for (const usage of recorded) {
    if (usage.day < 0 || usage.day >= days.length) continue;
    const place = {
      day: usage.day,
      model: table.hasModel ? usage.providerModel : ALL,
      key: table.hasKey ? credentialOf(usage) : ALL,
      isModelKnown: true,
      isKeyKnown: true,
      isCalls: false,
    };
    if (!table.hasModel || table.costs === null || usage.meters.web_search === 0) rowAt(place).ours.push(usage);
    else {
      const [model, calls] = splitCalls(usage, prices);
      rowAt(place).ours.push(model);
      rowAt({ ...place, model: WEB_SEARCH, isCalls: true }).ours.push(calls);
    }
  }
  for (const { day, line } of table.usage ?? []) rowAt(placeOf(day, line)).usage.push(withoutCalls(line, table));
  for (const { day, line } of table.costs ?? []) rowAt(placeOf(day, line)).costs.push(line);
  return [...rows.values()].map(({ place, ours, usage, costs }) => ({
    ...place,
    ours,
    // A row with a cost and no usage belongs to an export of usage that was not given, such as OpenAI's of images.
    usage: table.usage === null || place.isCalls || (usage.length === 0 && costs.length > 0) ? null : usage,
    costs: table.costs === null ? null : costs,
  }));
}

function placeOfLine(day: number, line: UsageLine | CostLine, table: Dimensions, names: Names): OpenRow['place'] {
  const isCalls = table.hasModel && 'cost' in line && line.model === null && line.meter === 'web_search';
  const named = line.model ?? ('cost' in line ? (line.description ?? ALL) : ALL);
  const model = isCalls ? WEB_SEARCH : table.hasModel ? (names.models.get(named) ?? named) : ALL;
  const theirKey = line.key ?? NO_KEY;
  const key = table.hasKey ? (names.keys.get(theirKey) ?? theirKey) : ALL;
  return {
    day,
    model,
    key,
    // A line without a model cannot have an unknown model.
    isModelKnown: !table.hasModel || isCalls || line.model === null || names.models.has(line.model),
    isKeyKnown: !table.hasKey || names.keys.has(theirKey),
    isCalls,
  };
}

/** Searches have a row of their own if costs are compared. */
function withoutCalls(line: UsageLine, { hasModel, costs }: Table): UsageLine {
  return hasModel && costs !== null ? { ...line, meters: { ...line.meters, web_search: 0 } } : line;
}

function splitCalls(
  usage: RecordedUsage,
  prices: PricesByVersion,
): readonly [model: RecordedUsage, calls: RecordedUsage] {
  const cost = meterCost(usage, WEB_SEARCH, prices) ?? 0n;
  const { web_search: calls, ...tokens } = usage.meters;
  return [
    { ...usage, meters: { ...tokens, web_search: 0 }, cost: usage.cost - cost },
    {
      ...usage,
      meters: { ...NO_METERS, web_search: calls },
      cost,
      requests: 0,
      unrated: 0,
      suspected: 0,
      suspense: 0n,
    },
  ];
}

function usesByKey(
  lines: readonly Dated<UsageLine | CostLine>[],
  models: ReadonlyMap<string, string>,
): ReadonlyMap<string, UseByCell> {
  const uses = new Map<string, Map<string, number>>();
  if (!dimensionsOf(lines).hasKey) return uses;
  for (const { day, line } of lines) {
    const model = line.model === null ? ALL : (models.get(line.model) ?? line.model);
    addUse(uses, line.key ?? NO_KEY, `${day} ${model}`, 'meters' in line ? tokensOf(line) : Number(line.cost));
  }
  return uses;
}

/** What each of our keys was used for, by day and model. */
export function ownUses(
  recorded: readonly RecordedUsage[],
  amountOf: (usage: RecordedUsage) => number = tokensOf,
): ReadonlyMap<string, UseByCell> {
  const uses = new Map<string, Map<string, number>>();
  for (const usage of recorded)
    addUse(uses, credentialOf(usage), `${usage.day} ${usage.providerModel}`, amountOf(usage));
  return uses;
}

function tokensOf({ meters }: Pick<UsageLine, 'meters'>): number {
  return METERS.reduce((sum, meter) => sum + meters[meter], 0);
}

function addUse(uses: Map<string, Map<string, number>>, key: string, cell: string, amount: number): void {
  const use = uses.get(key) ?? new Map<string, number>();
  uses.set(key, use);
  use.set(cell, (use.get(cell) ?? 0) + amount);
}
