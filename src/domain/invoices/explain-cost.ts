// Explains why a provider's costs differ from its own counts at our prices: a service tier, a long context, another
// price. Differences in the counts themselves are explained first (explain-usage.ts).

import { PLAIN } from '../models/price.ts';
import { formatUsdString } from '../money/format.ts';
import type { Cause } from './causes.ts';
import { isMeasured, outcomesOf, sumRequests, times } from './explain-usage.ts';
import type { CostLine, UsageLine } from './invoice.ts';
import { grouped, METERS, type Meter } from './meters.ts';
import { costAt, LONG_CONTEXT_FROM, type PricesByVersion, type UnitPrice, unitPrice } from './rate-recorded.ts';
import type { RecordedUsage } from './recorded-usage.ts';

export interface CostDifference {
  readonly ours: readonly RecordedUsage[];
  readonly usage: readonly UsageLine[] | null;
  readonly costs: readonly CostLine[];
  readonly prices: PricesByVersion;
  /** The part of the difference that is not explained yet, in pico-dollars: theirs less ours. */
  readonly rest: bigint;
  /** How much rounding may account for, in pico-dollars. */
  readonly rounding: bigint;
}

/** Each explanation subtracts what it explains from the rest. */
export function explainCost(difference: CostDifference): readonly Cause[] {
  const causes: Cause[] = [];
  let { rest } = difference;
  for (const explain of [unratedRequests, suspectedRequests, meterPrices, costAlone, wholePrice]) {
    if (absolute(rest) <= difference.rounding) break;
    for (const cause of explain({ ...difference, rest })) {
      causes.push(cause);
      rest = cause.cost === null ? 0n : rest - cause.cost;
    }
  }
  if (absolute(rest) > difference.rounding)
    causes.push({ kind: 'unexplained', evidence: `${formatUsdString(rest)} USD are left over`, cost: rest });
  return causes;
}

type Explain = (difference: CostDifference) => readonly Cause[];

const unratedRequests: Explain = ({ ours, rest }) => {
  const unrated = ours.reduce((sum, usage) => sum + usage.unrated, 0);
  if (unrated === 0 || rest <= 0n) return [];
  return [{ kind: 'no_price', evidence: `${times(unrated)} of ours have no price in the catalog`, cost: rest }];
};

const suspectedRequests: Explain = ({ ours, rest }) => {
  const suspected = ours.reduce((sum, usage) => sum + usage.suspected, 0);
  if (suspected === 0 || rest <= 0n) return [];
  const amount = ours.reduce((sum, { suspense }) => sum + suspense, 0n);
  const evidence = `${formatUsdString(amount)} USD of ${times(suspected)} of ours are in suspense`;
  return [{ kind: 'suspense', evidence, cost: rest }];
};

interface PriceFound {
  readonly meter: Meter;
  readonly count: number;
  readonly cost: bigint;
  readonly own: UnitPrice;
  readonly differs: bigint;
}

/** Compares their cost of each meter that the export tells apart with our price for the same count. */
const meterPrices: Explain = (difference) => {
  const { ours, usage, costs, prices } = difference;
  const measured = ours.filter(isMeasured);
  const found = METERS.flatMap((meter): PriceFound[] => {
    const lines = costs.filter((line) => line.meter === meter);
    const count = countOf(lines, usage, meter);
    const own = unitPrice(measured, meter, prices);
    if (count === null || count === 0 || own === null || (lines.length === 0 && tellsMetersApart(costs) === false))
      return [];
    const cost = lines.reduce((sum, line) => sum + line.cost, 0n);
    const differs = cost - costAt(own, count);
    return absolute(differs) <= stepsOf(lines) + BigInt(sumRequests(measured))
      ? []
      : [{ meter, count, cost, own, differs }];
  });
  if (found.length === 0) return [];
  const total = found.reduce((sum, { differs }) => sum + differs, 0n);
  const shown = found.map(describePrice).join('; ');
  const all = found.every(({ cost, count, own }) => cost * own.count * 2n === own.cost * BigInt(count));
  if (all) return [{ kind: 'service_tier', evidence: `half of our prices, as batches cost: ${shown}`, cost: total }];
  const named = namedVariation(found, difference);
  if (named !== null)
    return [{ kind: 'service_tier', evidence: `our price for service tier ${named}: ${shown}`, cost: total }];
  return [{ kind: 'price', evidence: shown, cost: total }];
};

