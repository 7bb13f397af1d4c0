// Compares a provider's export ("theirs") with our records ("ours"): the difference of each row, its likely causes, and
// whether it is within the tolerance.

import { nearestNames } from '../list-prices/nearest-names.ts';
import type { Cause } from './causes.ts';
import { absolute, explainCost, servedOtherwise, stepsOf } from './explain-cost.ts';
import { explainUsage, isMeasured, sumRequests } from './explain-usage.ts';
import type { CostLine, Invoice } from './invoice.ts';
import { ALL, type CompareParams, findRows, type InvoiceRow, ownUses, type RowsFound } from './invoice-rows.ts';
import { addMeters, describeMeters, isNothing, METERS, type Meters, NO_METERS, sumMeters } from './meters.ts';
import { SAME_FROM, similarity } from './pair-names.ts';
import { costAt, unitPrice } from './rate-recorded.ts';
import { credentialOf, type RecordedUsage } from './recorded-usage.ts';

export interface Side {
  /** null: the export does not say. */
  readonly meters: Meters | null;
  readonly requests: number | null;
  readonly cost: bigint | null;
}

export interface ComparedRow {
  readonly day: string;
  readonly model: string;
  readonly key: string;
  readonly ours: Side;
  readonly theirs: Side;
  /**
   * Theirs less ours, in pico-dollars: the difference of the costs or, if the export has none, the value of the
   * difference in counts at our prices.
   */
  readonly difference: bigint;
  /** The likeliest first; none: nothing differs. */
  readonly causes: readonly Cause[];
  readonly isWithin: boolean;
}

/** How much the sides of a row may differ: by an amount, or by thousandths of a percent of the greater side. */
export type Tolerance = { readonly amount: bigint } | { readonly milliPercent: bigint };

export interface Comparison {
  readonly rows: readonly ComparedRow[];
  readonly notes: readonly string[];
  /** The sum of their costs; null: the export has no costs. */
  readonly theirs: bigint | null;
  readonly ours: bigint;
  readonly isWithin: boolean;
}

interface Compared extends CompareParams {
  readonly found: RowsFound;
  readonly deltas: ReadonlyMap<InvoiceRow, Meters>;
}

export function compareInvoice(given: CompareParams, tolerance: Tolerance): Comparison {
  const params = { ...given, invoice: withFinestStep(given.invoice) };
  const found = findRows(params);
  const deltas = new Map(found.rows.map((row) => [row, deltaOf(row)]));
  const all: Compared = { ...params, found, deltas };
  const rows = found.rows.map((row) => compareRow(row, all, tolerance)).sort(byPlace);
  const asked = found.rows.flatMap(({ costs }) => costs ?? []);
  return {
    rows,
    notes: [...params.invoice.notes, ...found.notes],
    theirs: params.invoice.costs.length === 0 ? null : costOf(asked),
    ours: ourCost(found.recorded.filter(({ day }) => day >= 0 && day < params.days.length)),
    isWithin: rows.every(({ isWithin }) => isWithin),
  };
}

/**
 * The most exact amount tells how exact all amounts of the export are: trailing zeros of the others are not written.
 */
function withFinestStep(invoice: Invoice): Invoice {
  const [first, ...others] = invoice.costs;
  if (first === undefined) return invoice;
  const step = others.reduce((finest, line) => (line.step < finest ? line.step : finest), first.step);
  return { ...invoice, costs: invoice.costs.map((line) => ({ ...line, step })) };
}

function byPlace(one: ComparedRow, other: ComparedRow): number {
  const [a, b] = [one, other].map(({ day, model, key }) => `${day} ${model} ${key}`) as [string, string];
  return a < b ? -1 : a > b ? 1 : 0;
}

