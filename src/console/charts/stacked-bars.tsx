// A chart of stacked bars over time, and what all charts over time share: axes, marks, table, readout and legend.

import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import {
  type Frame,
  highestStack,
  labelledIndexes,
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
      draw={({ frame, selected }) => {
        const scale = scaleOf(frame, buckets.length, most);
        return (
          <>
            <Axes scale={scale} axis={axis} labels={labels} selected={selected} />
            {stackedBarPaths(series, scale, buckets.length).map((path, index) => (
              <g key={index}>
                <path class={`fill s${index % 8}`} d={path} />
                {index % 8 > 0 && <path class="hatch" fill={`url(#hatch-${index % 8})`} d={path} />}
              </g>
            ))}
            <Marks marks={marks} scale={scale} />
          </>
        );
      }}
    />
  );
}

interface MarksProps {
  readonly marks: NonNullable<TimeChartProps['marks']>;
  readonly scale: Scale;
}

export function Marks({ marks, scale }: MarksProps) {
  return (
    <>
      {marks.map(({ index, name }) => (
        <Mark key={`${index} ${name}`} x={scale.x(index)} name={name} frame={scale.frame} />
      ))}
    </>
  );
}

/** A vertical line with a triangle at its top. */
export function Mark({ x, name, frame }: { readonly x: number; readonly name: string; readonly frame: Frame }) {
  return (
    <g class="mark">
      <title>{name}</title>
      <path d={`M${x} 6V${frame.top + frame.height}`} />
      <path class="head" d={`M${x} 2l5 6h-10z`} />
    </g>
  );
}

interface AxesProps {
  readonly scale: Scale;
  /** Writes a value at a tick. */
  readonly axis: (value: number) => string;
  readonly labels: readonly string[];
  /** The point to highlight. */
  readonly selected: number | null;
}

const LABEL_WIDTH_PX = 92;

export function Axes({ scale, axis, labels, selected }: AxesProps) {
  const { frame, count } = scale;
  return (
    <>
      {scale.ticks.map((tick) => (
        <g key={tick} class="tick">
          <path d={`M${frame.left} ${Math.round(scale.y(tick)) + 0.5}h${frame.width}`} />
          <text x={frame.left - 6} y={scale.y(tick) + 4} text-anchor="end">
            {axis(tick)}
          </text>
        </g>
      ))}
      {labelledIndexes(count, frame.width, LABEL_WIDTH_PX).map((index) => (
        <text key={index} class="label" x={scale.x(index)} y={frame.top + frame.height + 18}>
          {labels[index] ?? ''}
        </text>
      ))}
      {selected !== null && selected < count && (
        <rect
          class="cursor"
          x={scale.x(selected)}
          y={frame.top}
          width={Math.max(1, scale.band)}
          height={frame.height}
        />
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
  const { title, note, command, buckets, series, granularity, exact, isLoading, onPick } = props;
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
  const describe = (index: number) => {
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
    describe,
    legend: series.map(({ name }) => name),
    isLoading,
    isEmpty: series.every(({ values }) => values.every((value) => (value ?? 0) === 0)),
    onPick,
  };
}
