// A chart of lines over time. The gap between the first two lines can be shaded.

import { area, line } from 'd3-shape';
import { highest, type Scale, scaleOf } from '../logic/chart-scale.ts';
import { bucketLabels } from '../logic/format.ts';
import { ChartFigure } from './chart-figure.tsx';
import { Axes, figureOf, Marks, type TimeChartProps } from './stacked-bars.tsx';

interface LinesProps extends TimeChartProps {
  /** Shades the area between the first two lines. */
  readonly isGapShaded?: boolean;
}

export function Lines(props: LinesProps) {
  const { buckets, series, granularity, show, axis, marks = [], isGapShaded = false } = props;
  const labels = bucketLabels(buckets, granularity);
  return (
    <ChartFigure
      {...figureOf(props, show, { absent: '–' })}
      mark="line"
      draw={({ frame, selected }) => {
        const scale = scaleOf(frame, buckets.length, highest(series));
        const [low, high] = series;
        return (
          <>
            <Axes scale={scale} axis={axis} labels={labels} selected={selected} />
            {isGapShaded && low !== undefined && high !== undefined && (
              <path class="gap" d={gapPath(low.values, high.values, scale)} />
            )}
            {series.map(({ values }, index) => (
              <g key={index}>
                <path class={`line s${index % 8} d${index % 4}`} d={linePath(values, scale)} />
                {isolatedPoints(values).map((point) => (
                  <circle
                    key={point}
                    class={`fill s${index % 8}`}
                    cx={scale.x(point) + scale.band / 2}
                    cy={scale.y(values[point] ?? 0)}
                    r="3"
                  />
                ))}
              </g>
            ))}
            {selected !== null &&
              series.map(({ values }, index) =>
                values[selected] == null ? null : (
                  <circle
                    key={index}
                    class={`fill s${index % 8}`}
                    cx={scale.x(selected) + scale.band / 2}
                    cy={scale.y(values[selected] ?? 0)}
                    r="4"
                  />
                ),
              )}
            <Marks marks={marks} scale={scale} />
          </>
        );
      }}
    />
  );
}

/** Points without a neighbour. A line through a single point is invisible, so these get a circle. */
function isolatedPoints(values: readonly (number | null)[]): number[] {
  const isThere = (index: number): boolean => values[index] != null;
  return [...values.keys()].filter((index) => isThere(index) && !isThere(index - 1) && !isThere(index + 1));
}

function linePath(values: readonly (number | null)[], scale: Scale): string {
  return (
    line<number | null>()
      .defined((value) => value !== null)
      .x((_, index) => scale.x(index) + scale.band / 2)
      .y((value) => scale.y(value ?? 0))([...values]) ?? ''
  );
}

function gapPath(low: readonly (number | null)[], high: readonly (number | null)[], scale: Scale): string {
  return (
    area<number | null>()
      .defined((value, index) => value !== null && high[index] != null)
      .x((_, index) => scale.x(index) + scale.band / 2)
      .y0((value) => scale.y(value ?? 0))
      .y1((_, index) => scale.y(high[index] ?? 0))([...low]) ?? ''
  );
}