function compareRow(row: InvoiceRow, all: Compared, tolerance: Tolerance): ComparedRow {
  const delta = all.deltas.get(row) ?? NO_METERS;
  const measured = row.ours.filter(isMeasured);
  const own = ourCost(row.ours);
  const asked = row.costs === null ? null : costOf(row.costs);
  const difference = asked === null ? worthOf(delta, row, all) : asked - own;
  const causes = isSame(row, delta, difference) ? [] : explainRow(row, difference, all);
  const theirMeters = row.usage === null ? null : sumMeters(row.usage);
  return {
    day: all.days[row.day]?.label ?? '',
    model: row.model,
    key: row.key,
    ours: {
      meters: sumMeters(measured),
      requests: sumRequests(measured),
      cost: own,
    },
    theirs: { meters: theirMeters, requests: theirRequests(row), cost: asked },
    difference,
    causes,
    isWithin: causes.length === 0 || isTolerated(difference, own, asked ?? own + difference, tolerance),
  };
}

/** A difference of zero here means that its amount is unknown, so it is never tolerated. */
function isTolerated(difference: bigint, ours: bigint, theirs: bigint, tolerance: Tolerance): boolean {
  if (difference === 0n) return false;
  if ('amount' in tolerance) return absolute(difference) <= tolerance.amount;
  const greater = ours > theirs ? ours : theirs;
  return absolute(difference) * 100_000n <= greater * tolerance.milliPercent;
}

function isSame(row: InvoiceRow, delta: Meters, difference: bigint): boolean {
  if (row.usage !== null && !isNothing(delta)) return false;
  if (row.costs !== null) return absolute(difference) <= roundingOf(row, row.costs);
  return servedOtherwise(row).length === 0;
}

/**
 * Rounding may account for one unit in the last digit of each of their amounts, and for up to a pico-dollar of each of
 * our requests.
 */
function roundingOf(row: InvoiceRow, costs: readonly CostLine[]): bigint {
  return stepsOf(costs) + BigInt(sumRequests(row.ours) + METERS.length);
}

function explainRow(row: InvoiceRow, difference: bigint, all: Compared): readonly Cause[] {
  const whole = wholeRowCause(row, difference, all);
  if (whole !== null) return [whole];
  const usage = row.usage === null ? [] : explainUsage(usageDifference(row, all));
  const causes: Cause[] = usage.map(({ kind, evidence, part }) => ({ kind, evidence, cost: worthOf(part, row, all) }));
  const served = servedOtherwise(row);
  if (row.costs === null) return [...causes, ...served.map((cause) => ({ ...cause, cost: null }))];
  const worth = causes.reduce((sum, { cost }) => sum + (cost ?? 0n), 0n);
  const rest = difference - worth;
  const rounding = roundingOf(row, row.costs);
  if (absolute(rest) <= rounding) return causes;
  const [first, ...others] = served;
  if (first !== undefined)
    return [...causes, { ...first, cost: rest }, ...others.map((cause) => ({ ...cause, cost: null }))];
  const { ours, costs } = row;
  return [...causes, ...explainCost({ ours, usage: row.usage, costs, prices: all.prices, rest, rounding })];
}

/** A cause that explains the whole row: its day, its key, its model, or a charge for something else than a model. */
function wholeRowCause(row: InvoiceRow, cost: bigint, all: Compared): Cause | null {
  const day = all.days[row.day];
  const hasTheirs = (row.usage?.length ?? 0) + (row.costs?.length ?? 0) > 0;
  if (day?.isCovered === false)
    return { kind: 'day_not_exported', evidence: `the export has no bucket for ${day.label}`, cost };
  if (!hasTheirs) return null;
  const other = otherCharge(row, cost);
  if (other !== null) return other;
  if (!row.isKeyKnown) return { kind: 'unknown_key', evidence: describeKey(row, all), cost };
  const isDayEmpty = !all.found.recorded.some((usage) => usage.day === row.day);
  if (isDayEmpty)
    return { kind: 'day_not_recorded', evidence: `no request was recorded on ${day?.label} for these providers`, cost };
  return row.isModelKnown ? null : { kind: 'unknown_model', evidence: describeModel(row, all), cost };
}

const CREDIT = /credit|free|discount|adjust|refund|promo/i;
const TAX = /\b(?:tax|vat|gst)\b/i;

