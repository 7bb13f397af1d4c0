// The requests of each provider in the last 24 hours, as a strip with a colour for each hour's share of errors.

import { useState } from 'preact/hooks';
import { whole } from '../../logic/format.ts';
import { LoadingFigure } from '../../parts/figures.tsx';
import { now } from '../../state/clock.ts';
import { useRead } from '../../state/load.ts';
import type { FigureSeries, UsageSeries } from '../../state/reports.ts';

const HOURS = 24;
const HOUR_MS = 3_600_000;
const STEP_PX = 7;
const HEIGHT_PX = 16;
/** From this share of failed requests on, an hour is shown as bad. */
const MANY_ERRORS = 0.05;

/** `figuresOf` is null for a provider without requests, or beyond the 25 providers that the report names. */
interface ProviderDay {
  readonly buckets: readonly string[];
  readonly figuresOf: (provider: string) => FigureSeries | null;
}

/** null where the report was refused. */
export type ProviderDayLoad = ProviderDay | 'coming' | null;

export function useProviderDay(): ProviderDayLoad {
  // The window is fixed when the screen opens.
  const [start] = useState(() => new Date(Math.floor(now.value.getTime() / HOUR_MS - HOURS + 1) * HOUR_MS));
  const query = { start_date: start.toISOString(), granularity: 'hour', group_by: 'provider', top: 25 };
  const load = useRead('/v1/admin/analytics/series', { query });
  if (load.data === null) return load.isLoading ? 'coming' : null;
  const { buckets, groups }: UsageSeries = load.data.data;
  return { buckets, figuresOf: (provider) => groups.find((group) => group.provider === provider) ?? null };
}

export function DayStrip({ day, provider }: { readonly day: ProviderDayLoad; readonly provider: string }) {
  if (day === 'coming') return <LoadingFigure />;
  if (day === null) return <span class="muted">not known</span>;
  const figures = day.figuresOf(provider);
  if (figures === null) return <span class="muted">no request</span>;
  const points = new Map(figures.series.map((point) => [point.bucket, point]));
  const said =
    figures.errors === 0
      ? `${whole(figures.requests)}, none failed`
      : `${whole(figures.errors)} of ${whole(figures.requests)} failed`;
  const widthPx = day.buckets.length * STEP_PX;
  return (
    <>
      <svg
        class="strip"
        aria-hidden="true"
        width={widthPx}
        height={HEIGHT_PX}
        viewBox={`0 0 ${widthPx} ${HEIGHT_PX}`}
        preserveAspectRatio="none"
      >
        {day.buckets.map((bucket, index) => (
          <rect
            key={bucket}
            class={toneOf(points.get(bucket))}
            x={index * STEP_PX}
            width="5"
            height={HEIGHT_PX}
            rx="1"
          />
        ))}
      </svg>
      <span class="note">{said}</span>
    </>
  );
}

function toneOf(point: FigureSeries['series'][number] | undefined): string {
  if (point === undefined || point.requests === 0) return 'track';
  if (point.errors === 0) return 'fill good';
  return Number(point.errors) / Number(point.requests) < MANY_ERRORS ? 'fill warn' : 'fill bad';
}
