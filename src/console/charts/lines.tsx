// A chart of lines over time. The gap between the first two lines can be shaded.

import { area, line } from 'd3-shape';
import { highest, plotFrame, type Scale, scaleOf } from '../logic/chart-scale.ts';
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
      draw={({ width, height, at }) => {
        const scale = scaleOf(plotFrame(width, height), buckets.length, highest(series));
        const [low, high] = series;
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
            {isGapShaded && low !== undefined && high !== undefined && (
              <path class="gap" d={gapPath(low.values, high.values, scale)} />
            )}
            {series.map(({ values }, index) => (
              <g key={index}>
                <path class={`line s${index % 8} d${index % 4}`} d={linePath(values, scale)} />
                {alone(values).map((point) => (
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
            {at !== null &&
              series.map(({ values }, index) =>
                values[at] == null ? null : (
                  <circle
                    key={index}
                    class={`fill s${index % 8}`}
                    cx={scale.x(at) + scale.band / 2}
                    cy={scale.y(values[at] ?? 0)}
                    r="4"
                  />
                ),
              )}
            <Marks marks={marks} scale={scale} height={height} />
          </>
        );
      }}
    />
  );
}

/** Points without a neighbour. A line through a single point is invisible, so these get a circle. */
function alone(values: readonly (number | null)[]): number[] {
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