function otherCharge({ ours, usage, costs, isCalls }: InvoiceRow, cost: bigint): Cause | null {
  if (ours.length > 0 || isCalls || (usage?.length ?? 0) > 0 || costs === null) return null;
  if (costs.some(({ model, description }) => model !== null || description === null)) return null;
  const [{ description } = { description: '' }] = costs;
  const kind = TAX.test(description ?? '')
    ? 'tax'
    : cost < 0n || CREDIT.test(description ?? '')
      ? 'credit'
      : 'other_charge';
  return { kind, evidence: `the provider describes it as "${description}", and it is for no model`, cost };
}

function describeKey({ key, usage }: InvoiceRow, { found }: Compared): string {
  const uses = found.useOf(key);
  const alike = [...ownUses(found.others)].find(([, use]) => similarity(use, uses) >= SAME_FROM);
  if (alike !== undefined)
    return `it is used like the organization's own key ${alike[0]}: --key ${key}=${alike[0]}, if this is its bill`;
  const used = sumMeters(usage ?? []);
  const told = isNothing(used) ? '' : `: ${describeMeters(used)}`;
  return `the key ${key} matches none of ours by name or use${told}; --key ${key}=OURS, if it is one`;
}

function describeModel({ model }: InvoiceRow, { recorded }: Compared): string {
  const near = nearestNames(model, [...new Set(recorded.map(({ providerModel }) => providerModel))]);
  const hint = near.length === 0 ? '' : `; called here are ${near.join(', ')}: --model ${model}=OURS, if it is one`;
  return `no request was recorded for the model ${model}${hint}`;
}

function usageDifference(row: InvoiceRow, all: Compared) {
  const beside = all.found.rows.filter(
    (other) => Math.abs(other.day - row.day) === 1 && other.model === row.model && other.key === row.key,
  );
  const isRows = ({ providerModel, ...usage }: RecordedUsage): boolean =>
    (row.model === providerModel || row.model === ALL) && (row.key === credentialOf(usage) || row.key === ALL);
  const edges = all.found.recorded.filter((usage) => usage.isAtEdge && isRows(usage));
  return {
    delta: all.deltas.get(row) ?? NO_METERS,
    ours: row.ours,
    theirRequests: theirRequests(row),
    edge: sumMeters(edges.filter(({ day }) => day === row.day)),
    edgeBeside: sumMeters(edges.filter(({ day }) => Math.abs(day - row.day) === 1)),
    deltaBeside: beside.reduce((total, other) => addMeters(total, all.deltas.get(other) ?? NO_METERS), NO_METERS),
    isBesideCompared: row.day > 0 && row.day < all.days.length - 1,
  };
}

function deltaOf({ usage, ours }: InvoiceRow): Meters {
  if (usage === null) return NO_METERS;
  return addMeters(sumMeters(usage), sumMeters(ours.filter(isMeasured)), -1);
}

function theirRequests({ usage }: InvoiceRow): number | null {
  if (usage === null || usage.length === 0 || usage.some(({ requests }) => requests === null)) return null;
  return usage.reduce((sum, { requests }) => sum + (requests ?? 0), 0);
}

/**
 * The value of these counts at our prices of the same row; if a meter has none there, at our prices of the model on any
 * other day.
 */
function worthOf(meters: Meters, { ours, model }: InvoiceRow, { found, prices }: Compared): bigint {
  const alike = found.recorded.filter(({ providerModel }) => providerModel === model || model === ALL);
  return METERS.reduce((sum, meter) => {
    if (meters[meter] === 0) return sum;
    const price = unitPrice(ours.filter(isMeasured), meter, prices) ?? unitPrice(alike, meter, prices);
    return price === null ? sum : sum + costAt(price, meters[meter]);
  }, 0n);
}

function ourCost(usages: readonly RecordedUsage[]): bigint {
  return usages.reduce((sum, { cost }) => sum + cost, 0n);
}

function costOf(lines: readonly CostLine[]): bigint {
  return lines.reduce((sum, { cost }) => sum + cost, 0n);
}
