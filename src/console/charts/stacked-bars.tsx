// A chart of stacked bars over time, and what all charts over time share: axes, marks, table, readout and legend.

import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import {
  highestStack,
  labelledIndexes,
  plotFrame,
  type Scale,
  type Series,
  scaleOf,
  stackedBarPaths,
} from '../logic/chart-scale.ts';
import { bucketLabels, type Granularity } from '../logic/format.ts';
import type { Column } from '../parts/table.tsx';
import { ChartFigure } from './chart-figure.tsx';

export interface TimeChartProps {
  readonly title: string;
  readonly note?: ComponentChildren;
  readonly command: string;
  readonly buckets: readonly string[];
  readonly granularity: Granularity;
  readonly series: readonly Series[];
  readonly show: (value: number) => string;
  /** The exact value of a series in a bucket, with every digit of the server's answer. */
  readonly exact?: (index: number, series: number) => string;
  readonly axis: (value: number) => string;
  readonly isLoading?: boolean;
  readonly height?: number;
  /** Marks at buckets in which something began, such as a policy version. */
  readonly marks?: readonly { readonly index: number; readonly name: string }[];
  readonly onPick?: (index: number) => void;
}

export function StackedBars(props: TimeChartProps) {
  const { buckets, series, granularity, show, axis, marks = [] } = props;
  const most = useMemo(() => highestStack(series, buckets.length), [series, buckets]);
  const labels = useMemo(() => bucketLabels(buckets, granularity), [buckets, granularity]);
  return (
    <ChartFigure
      {...figureOf(props, show, { absent: show(0) })}
      draw={({ width, height, at }) => {
        const scale = scaleOf(plotFrame(width, height), buckets.length, most);
        return (
          <>
            <Axes
              scale={scale}
              width={width}
              height={height}
              axis={axis}
              count={buckets.length}
              labelAt={(index) => labels[index] ?? ''}
              at={at}
            />
            {stackedBarPaths(series, scale, buckets.length).map((path, index) => (
              <g key={index}>
                <path class={`fill s${index % 8}`} d={path} />
                {index % 8 > 0 && <path class="hatch" fill={`url(#hatch-${index % 8})`} d={path} />}
              </g>
            ))}
            <Marks marks={marks} scale={scale} height={height} />
          </>
        );
      }}
    />
  );
}

interface MarksProps {
  readonly marks: NonNullable<TimeChartProps['marks']>;
  readonly scale: Scale;
  readonly height: number;
}

export function Marks({ marks, scale, height }: MarksProps) {
  return (
    <>
      {marks.map(({ index, name }) => (
        <g key={`${index} ${name}`} class="mark">
          <title>{name}</title>
          <path d={`M${scale.x(index)} 6V${height - 26}`} />
          <path class="head" d={`M${scale.x(index)} 2l5 6h-10z`} />
        </g>
      ))}
    </>
  );
}

interface AxesProps {
  readonly scale: Scale;
  readonly width: number;
  readonly height: number;
  readonly axis: (value: number) => string;
  readonly count: number;
  readonly labelAt: (index: number) => string;
  readonly at: number | null;
}

export function Axes({ scale, width, height, axis, count, labelAt, at }: AxesProps) {
  return (
    <>
      {scale.ticks.map((tick) => (
        <g key={tick} class="tick">
          <path d={`M52 ${Math.round(scale.y(tick)) + 0.5}H${width - 8}`} />
          <text x="46" y={scale.y(tick) + 4} text-anchor="end">
            {axis(tick)}
          </text>
        </g>
      ))}
      {labelledIndexes(count, width - 60, 92).map((index) => (
        <text key={index} class="label" x={scale.x(index)} y={height - 8}>
          {labelAt(index)}
        </text>
      ))}
      {at !== null && at < count && (
        <rect class="cursor" x={scale.x(at)} y="8" width={Math.max(1, scale.band)} height={height - 34} />
      )}
    </>
  );
}

interface BucketRow {
  readonly index: number;
}

/** The table, readout and legend of a chart over time. `absent` is written where a bucket has no value. */
export function figureOf(
  props: TimeChartProps,
  show: (value: number) => string,
  { absent }: { readonly absent: string },
) {
  const { title, note, command, buckets, series, granularity, exact, isLoading, height, onPick } = props;
  const labels = bucketLabels(buckets, granularity);
  const valueOf = ({ index }: BucketRow, at: number) => {
    const value = series[at]?.values[index] ?? null;
    return exact?.(index, at) ?? (value === null ? absent : show(value));
  };
  const columns: Column<BucketRow>[] = [
    {
      name: { day: 'Day', hour: 'Hour', second: 'Time' }[granularity],
      raw: ({ index }) => buckets[index] ?? '',
      show: ({ index }) => labels[index] ?? '',
    },
    ...series.map(({ name, values }, at) => ({
      name,
      isNumber: true,
      raw: (row: BucketRow) => exact?.(row.index, at) ?? values[row.index] ?? null,
      show: (row: BucketRow) => valueOf(row, at),
    })),
  ];
  const say = (index: number) => {
    const parts = series
      .map(({ name, values }, at) =>
        (values[index] ?? 0) === 0 ? '' : `${name} ${show(values[index] ?? 0) || valueOf({ index }, at)}`,
      )
      .filter((part) => part !== '');
    return `${labels[index] ?? ''}: ${parts.length === 0 ? 'nothing' : parts.join(' · ')}`;
  };
  return {
    title,
    note,
    command,
    columns,
    rows: buckets.map((_, index) => ({ index })),
    points: buckets.length,
    say,
    legend: series.map(({ name }) => name),
    isLoading,
    isEmpty: series.every(({ values }) => values.every((value) => (value ?? 0) === 0)),
    height,
    onPick,
  };
}
