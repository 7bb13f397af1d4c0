// Small pictures in cells of tables: a rate with its interval, a span of time, a shaded share.

import { wilsonInterval } from '../logic/chart-scale.ts';
import { percent } from '../logic/format.ts';

/** A rate as a dot with its 95 % interval, which is wide for few trials. The scale goes from 0 to `max`. */
export function RateDot({
  hits,
  trials,
  max,
}: {
  readonly hits: number;
  readonly trials: number;
  readonly max: number;
}) {
  const bounds = wilsonInterval(hits, trials);
  if (bounds === null) return <span class="muted">not known</span>;
  const at = (share: number) => `${((share / max) * 96 + 2).toFixed(1)}%`;
  const [low, high] = bounds;
  return (
    <svg
      class="rate-dot"
      width="100%"
      height="16"
      role="img"
      aria-label={`between ${percent(low)} and ${percent(high)}`}
    >
      <line class="whisker" x1={at(low)} x2={at(Math.min(max, high))} y1="8" y2="8" />
      <circle class="fill s0" cx={at(Math.min(max, hits / trials))} cy="8" r="4" />
    </svg>
  );
}

/** Milliseconds since the same moment. */
interface TimeSpanProps {
  readonly fromMs: number;
  readonly toMs: number;
  readonly windowStartMs: number;
  readonly windowEndMs: number;
}

/** A span of time as a bar within a window. */
export function TimeSpan({ fromMs, toMs, windowStartMs, windowEndMs }: TimeSpanProps) {
  const whole = Math.max(1, windowEndMs - windowStartMs);
  const at = (ms: number) => Math.max(0, Math.min(100, ((ms - windowStartMs) / whole) * 100));
  return (
    <svg class="bar" width="100%" height="8" aria-hidden="true">
      <rect class="track" width="100%" height="8" rx="2" />
      <rect
        class="fill s0"
        x={`${at(fromMs).toFixed(2)}%`}
        width={`${Math.max(0.6, at(toMs) - at(fromMs)).toFixed(2)}%`}
        height="8"
        rx="2"
      />
    </svg>
  );
}

/** A cell of a heat map: the share as text, on a background that is stronger for a higher share. */
export function HeatCell({ share }: { readonly share: number | null }) {
  if (share === null) return <span class="muted">–</span>;
  return (
    <span class="heat" data-shade={Math.min(9, Math.floor(share * 10))}>
      {percent(share, 0)}
    </span>
  );
}