/** Whether the export tells costs apart by meter. */
function tellsMetersApart(costs: readonly CostLine[]): boolean {
  return costs.some(({ meter }) => meter !== null && meter !== 'web_search');
}

/** Their count of the meter; null: the export does not say. */
function countOf(lines: readonly CostLine[], usage: readonly UsageLine[] | null, meter: Meter): number | null {
  const told = lines.every(({ quantity }) => quantity !== null);
  if (lines.length > 0 && told) return lines.reduce((sum, { quantity }) => sum + (quantity ?? 0), 0);
  return usage === null ? null : usage.reduce((sum, { meters }) => sum + meters[meter], 0);
}

function describePrice({ meter, cost, count, own }: PriceFound): string {
  const unit = meter === 'image' || meter === 'web_search' ? 1n : 1_000_000n;
  const per = unit === 1n ? 'each' : 'per million';
  const theirs = formatUsdString(rounded(cost * unit, BigInt(count)));
  return `${meter}: theirs ${theirs} USD ${per}, ours ${formatUsdString(rounded(own.cost * unit, own.count))}`;
}

const SHOWN_STEP = 1_000_000n;

/** Rounded to a millionth of a dollar: further digits come from the rounding of amounts. */
function rounded(cost: bigint, count: bigint): bigint {
  return nearest(cost, count * SHOWN_STEP) * SHOWN_STEP;
}

function nearest(amount: bigint, divisor: bigint): bigint {
  return ((absolute(amount) * 2n + divisor) / (divisor * 2n)) * (amount < 0n ? -1n : 1n);
}

/** The service tier at which our own price gives their cost; null: none. */
function namedVariation(found: readonly PriceFound[], { ours, prices, costs }: CostDifference): string | null {
  const measured = ours.filter(isMeasured);
  const names = new Set([...prices.values()].flatMap(({ terms }) => Object.keys(terms?.serviceTiers ?? {})));
  for (const name of names) {
    const asServed = measured.map((usage) => ({ ...usage, tier: name }));
    const fits = found.every(({ meter, cost, count }) => {
      const price = unitPrice(asServed, meter, prices);
      const lines = costs.filter((line) => line.meter === meter);
      return price !== null && absolute(cost - costAt(price, count)) <= stepsOf(lines) + BigInt(sumRequests(measured));
    });
    if (fits) return name;
  }
  return null;
}

/**
 * Prices are usually whole thousandths of a dollar per million tokens. If their cost divided by our count is such a
 * price, their price differs; else their count does.
 */
const USUAL_PRICE_STEP = 1_000n;

/**
 * For an export without counts: either our counts give a price that is plausible, and so their price differs, or their
 * counts differ.
 */
const costAlone: Explain = ({ ours, usage, costs, prices, rest }) => {
  if (usage !== null || costs.every(({ quantity }) => quantity !== null)) return [];
  const measured = ours.filter(isMeasured);
  const found = METERS.flatMap((meter): PriceFound[] => {
    const lines = costs.filter((line) => line.meter === meter);
    const count = measured.reduce((sum, { meters }) => sum + meters[meter], 0);
    const own = unitPrice(measured, meter, prices);
    if (lines.length === 0 || count === 0 || own === null) return [];
    const cost = lines.reduce((sum, line) => sum + line.cost, 0n);
    const priced = BigInt(count) * USUAL_PRICE_STEP;
    const isPrice = absolute(nearest(cost, priced) * priced - cost) <= stepsOf(lines);
    const differs = cost - costAt(own, count);
    return isPrice && absolute(differs) > stepsOf(lines) ? [{ meter, count, cost, own, differs }] : [];
  });
  const byPrice = found.reduce((sum, { differs }) => sum + differs, 0n);
  const causes: Cause[] =
    found.length === 0 ? [] : [{ kind: 'price', evidence: found.map(describePrice).join('; '), cost: byPrice }];
  const left = rest - byPrice;
  const unseen = ours.filter(({ usageSource }) => usageSource === 'unseen');
  const guessed = ours.filter(({ usageSource }) => usageSource === 'counted');
  if (left > 0n && unseen.length > 0) {
    const evidence = `${times(sumRequests(unseen))} of ours ended without a usage (${outcomesOf(unseen)})`;
    causes.push({ kind: 'cancelled', evidence, cost: left });
  } else if (left !== 0n && guessed.length > 0) {
    const evidence = `of ${times(sumRequests(guessed))} of ours the usage is our own count`;
    causes.push({ kind: 'counted', evidence, cost: left });
  }
  return causes;
};

