// The chart of usage over time by group: cost, requests, tokens or errors. The server forms the buckets and sums.

import type { Query } from '../api.ts';
import { StackedBars } from '../charts/stacked-bars.tsx';
import { asFloat, type Count, countTick, dollars, dollarTick, sumOfCounts, whole } from '../logic/format.ts';
import { nameOfGroup, nameOfOthers, seriesOf } from '../logic/series-chart.ts';
import { Empty, Loaded } from '../parts/loaded.tsx';
import { Card } from '../parts/page.tsx';
import { go } from '../state/address.ts';
import { type FigureSeries, type Figures, reportCurlCommand, reportPermission, useReport } from '../state/reports.ts';

export type Measure = 'cost' | 'requests' | 'tokens' | 'errors';
export const MEASURES: readonly { readonly id: Measure; readonly name: string }[] = [
  { id: 'cost', name: 'Spend' },
  { id: 'requests', name: 'Requests' },
  { id: 'tokens', name: 'Tokens' },
  { id: 'errors', name: 'Errors' },
];

/** The value that a bar's height shows. The cost is rounded to a float here; the chart's table has it exactly. */
const VALUE: Readonly<Record<Measure, (figures: Figures) => Count>> = {
  cost: ({ cost }) => asFloat(cost),
  requests: ({ requests }) => requests,
  tokens: ({ tokens_prompt: prompt, tokens_completion: completion }) => sumOfCounts(prompt, completion),
  errors: ({ errors }) => errors,
};

interface GroupChartProps {
  readonly query: Query;
  readonly measure: Measure;
  readonly title: string;
}

export function GroupChart({ query, measure, title }: GroupChartProps) {
  const load = useReport('series', query);
  if (load.data === null)
    return (
      <Card title={title}>
        <Loaded load={load} permission={reportPermission()}>
          {() => null}
        </Loaded>
      </Card>
    );
  const { buckets, groups, remainder, granularity, totals } = load.data.data;
  if (totals.requests === 0)
    return (
      <Card title={title}>
        <Empty>Nothing in this window. A request appears here some seconds after it has ended.</Empty>
      </Card>
    );
  const shown: readonly (FigureSeries & { readonly name: string })[] = [
    ...groups.map((group) => ({ ...group, name: nameOfGroup(group) })),
    ...(remainder === null ? [] : [{ ...remainder, name: nameOfOthers(remainder.groups) }]),
  ];
  const found = shown.map(({ series }) => new Map(series.map((point) => [point.bucket, point])));
  const show = measure === 'cost' ? (value: number) => dollars(value.toFixed(12)) : whole;
  return (
    <StackedBars
      title={title}
      command={reportCurlCommand('series', query)}
      buckets={buckets}
      granularity={granularity}
      series={shown.map(({ name, series }) =>
        seriesOf(name, buckets, series, (point) => Number(VALUE[measure](point))),
      )}
      show={show}
      exact={(index, at) => {
        const point = found[at]?.get(buckets[index] ?? '');
        if (point === undefined) return '0';
        return measure === 'cost' ? point.cost : String(VALUE[measure](point));
      }}
      axis={measure === 'cost' ? dollarTick : countTick}
      isLoading={load.isLoading}
      onPick={(index) => {
        const day = buckets[index]?.slice(0, 10);
        if (day !== undefined) go('requests', { from: day, to: day, range: null });
      }}
    />
  );
}
