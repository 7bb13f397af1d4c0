// The charts of the routing report over time: requests by tier, and spend against the baseline. Marks show the first
// use of policy versions.

import { Lines } from '../../charts/lines.tsx';
import { StackedBars } from '../../charts/stacked-bars.tsx';
import { asFloat, countTick, dollars, dollarTick, whole } from '../../logic/format.ts';
import { bucketsOf, marksOf } from '../../logic/routing-buckets.ts';
import { seriesOf } from '../../logic/series-chart.ts';
import { go } from '../../state/address.ts';
import type { Routing } from '../../state/reports.ts';

type Total = Routing['series_totals'][number];

interface Props {
  readonly report: Routing;
  readonly command: string;
}

const tierName = (tier: string): string => (tier === '' ? 'no tier' : tier);

export function RequestsByTier({ report, command }: Props) {
  const buckets = bucketsOf(report);
  const tiers = tiersOf(report);
  return (
    <StackedBars
      title="Requests by tier"
      note="The cheapest tier is at the bottom. A triangle marks the first use of a policy version."
      command={command}
      buckets={buckets}
      granularity={report.granularity}
      series={tiers.map((tier) =>
        seriesOf(tierName(tier), buckets, pointsOf(report, tier), ({ requests }) => requests),
      )}
      show={whole}
      axis={countTick}
      marks={marksOf(report.policies, buckets)}
      onPick={(index) => {
        const day = buckets[index]?.slice(0, 10);
        if (day !== undefined) go('requests', { from: day, to: day, range: null, routed: 'true' });
      }}
    />
  );
}

/** Compares over the requests for which both prices are known. The note says how many there are. */
export function SpendAndBaseline({ report, command }: Props) {
  const buckets = bucketsOf(report);
  const points = report.series_totals;
  const found = new Map(points.map((point) => [point.bucket, point]));
  const amounts = [
    { name: 'Spent', amountOf: (point: Total) => point.baseline_spend_usd },
    { name: 'Baseline', amountOf: (point: Total) => point.baseline_cost_usd },
  ];
  return (
    <Lines
      title="Spend against the baseline"
      note={`The baseline is the strongest model. ${whole(report.totals.baseline_requests)} requests have both prices.`}
      command={command}
      buckets={buckets}
      granularity={report.granularity}
      series={amounts.map(({ name, amountOf }) => seriesOf(name, buckets, points, (point) => asFloat(amountOf(point))))}
      show={(value) => dollars(value.toFixed(12))}
      exact={(index, at) => {
        const point = found.get(buckets[index] ?? '');
        return point === undefined ? '0' : (amounts[at]?.amountOf(point) ?? '0');
      }}
      axis={dollarTick}
      isGapShaded
      marks={marksOf(report.policies, buckets)}
    />
  );
}

function tiersOf({ by_tier: tiers, series }: Routing): string[] {
  const ranked = tiers.map(({ tier }) => tier);
  return [...new Set([...ranked, ...series.map(({ tier }) => tier)])];
}

function pointsOf({ series }: Routing, tier: string): Routing['series'][number][] {
  return series.filter((point) => point.tier === tier);
}