/** The export tells no meters apart, so only the whole cost can be said to be higher or lower. */
const wholePrice: Explain = ({ ours, usage, costs, rest }) => {
  if (tellsMetersApart(costs) || usage === null) return [];
  const own = ours.reduce((sum, { cost }) => sum + cost, 0n);
  if (own === 0n) return [];
  const percent = Number((rest * 1_000n) / own) / 10;
  const share = `${percent > 0 ? '+' : ''}${percent} %`;
  const evidence = `the same counts cost ${share}; an export by line item shows which price differs`;
  return [{ kind: 'price', evidence, cost: rest }];
};

/** Requests that were served with another tier or context than we recorded, as far as the export tells those apart. */
export function servedOtherwise({
  ours,
  usage,
  costs,
}: Pick<CostDifference, 'ours' | 'usage'> & {
  readonly costs: readonly CostLine[] | null;
}): readonly Pick<Cause, 'kind' | 'evidence'>[] {
  const lines = usage ?? [];
  const causes: Pick<Cause, 'kind' | 'evidence'>[] = [];
  const measured = ours.filter(isMeasured);
  if (lines.some(({ tier }) => tier !== null)) {
    const theirs = totals(lines, ({ tier }) => plainTier(tier));
    const own = totals(measured, ({ tier }) => plainTier(tier));
    for (const [tier, count] of theirs) {
      const recorded = own.get(tier) ?? 0;
      if (tier !== '' && count > recorded)
        causes.push({
          kind: 'service_tier',
          evidence: `${grouped(count)} tokens as ${tier}, recorded ${grouped(recorded)}`,
        });
    }
    for (const [tier, count] of own) {
      const billed = theirs.get(tier) ?? 0;
      if (tier !== '' && count > billed)
        causes.push({
          kind: 'service_tier',
          evidence: `${grouped(count)} tokens recorded as ${tier}, billed ${grouped(billed)}`,
        });
    }
  } else {
    const special = [...new Set((costs ?? []).map(({ tier }) => plainTier(tier)))].filter((tier) => tier !== '');
    for (const tier of special.filter((name) => !measured.some((usage) => plainTier(usage.tier) === name)))
      causes.push({ kind: 'service_tier', evidence: `they bill some of it as ${tier}, and we recorded none` });
  }
  if (lines.some(({ isLong }) => isLong !== null)) {
    const theirs = totals(lines, ({ isLong }) => (isLong === true ? 'long' : '')).get('long') ?? 0;
    const own = totals(measured, ({ inputFrom }) => (inputFrom >= LONG_CONTEXT_FROM ? 'long' : '')).get('long') ?? 0;
    if (theirs > own)
      causes.push({
        kind: 'long_context',
        evidence: `${grouped(theirs)} tokens in a long context, recorded ${grouped(own)}`,
      });
  }
  return causes;
}

function plainTier(tier: string | null): string {
  return tier === null || PLAIN.serviceTiers.includes(tier) ? '' : tier;
}

/** Images and searches have no tier and no context. */
const TOKEN_METERS = METERS.filter((meter) => meter !== 'image' && meter !== 'web_search');

/** The sum of tokens for each name. */
function totals<Line extends { readonly meters: UsageLine['meters'] }>(
  lines: readonly Line[],
  nameOf: (line: Line) => string,
): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const line of lines) {
    const tokens = TOKEN_METERS.reduce((sum, meter) => sum + line.meters[meter], 0);
    sums.set(nameOf(line), (sums.get(nameOf(line)) ?? 0) + tokens);
  }
  return sums;
}

export function stepsOf(lines: readonly CostLine[]): bigint {
  return lines.reduce((sum, { step }) => sum + step, 1n);
}

export function absolute(amount: bigint): bigint {
  return amount < 0n ? -amount : amount;
}
